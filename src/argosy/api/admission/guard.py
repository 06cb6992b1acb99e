"""Guard: who may write the objects of the controllers: federated objects, collected statuses, the status of clusters.

RBAC alone cannot express this: a user with all rights has these as well. The guard checks the user and what is changed.

* The controllers, the API server's administrators (the group system:masters), and those parts of Kubernetes that delete and
  migrate objects of every kind may write all of it.
* An external step of the pipeline may change a federated object's placements, overrides and annotations, if RBAC gives it
  `update` on `federatedobjects/placements` (a resource that exists only for this check): never the template, nor the
  controllers' own entries.
* A user who may update a federated object by RBAC may only confirm a deletion that is held.

Implemented twice: as an admission policy in CEL, for kube-apiserver, and as `refusal`, for Argosy's own API server.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import orjson

from argosy.api import keys, rights
from argosy.api.predicates import literal

__all__ = ["NAME", "PLACEMENTS", "Write", "is_guarded", "manifests", "refusal"]

NAME: Final = "argosy-federated-objects"
#: The right of external pipeline steps: to update this subresource of federated objects.
PLACEMENTS: Final = "placements"

_API_VERSION = "admissionregistration.k8s.io/v1"
_MASTERS = "system:masters"
_FEDERATED = ("federatedobjects", "clusterfederatedobjects")
_VERSIONS = ("propagatedversions", "clusterpropagatedversions")
#: With their subresources.
_GUARDED = (
    *_FEDERATED,
    *(f"{plural}/status" for plural in _FEDERATED),
    *_VERSIONS,
    *(f"{plural}/status" for plural in _VERSIONS),
    "collectedstatuses",
    "clustercollectedstatuses",
    "federatedclusters/status",
)
#: With credentials of their own, and (the last one) without.
_KUBERNETES = (
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:storage-version-migrator-controller",
    "system:kube-controller-manager",
)
_MESSAGE = (
    "federated objects and what is reported of them are written by Argosy's controllers alone: change the object they were"
    " made from, or its policy"
)
#: Further fields of a federated object that only the controllers change.
_METADATA = ("labels", "finalizers", "ownerReferences")
_SPEC = ("template", "follows")
#: Lists with an entry for each step of the pipeline.
_ENTRIES = ("placements", "overrides")
#: Annotations in which the controllers keep their state.
_NOTES = (keys.ARGOSY_PREFIX, keys.INTERNAL_PREFIX, keys.FEDERATE_PREFIX)


class Write(msgspec.Struct, frozen=True):
    """A write of an object of a guarded kind; `new` is None for a delete, `old` for a create."""

    user: str
    groups: tuple[str, ...]
    resource: str
    subresource: str
    new: dict[str, Any] | None
    old: dict[str, Any] | None


def is_guarded(group: str, resource: str, subresource: str) -> bool:
    return group == keys.GROUP and (f"{resource}/{subresource}" if subresource else resource) in _GUARDED


def refusal(write: Write, controllers: Sequence[rights.Subject], may_place: Callable[[], bool]) -> str:
    """Why the write is refused, empty if it is not. `controllers` are the subjects of their roles; `may_place` checks the right
    to `PLACEMENTS` of this object."""
    users, groups = _known(controllers)
    if write.user in users or not groups.isdisjoint(write.groups) or _confirms(write):
        return ""
    return "" if _places(write) and may_place() else _MESSAGE


def _known(controllers: Sequence[rights.Subject]) -> tuple[set[str], set[str]]:
    users, groups = rights.identities(controllers)
    return users | {*_KUBERNETES}, groups | {_MASTERS}


def _confirms(write: Write) -> bool:
    if not _updates_itself(write) or write.new is None or write.old is None:
        return False
    before, after = _annotations(write.old), _annotations(write.new)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return _same(write.new.get("spec"), write.old.get("spec")) and changed <= {keys.CONFIRM_DELETION}


def _places(write: Write) -> bool:
    if not _updates_itself(write) or write.new is None or write.old is None:
        return False
    before, after = write.old.get("spec") or {}, write.new.get("spec") or {}
    if not _is_shaped(before) or not _is_shaped(after):
        return False
    noted = [
        {key: value for key, value in _annotations(obj).items() if key.startswith(_NOTES)}
        for obj in (write.old, write.new)
    ]
    return (
        all(_same(before.get(field), after.get(field)) for field in _SPEC)
        and all(_same(_own(before.get(field)), _own(after.get(field))) for field in _ENTRIES)
        and noted[0] == noted[1]
    )


def _updates_itself(write: Write) -> bool:
    if write.resource not in _FEDERATED or write.subresource or write.new is None or write.old is None:
        return False
    before, after = write.old["metadata"], write.new["metadata"]
    return all(_same(before.get(field), after.get(field)) for field in _METADATA)


def _is_shaped(spec: Any) -> bool:
    """Whether there are valid entries: admission comes before the schema, so a spec may be anything."""
    if not isinstance(spec, dict):
        return False
    lists = [spec[field] for field in _ENTRIES if spec.get(field) is not None]
    return all(isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries) for entries in lists)


def _own(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [entry for entry in entries or () if entry.get("controller") in keys.OWN_STEPS]


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _same(one: Any, other: Any) -> bool:
    """Compared as bytes: in Python `1` and `True` are equal."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


