"""The built-in kinds as a whole: what the core group serves, sealed objects, and input no sane client sends."""

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube import schema
from argosy.kube.schema import Type
from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.services.ips import Refused, ServiceAllocator
from argosy.server.registry import ALL_VERBS, Kind

Object = dict[str, Any]

KINDS = builtin_kinds()
CORE = {kind.kind: kind for kind in KINDS if kind.group == ""}


@pytest.mark.parametrize(
    ("kind", "plural", "short_names", "subresources"),
    [
        ("Binding", "bindings", "", ""),
        ("ConfigMap", "configmaps", "cm", ""),
        ("Endpoints", "endpoints", "ep", ""),
        ("Event", "events", "ev", ""),
        ("LimitRange", "limitranges", "limits", ""),
        ("Namespace", "namespaces", "ns", "finalize status"),
        ("Node", "nodes", "no", "proxy status"),
        ("PersistentVolume", "persistentvolumes", "pv", "status"),
        ("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "status"),
        (
            "Pod",
            "pods",
            "po",
            "attach binding ephemeralcontainers eviction exec log portforward proxy resize status",
        ),
        ("PodTemplate", "podtemplates", "", ""),
        ("ReplicationController", "replicationcontrollers", "rc", "scale status"),
        ("ResourceQuota", "resourcequotas", "quota", "status"),
        ("Secret", "secrets", "", ""),
        ("Service", "services", "svc", "proxy status"),
        ("ServiceAccount", "serviceaccounts", "sa", "token"),
    ],
)
def test_the_core_group_is_declared_as_in_kubernetes(
    kind: str, plural: str, short_names: str, subresources: str
) -> None:
    declared = CORE[kind]
    assert (declared.plural, declared.singular) == (plural, kind.lower())
    assert " ".join(declared.short_names) == short_names
    assert " ".join(sorted(declared.subresources)) == subresources
    assert declared.namespaced == (kind not in ("Namespace", "Node", "PersistentVolume"))
    assert declared.categories == (("all",) if kind in ("Pod", "ReplicationController", "Service") else ())
    expected = {"Binding": frozenset({"create"}), "Namespace": ALL_VERBS - {"deletecollection"}}
    assert declared.verbs == expected.get(kind, ALL_VERBS)
    assert declared.strategy.generation == (kind in ("Pod", "PodTemplate", "ReplicationController"))


def test_an_older_minor_has_no_kind_its_tables_lack() -> None:
    for minor in schema.minors():
        kinds = builtin_kinds(minor)
        assert {"Pod", "Deployment", "Job"} <= {kind.kind for kind in kinds}
        known = set(schema.load(minor).kinds())
        assert [kind.kind for kind in kinds if (kind.group, kind.version, kind.kind) not in known] == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_an_immutable_object_keeps_its_data_and_stays_immutable(kind: str) -> None:
    strategy = CORE[kind].strategy
    old = {"metadata": {"name": "a"}, "immutable": True, "data": {"a": "YQ=="}}
    strategy.default(old)
    relabelled = copy.deepcopy(old) | {"metadata": {"name": "a", "labels": {"b": "c"}}}
    assert strategy.validate_update(relabelled, old) == []
    changed = copy.deepcopy(old) | {"immutable": False, "data": {"a": "Yg=="}}
    assert [str(error) for error in strategy.validate_update(changed, old)] == [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


@pytest.mark.parametrize(("kind", "path"), [("ConfigMap", "[]"), ("Secret", "data")])
def test_a_mebibyte_of_data_is_the_most(kind: str, path: str) -> None:
    strategy = CORE[kind].strategy
    field = "binaryData" if kind == "ConfigMap" else "data"
    obj: Object = {"metadata": {"name": "a"}, field: {"a": "AAAA" * (2**20 // 3) + "AA=="}}
    assert strategy.validate(obj) == []
    obj[field]["b"] = "AA=="
    assert [str(error) for error in strategy.validate(obj)] == [f"{path}: Too long: may not be more than 1048576 bytes"]


def test_a_bound_claim_may_grow_and_not_shrink_below_what_it_has() -> None:
    strategy = CORE["PersistentVolumeClaim"].strategy

    def claim(size: str) -> Object:
        obj = {
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
        }
        strategy.default(obj)
        return obj

    assert strategy.validate_update(claim("2Gi"), claim("1Gi")) == []
    assert strategy.validate_update(claim("1500Mi"), claim("2Gi")) == []
    assert [str(error) for error in strategy.validate_update(claim("1Gi"), claim("2Gi"))] == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


@pytest.mark.parametrize(
    ("status", "deleting", "causes"),
    [
        ("Active", False, []),
        ("Terminating", True, []),
        (
            "Terminating",
            False,
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
        ),
        (
            "Active",
            True,
            ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
        ),
    ],
)
def test_the_phase_of_a_namespace_follows_its_deletion(status: str, deleting: bool, causes: list[str]) -> None:
    metadata = {"name": "a"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})
    new = {"metadata": metadata, "spec": {}, "status": {"phase": status}}
    assert [str(error) for error in CORE["Namespace"].strategy.validate_status(new, new)] == causes


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "Service",
            {"clusterIP": "None", "sessionAffinity": "ClientIP"},
            "spec.SessionAffinity is ignored for headless services",
        ),
        ("Service", {"externalName": "x"}, 'spec.externalName is ignored when spec.type is not "ExternalName"'),
        ("Node", {"externalID": "x"}, "spec.externalID: this field is deprecated, and is unused by Kubernetes"),
        ("PersistentVolume", {"rbd": {}}, "spec.rbd: deprecated in v1.28, non-functional in v1.31+"),
        ("ConfigMap", {}, None),
    ],
)
def test_fields_without_effect_are_warned_about(kind: str, spec: Object, expected: str | None) -> None:
    obj = {"metadata": {"name": "a"}, "spec": spec}
    CORE[kind].strategy.default(obj)
    assert CORE[kind].strategy.warnings(obj) == ([expected] if expected else [])


class Nonsense:
    """Values of the right JSON types and no sense: what passes decoding and reaches defaulting and validation."""

    TEXTS = ("", "a", "A b", "None", "10.0.0.1", "::", "/", "..", "=", "0/0", "é", "a" * 300, "latest", "{", "[1]")
    NUMBERS = (0, 1, -1, 80, 65536, 2**31 - 1, -(2**31))
    QUANTITIES = ("0", "1", "-1", "1Gi", "0.1", "1e3", "1n")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, type: Type, depth: int) -> Any:
        make: dict[str, Callable[[], Any]] = {
            "string": lambda: self.random.choice(self.TEXTS),
            "integer": lambda: self.random.choice(self.NUMBERS),
            "number": lambda: self.random.choice(self.NUMBERS),
            "boolean": lambda: self.random.random() < 0.5,
            "quantity": lambda: self.random.choice(self.QUANTITIES),
            "int-or-string": lambda: self.random.choice((*self.TEXTS, *self.NUMBERS)),
            "bytes": lambda: self.random.choice(("", "YQ==", "e30=")),
            "time": lambda: "2026-01-01T00:00:00Z",
            "micro-time": lambda: "2026-01-01T00:00:00.000000Z",
            "object": lambda: self.object(type, depth),
            "array": lambda: [self.value(type.item, depth - 1) for _ in range(self.random.randrange(3))],
            "map": lambda: {self.random.choice(self.TEXTS): self.value(type.item, depth - 1) for _ in range(2)},
        }
        return make.get(type.kind, dict)()

    def object(self, type: Type, depth: int) -> Object:
        if depth <= 0:
            return {}
        return {
            name: self.value(field, depth - 1)
            for name, field in type.fields.items()
            if name not in ("apiVersion", "kind") and self.random.random() < 0.5
        }

    def whole(self, kind: Kind) -> Object:
        obj = self.object(kind.strategy.type, 9)  # type: ignore[attr-defined]
        return {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "namespace": "b"}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.api_version}")
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nonsense_of_the_right_types_is_answered_with_causes(kind: Kind, seed: int) -> None:
    nonsense, strategy = Nonsense(seed), kind.strategy
    new, old = nonsense.whole(kind), nonsense.whole(kind)
    for obj in (new, old):
        assert strategy.decode(obj).mistyped == ()
        obj["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        strategy.default(obj)
        strategy.prepare_create(obj)
    if kind.kind == "Service":
        with suppress(Refused):
            ServiceAllocator().allocate(new, old)
    for error in strategy.validate(new):
        assert str(error)
    strategy.warnings(new)
    for prepare, validate in (
        (strategy.prepare_update, strategy.validate_update),
        (strategy.prepare_status, strategy.validate_status),
    ):
        again = nonsense.whole(kind)
        strategy.decode(again)
        strategy.default(again)
        prepare(again, copy.deepcopy(old))
        for error in validate(again, old):
            assert str(error)
