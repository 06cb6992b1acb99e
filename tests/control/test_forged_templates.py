"""Federated objects that lie, stored as an administrator would by mistake or an intruder by intent: no member hears of it, and
nothing is taken away because of it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.api import keys, resources
from argosy.api.names import federated_name
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, EVENTS, SECRETS, Federation

RBAC = "rbac.authorization.k8s.io"
EVERYWHERE = {"schedulingMode": "Duplicate"}
PLACED = [{"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}]
MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
ROOT = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "root"},
    "subjects": [{"kind": "User", "name": "mallory", "apiGroup": RBAC}],
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
}


@pytest.fixture
async def fed() -> AsyncIterator[Federation]:
    async with Federation(2) as federation:
        await federation.policy(**EVERYWHERE)
        yield federation


class Watching:
    """Every change in members to what users have there."""

    def __init__(self, fed: Federation):
        self.written: list[tuple[str, str]] = []
        for name, server in fed.servers.items():
            server.server.store.subscribe(
                lambda event, name=name: self.written.append(
                    (name, event.entry.key.rpartition("@")[0] or event.entry.key)
                )
            )

    def about(self, *parts: str) -> list[tuple[str, str]]:
        return [each for each in self.written if any(part in each[1] for part in parts)]


def forged(name: str, template: dict[str, Any], namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    """Ready to be carried, by all that it says of itself."""
    meta = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "annotations": {keys.PENDING_CONTROLLERS: "[]"},
        "finalizers": [keys.SYNC_FINALIZER],
        **metadata,
    }
    kind = "FederatedObject" if namespace else "ClusterFederatedObject"
    spec = {"template": template, "placements": PLACED}
    return {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


async def refused(fed: Federation, resource: Resource, name: str, namespace: str | None, reason: str) -> None:
    """It says so itself, in a condition, cluster by cluster, and in an event."""

    async def told() -> bool:
        found = (await fed.client.get(resource, name, namespace)).get("status") or {}
        reasons = [each["reason"] for each in found.get("conditions") or () if each["type"] == "Propagated"]
        states = {each["status"] for each in found.get("clusters") or ()}
        return reasons == [reason] and states == {"ComputeResourceFailed"}

    await eventually(told, why=f"{name} says {reason}")

    async def noted() -> bool:
        events = (await fed.client.list(EVENTS)).items
        return any(e["reason"] == reason and e["involvedObject"]["name"] == name for e in events)

    await eventually(noted, why=f"an event on {name} says {reason}")


def config_map(name: str, namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    return {**MAP, "metadata": {"name": name, "namespace": namespace, **metadata}, "data": {"a": "b"}}


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "evil", "namespace": "kube-system"}}


@pytest.mark.parametrize(
    ("name", "template", "reason"),
    [
        # Cluster-admin in every member, from one namespace.
        (federated_name("root", f"clusterrolebindings.{RBAC}"), ROOT, "TemplateRefused"),
        ("root-configmaps", ROOT, "TemplateRefused"),
        (federated_name("evil", "secrets"), SECRET, "TemplateRefused"),
        ("evil-configmaps", config_map("evil", "kube-system"), "TemplateRefused"),
        ("evil-configmaps", config_map("evil-too"), "TemplateRefused"),
        ("evil-configmaps", config_map("evil", ownerReferences=[{"kind": "Node", "name": "n"}]), "TemplateRefused"),
        ("any-name", config_map("evil"), "TemplateRefused"),
        ("evil-widgets", {**config_map("evil"), "apiVersion": "example.com/v1", "kind": "Widget"}, "NoTypeConfig"),
        # All as it should be, but for a source that could have been its own.
        ("evil-configmaps", config_map("evil"), "SourceMissing"),
    ],
)
async def test_nothing_of_a_template_that_is_not_its_own_reaches_a_member(fed, name, template, reason):
    watching = Watching(fed)
    await fed.client.create(resources.FEDERATED_OBJECTS, forged(name, template))
    await refused(fed, resources.FEDERATED_OBJECTS, name, "default", reason)
    await holds(lambda: not watching.about("root", "evil"), 0.3)


async def test_a_cluster_wide_one_carries_nothing_into_namespaces(fed):
    watching = Watching(fed)
    for name, template in (
        ("evil-secrets", SECRET),
        (federated_name("root", f"clusterrolebindings.{RBAC}"), ROOT),
        (
            federated_name("kube-system", "namespaces"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        ),
    ):
        body = forged(name, template, namespace="")
        await fed.client.create(resources.CLUSTER_FEDERATED_OBJECTS, body)
        reason = "SourceMissing" if template is ROOT else "TemplateRefused"
        await refused(fed, resources.CLUSTER_FEDERATED_OBJECTS, name, None, reason)
    assert not watching.about("root", "evil", "namespaces/kube-system")


async def propagated(fed: Federation, *names: str) -> dict[tuple[str, str], str]:
    """The uids of the copies of these ConfigMaps."""
    for name in names:
        await fed.configure(name, {"of": name})
        await eventually(lambda name=name: _ok(fed, name))
    return await _uids(fed, *names)


async def _ok(fed: Federation, name: str) -> bool:
    return await fed.propagation(f"{name}-configmaps") == {"m1": "OK", "m2": "OK"}


async def _uids(fed: Federation, *names: str) -> dict[tuple[str, str], str]:
    return {
        (member, name): copy["metadata"]["uid"]
        for name in names
        for member, copy in (await fed.copies(name, CONFIGMAPS)).items()
    }


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"template": {"metadata": {"name": "victim"}, "data": {"of": "mallory"}}}},
        {"spec": {"template": {"metadata": {"namespace": "kube-system"}}}},
        {"spec": {"template": {"apiVersion": "v1", "kind": "Secret", "data": None}}},
        {"spec": {"template": {"metadata": {"name": "victim"}}}, "metadata": {"ownerReferences": None}},
    ],
)
async def test_a_template_that_was_changed_is_put_right_and_no_copy_moves(fed, change):
    before = await propagated(fed, "mine", "victim")
    watching = Watching(fed)
    await fed.client.patch(resources.FEDERATED_OBJECTS, "mine-configmaps", change, "default", kind=Patch.MERGE)

    async def restored() -> bool:
        found = await fed.federated("mine-configmaps")
        template = found["spec"]["template"]
        owned = bool(found["metadata"].get("ownerReferences"))
        return owned and (template["kind"], template["metadata"]["name"]) == ("ConfigMap", "mine")

    await eventually(restored)
    await eventually(lambda: _ok(fed, "mine"))
    assert await _uids(fed, "mine", "victim") == before
    assert not watching.about("victim", "kube-system/mine", "secrets/default")


async def test_a_deletion_takes_the_objects_own_copies_whatever_its_template_says(fed):
    before = await propagated(fed, "mine", "victim")
    await fed.stop_controllers()
    forged_name = {"spec": {"template": {"metadata": {"name": "victim"}}}}
    await fed.client.patch(resources.FEDERATED_OBJECTS, "mine-configmaps", forged_name, "default")
    await fed.client.delete(CONFIGMAPS, "mine", "default")
    watching = Watching(fed)
    await fed.start_controllers()

    async def gone() -> bool:
        return not await _uids(fed, "mine") and not await fed.exists(CONFIGMAPS, "mine", "default")

    await eventually(gone)
    assert await _uids(fed, "victim") == {key: uid for key, uid in before.items() if key[1] == "victim"}
    assert not watching.about("victim")


async def test_a_forged_object_that_is_deleted_takes_nothing_along(fed):
    """Neither what its template names nor what its own name does."""
    before = await propagated(fed, "victim")
    await fed.client.create(resources.FEDERATED_OBJECTS, forged("other-configmaps", config_map("victim")))
    await refused(fed, resources.FEDERATED_OBJECTS, "other-configmaps", "default", "TemplateRefused")
    watching = Watching(fed)
    await fed.client.delete(resources.FEDERATED_OBJECTS, "other-configmaps", "default")

    async def held() -> bool:
        conditions = (await fed.federated("other-configmaps"))["status"]["conditions"]
        return any(each["reason"] == "DeletionNotConfirmed" for each in conditions)

    await eventually(held)
    await holds(lambda: not watching.about("victim", "other"), 0.3)
    assert await _uids(fed, "victim") == before


async def test_a_status_is_written_to_the_source_of_that_very_name_and_namespace(fed):
    """The owner of a forged object is in another namespace, or of another name: nothing there changes."""
    await fed.client.create(SECRETS, {**SECRET, "metadata": {"name": "evil", "namespace": "kube-system"}})
    innocent = await fed.client.create(CONFIGMAPS, config_map("innocent"))
    secret = await fed.client.get(SECRETS, "evil", "kube-system")
    for name, owner in (("evil-secrets", secret), ("innocent-configmaps", innocent)):
        reference = {"apiVersion": "v1", "kind": owner["kind"], "controller": True}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        template = {"apiVersion": "v1", "kind": owner["kind"], "metadata": {"name": "x", "namespace": "default"}}
        body = forged(name, template, ownerReferences=[reference])
        body["metadata"]["annotations"][keys.SCHEDULING] = "forged"
        await fed.client.create(resources.FEDERATED_OBJECTS, body)

    async def looked_at():
        # Refused, or by then put right by the source of that name, or deleted for want of one: each is as good.
        listed = (await fed.client.list(resources.FEDERATED_OBJECTS, "default")).items
        mine = [each for each in listed if each["metadata"]["name"] in ("evil-secrets", "innocent-configmaps")]
        return all((each.get("status") or {}).get("conditions") for each in mine)

    await eventually(looked_at)
    await holds(lambda: _unchanged(fed, secret), 0.3)


async def _unchanged(fed: Federation, secret: dict[str, Any]) -> bool:
    return await fed.client.get(SECRETS, "evil", "kube-system") == secret


async def test_what_an_earlier_version_stored_with_our_marks_is_put_right_once_and_nothing_else_is_written(fed):
    """Templates carried what the source said of adoption; what had been true in members is not known any more."""
    await propagated(fed, "mine", "other")
    await fed.annotate(CONFIGMAPS, "mine", "default", **{keys.ORPHAN: "adopted"})
    await eventually(lambda: _annotated(fed, keys.ORPHAN))
    await eventually(lambda: _ok(fed, "mine"))
    await fed.stop_controllers()
    said = {"metadata": {"annotations": {keys.ADOPTED: "false"}}}
    await fed.client.patch(CONFIGMAPS, "mine", said, "default")
    await fed.client.patch(resources.FEDERATED_OBJECTS, "mine-configmaps", {"spec": {"template": said}}, "default")
    written = {keys.ADOPTED: "false", keys.PROPAGATED_ANNOTATION_KEYS: keys.ADOPTED}
    for name in fed.names:
        await fed.member(name).patch(CONFIGMAPS, "mine", {"metadata": {"annotations": written}}, "default")
    stored = await fed.federated("other-configmaps")
    watching = Watching(fed)
    await fed.start_controllers()

    async def clean() -> bool:
        template = (await fed.federated("mine-configmaps"))["spec"]["template"]
        found = [copy["metadata"]["annotations"] for copy in (await fed.copies("mine", CONFIGMAPS)).values()]
        return (
            template["metadata"]["annotations"] == {}
            and [each[keys.ADOPTED] for each in found] == ["true", "true"]
            and [each[keys.PROPAGATED_ANNOTATION_KEYS] for each in found] == ["", ""]
        )

    await eventually(clean)
    await eventually(lambda: _ok(fed, "mine"))
    assert len(watching.about("configmaps/default/mine")) == len(fed.names), "once in each"
    assert not watching.about("configmaps/default/other")
    assert await fed.federated("other-configmaps") == stored
    await fed.client.delete(CONFIGMAPS, "mine", "default")

    async def gone() -> bool:
        return not await fed.exists(resources.FEDERATED_OBJECTS, "mine-configmaps", "default")

    await eventually(gone)
    left = await fed.copies("mine", CONFIGMAPS)
    assert left.keys() == {"m1", "m2"}
    assert not any(keys.MANAGED_LABEL in (copy["metadata"].get("labels") or {}) for copy in left.values())


async def _annotated(fed: Federation, key: str) -> bool:
    return key in (await fed.federated("mine-configmaps"))["metadata"]["annotations"]