# The same in CEL.


def manifests(subjects: Sequence[rights.Subject]) -> list[dict[str, Any]]:
    """The policy and its binding; `subjects` are those of the controllers' roles."""
    metadata = {"name": NAME, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
    rule = {
        "apiGroups": [keys.GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": list(_GUARDED),
    }
    users, groups = _known(subjects)
    known = f"request.userInfo.username in {_list(users)} || request.userInfo.groups.exists(g, g in {_list(groups)})"
    return [
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "variables": [
                    {"name": "known", "expression": known},
                    {"name": "updates", "expression": _UPDATES},
                    {"name": "confirms", "expression": _CONFIRMS},
                    {"name": "places", "expression": _PLACES},
                ],
                "validations": [
                    {
                        "expression": "variables.known || variables.confirms || variables.places",
                        "message": _MESSAGE,
                        "reason": "Forbidden",
                    }
                ],
            },
        },
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]


def _list(names: Sequence[str] | set[str]) -> str:
    return "[" + ", ".join(literal(name) for name in sorted(names)) + "]"


def _unchanged(path: str, field: str) -> str:
    return f"object.{path}.?{field} == oldObject.{path}.?{field}"


def _own_entries(obj: str, field: str) -> str:
    return f"{obj}.spec.?{field}.orValue([]).filter(e, e.controller in {_list(keys.OWN_STEPS)})"


_OLD, _NEW = "oldObject.metadata.?annotations.orValue({})", "object.metadata.?annotations.orValue({})"
_UPDATES: Final = " && ".join(
    [
        f"request.operation == 'UPDATE' && request.resource.resource in {_list(_FEDERATED)}",
        "request.?subResource.orValue('') == ''",
        *(_unchanged("metadata", field) for field in _METADATA),
    ]
)
_CONFIRMATION = f"k == {literal(keys.CONFIRM_DELETION)}"
_CONFIRMS: Final = " && ".join(
    [
        "variables.updates && object.spec == oldObject.spec",
        f"{_NEW}.all(k, {_CONFIRMATION} || (k in {_OLD} && {_OLD}[k] == {_NEW}[k]))",
        f"{_OLD}.all(k, {_CONFIRMATION} || k in {_NEW})",
    ]
)
_FREE = " && ".join(f"!k.startsWith({literal(prefix)})" for prefix in _NOTES)
_PLACES: Final = " && ".join(
    [
        "variables.updates",
        *(_unchanged("spec", field) for field in _SPEC),
        *(f"{_own_entries('object', field)} == {_own_entries('oldObject', field)}" for field in _ENTRIES),
        f"{_NEW}.all(k, ({_FREE}) || (k in {_OLD} && {_OLD}[k] == {_NEW}[k]))",
        f"{_OLD}.all(k, ({_FREE}) || k in {_NEW})",
        f"authorizer.group({literal(keys.GROUP)}).resource(request.resource.resource).subresource({literal(PLACEMENTS)})"
        ".namespace(request.?namespace.orValue('')).name(object.metadata.name).check('update').allowed()",
    ]
)
