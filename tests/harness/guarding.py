"""Who writes federated objects and what is reported of them: the same attempts on every kind of control plane."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from argosy.api import keys, resources, rights
from argosy.api.admission import guard
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, Forbidden
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually
from tests.harness.user import NAMESPACES

__all__ = ["MISSHAPEN", "attempts", "bind", "enforced", "federated", "grant", "prepare", "refuses", "rule"]

#: A client of the control plane as a user who is in no group but that of everybody.
As = Callable[[str], Client]
Writing = Callable[[Client], Awaitable[Any]]

RBAC = rights.GROUP
ROLES = Resource(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
VERSIONS = Resource(keys.GROUP, keys.VERSION, "propagatedversions", "PropagatedVersion")

#: What a type config names beside our own steps.
STEP = "example.com/step"
SHOP = "shop"
FEDERATED = [
    *("federatedobjects", "federatedobjects/status", "federatedobjects/finalizers"),
    *("collectedstatuses", "propagatedversions", "propagatedversions/status"),
]
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kept", "namespace": SHOP},
    "data": {"n": "1"},
}
PLACED = {"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": "m1"}]}
ROOT = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "root"},
    "subjects": [rights.user("mallory")],
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
}


def rule(resources: list[str], verbs: list[str], group: str = keys.GROUP) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


async def grant(admin: Client, user: str, rules: list[dict[str, Any]], namespace: str | None = None) -> None:
    """A role with these rules, for this user: in a namespace, or everywhere."""
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": user, **({"namespace": namespace} if namespace else {})}
    body = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
    await admin.create(ROLES if namespace else CLUSTER_ROLES, body)
    await bind(admin, user, kind, user, namespace)


async def bind(admin: Client, user: str, kind: str, role: str, namespace: str | None = None) -> None:
    body = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"{user}-{role}", **({"namespace": namespace} if namespace else {})},
        "subjects": [rights.user(user)],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
    }
    await admin.create(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, body)


def federated(name: str = "kept-configmaps", template: dict[str, Any] = TEMPLATE) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SHOP, "annotations": {keys.PENDING_CONTROLLERS: '[["example.com/step"]]'}}
    spec = {"template": template, "placements": [PLACED]}
    return {"apiVersion": keys.API_VERSION, "kind": "FederatedObject", "metadata": metadata, "spec": spec}


def collected(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SHOP}
    clusters = [{"cluster": "m1", "collectedFields": {"status": {"replicas": 9}}}]
    body = {"apiVersion": keys.API_VERSION, "kind": "CollectedStatus", "metadata": metadata, "clusters": clusters}
    return {**body, "lastUpdateTime": "2026-01-01T00:00:00Z"}


def version(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SHOP}
    return {"apiVersion": keys.API_VERSION, "kind": "PropagatedVersion", "metadata": metadata}


async def prepare(admin: Client, as_: As) -> None:
    """What there is to write, and users with the rights to try."""
    await admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
    await admin.create(resources.FEDERATED_OBJECTS, federated())
    await admin.create(resources.COLLECTED_STATUSES, collected("kept-configmaps"))
    body = {"apiVersion": keys.API_VERSION, "kind": "FederatedCluster", "metadata": {"name": "m1"}}
    endpoint = {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "none"}}
    await admin.create(resources.FEDERATED_CLUSTERS, {**body, "spec": endpoint})
    await grant(admin, "mallory", [rule(FEDERATED, ["*"])], SHOP)
    # Everything, and yet neither the controllers nor in system:masters.
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await grant(admin, "boss", [everything])
    step = [
        rule(["federatedobjects"], ["get", "list", "watch", "update", "patch", "create", "delete"]),
        rule([f"federatedobjects/{guard.PLACEMENTS}"], ["update"]),
    ]
    await grant(admin, "step", step, SHOP)
    await bind(admin, "editor", "ClusterRole", "edit", SHOP)
    await bind(admin, "owner", "ClusterRole", "admin", SHOP)
    for user in ("mallory", "boss", "step"):
        client = as_(user)
        await eventually(lambda client=client: client.get(resources.FEDERATED_OBJECTS, "kept-configmaps", SHOP))


class Attempt(NamedTuple):
    what: str
    user: str
    write: Writing
    allowed: bool = False
    #: No federated object has this shape: kube-apiserver, which checks that first, may say so instead.
    misshapen: bool = False


def _patch(change: Any, kind: Patch = Patch.MERGE, **more: Any) -> Writing:
    return lambda client: client.patch(resources.FEDERATED_OBJECTS, "kept-configmaps", change, SHOP, kind=kind, **more)


def _put(path: str, value: Any) -> Writing:
    return _patch([{"op": "add", "path": path, "value": value}], Patch.JSON)


def _cluster(change: dict[str, Any], **more: Any) -> Writing:
    return lambda client: client.patch(resources.FEDERATED_CLUSTERS, "m1", change, **more)


def _annotate(**annotations: str | None) -> Writing:
    return _patch({"metadata": {"annotations": annotations}})


def _placements(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"placements": list(entries)}}


_THEIRS = {"controller": STEP, "placement": [{"cluster": "m2"}]}
_OVERRIDE = {
    "controller": STEP,
    "clusters": [{"cluster": "m2", "patches": [{"op": "add", "path": "/data/a", "value": "b"}]}],
}


_LISTS = ("placements", "overrides")
#: What is put where a federated object has something else.
MISSHAPEN: list[tuple[str, Any]] = [
    *(("/spec", value) for value in ([], ["a"], "x", 5, True)),
    *(("/spec/template", value) for value in ([], "x", 5)),
    *((f"/spec/{field}", value) for field in _LISTS for value in ("x", 5, True, {"a": 1}, {"controller": STEP})),
    *((f"/spec/{field}", [value]) for field in _LISTS for value in (None, "x", 5, [], ["x"], [PLACED])),
    *((f"/spec/{field}/-", value) for field in _LISTS[:1] for value in (None, "x", 5, ["x"])),
]


def attempts() -> list[Attempt]:
    """What nobody but the controllers may do, whatever rights he has; and what a further step of the pipeline may."""
    forged = federated("root-configmaps", ROOT)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}
    leader = {"kind": "Deployment", "group": "apps", "name": "web"}
    by_right: list[tuple[str, Writing]] = [
        ("create", lambda c: c.create(resources.FEDERATED_OBJECTS, forged)),
        ("template", _patch({"spec": {"template": {"data": {"n": "2"}}}})),
        ("template, by its type alone", _patch({"spec": {"template": {"data": {"n": 1}}}})),
        ("follows", _patch({"spec": {"follows": [leader]}})),
        ("our placements", _patch(_placements())),
        ("our placements moved", _patch(_placements({**PLACED, "placement": [{"cluster": "m9"}]}))),
        ("our overrides", _patch({"spec": {"overrides": [{**_OVERRIDE, "controller": keys.OVERRIDE_CONTROLLER}]}})),
        ("status", _patch({"status": {"clusters": []}}, subresource="status")),
        ("labels", _patch({"metadata": {"labels": {"a": "b"}}})),
        ("finalizers", _patch({"metadata": {"finalizers": ["example.com/f"]}})),
        ("owners", _patch({"metadata": {"ownerReferences": [owner]}})),
        ("our notes", _annotate(**{keys.TO_BE_REMOVED: '["m1"]'})),
        ("our notes, and a confirmation", _annotate(**{keys.CONFIRM_DELETION: "true", keys.HELD: "{}"})),
        ("a confirmation, and more", _annotate(**{keys.CONFIRM_DELETION: "true", keys.PENDING_CONTROLLERS: None})),
        ("adoption", _annotate(**{keys.INTERNAL_CONFLICT_RESOLUTION: "adopt"})),
        ("delete", lambda c: c.delete(resources.FEDERATED_OBJECTS, "kept-configmaps", SHOP)),
    ]
    statuses = resources.COLLECTED_STATUSES
    reported: list[tuple[str, Writing]] = [
        ("create CollectedStatus", lambda c: c.create(statuses, collected("more"))),
        ("update CollectedStatus", lambda c: c.patch(statuses, "kept-configmaps", {"clusters": []}, SHOP)),
        ("delete CollectedStatus", lambda c: c.delete(statuses, "kept-configmaps", SHOP)),
        ("create PropagatedVersion", lambda c: c.create(VERSIONS, version("more"))),
    ]
    clusters: list[tuple[str, Writing]] = [
        ("status of a cluster", _cluster({"status": {"conditions": []}}, subresource="status")),
        ("create ClusterFederatedObject", lambda c: c.create(resources.CLUSTER_FEDERATED_OBJECTS, _cluster_wide())),
    ]
    found = [Attempt(what, "mallory", write) for what, write in [*by_right, *reported]]
    found += [Attempt(what, "boss", write) for what, write in [*by_right, *reported, *clusters]]
    found += [Attempt(what, "step", write) for what, write in by_right if what != "status"]
    found += [Attempt("their placements", "mallory", _patch(_placements(PLACED, _THEIRS)))]
    found += [
        Attempt(f"{path} {value}", user, _put(path, value), misshapen=True)
        for user in ("mallory", "boss", "step")
        for path, value in MISSHAPEN
    ]
    found += [
        Attempt("confirm", "mallory", _annotate(**{keys.CONFIRM_DELETION: "true"}), allowed=True),
        Attempt("take it back", "mallory", _annotate(**{keys.CONFIRM_DELETION: None}), allowed=True),
        Attempt("their placements", "step", _patch(_placements(PLACED, _THEIRS)), allowed=True),
        Attempt("their overrides", "step", _patch({"spec": {"overrides": [_OVERRIDE]}}), allowed=True),
        Attempt("pending", "step", _annotate(**{keys.PENDING_CONTROLLERS: "[]", "example.com/a": "b"}), allowed=True),
        Attempt("placements gone", "step", _patch(_placements(PLACED)), allowed=True),
        Attempt("spec of a cluster", "boss", _cluster({"spec": {"insecure": False}}), allowed=True),
    ]
    return found


def _cluster_wide() -> dict[str, Any]:
    spec = {"template": ROOT}
    metadata = {"name": f"root-clusterrolebindings.{RBAC}"}
    return {"apiVersion": keys.API_VERSION, "kind": "ClusterFederatedObject", "metadata": metadata, "spec": spec}


async def enforced(as_: As) -> None:
    """A policy comes into force a moment after it was stored."""

    async def refused() -> bool:
        try:
            await _patch({"metadata": {"labels": {"a": "b"}}}, dry_run=True)(as_("boss"))
        except Forbidden:
            return True
        return False

    await eventually(refused)


async def _refusal(write: Awaitable[Any], *, misshapen: bool) -> str:
    """By the guard; empty if its shape was refused before."""
    try:
        await write
    except Forbidden as error:
        return error.message
    except ApiError as error:
        if misshapen and error.code in (400, 422):
            return ""
        raise
    return "not refused"


async def refuses(admin: Client, as_: As) -> None:
    """All attempts, one after the other."""
    for attempt in attempts():
        before = await admin.get(resources.FEDERATED_OBJECTS, "kept-configmaps", SHOP)
        client = as_(attempt.user)
        if attempt.allowed:
            await attempt.write(client)
            continue
        refused = await _refusal(attempt.write(client), misshapen=attempt.misshapen)
        if refused:
            assert "written by Argosy's controllers alone" in refused, f"{attempt.user}: {attempt.what}: {refused}"
            assert guard.NAME in refused
        assert await admin.get(resources.FEDERATED_OBJECTS, "kept-configmaps", SHOP) == before, attempt.what
    # Kubernetes' own roles for users of a namespace give no right here at all, so the guard is not even asked.
    for user in ("editor", "owner"):
        with pytest.raises(Forbidden, match="cannot create resource"):
            await as_(user).create(resources.FEDERATED_OBJECTS, federated("mine-configmaps"))
        with pytest.raises(Forbidden, match="cannot patch resource"):
            await _patch({"spec": {"placements": []}})(as_(user))
    # Administrators may do what they must.
    await admin.patch(resources.FEDERATED_OBJECTS, "kept-configmaps", {"metadata": {"labels": {"seen": "yes"}}}, SHOP)
