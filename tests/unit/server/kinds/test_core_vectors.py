"""Objects of the core group, with what kube-apiserver 1.36 answered to each: stored, or refused and why.

A case in `core/` creates `object`, and with `update` (a merge patch) writes to it afterwards. `stored` is the whole answer
but for metadata the server makes up; chosen addresses, ports and times stand as IP, PORT and New Year. `causes` are the
different causes of the 422 in sorted order, cut at the first line (what follows in Kubernetes is a diff of its internal
structs), or the message of a 400. Left out of `stored` is what a cluster's controllers or kubelets are needed for: the
token volume of a pod, the protection finalizers of volumes and the not-ready taint of a new node.
"""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kube import mergepatch
from argosy.server.fielderrors import FieldError
from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.services.ips import Refused, ServiceAllocator
from argosy.server.registry import Kind

NOW = "2026-01-01T00:00:00Z"
VECTORS = Path(__file__).parent / "core"
KINDS = {kind.kind: kind for kind in builtin_kinds() if kind.group == ""}

Object = dict[str, Any]


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(VECTORS.glob("*.yaml"))
        for case in yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    ]


CASES = cases()


class World:
    """The part of a server the strategies need: names, times and a service allocator."""

    def __init__(self) -> None:
        self.allocator = ServiceAllocator()

    def create(self, kind: Kind, given: Object) -> tuple[Object, list[str]]:
        obj = copy.deepcopy(given)
        found = kind.strategy.decode(obj)
        if found.mistyped:
            return obj, list(found.mistyped)
        if kind.namespaced:
            obj["metadata"].setdefault("namespace", "probe")
        obj["metadata"]["creationTimestamp"] = NOW
        kind.strategy.default(obj)
        kind.strategy.prepare_create(obj)
        errors = self._allocate(obj, None) if kind.kind == "Service" else []
        return obj, [str(error) for error in errors or kind.strategy.validate(obj)]

    def update(self, kind: Kind, stored: Object, patch: Object) -> tuple[Object, list[str]]:
        new = mergepatch.apply(stored, patch)
        assert kind.strategy.decode(new).mistyped == ()
        kind.strategy.default(new)
        kind.strategy.prepare_update(new, copy.deepcopy(stored))
        errors = self._allocate(new, stored) if kind.kind == "Service" else []
        return new, [str(error) for error in errors or kind.strategy.validate_update(new, stored)]

    def _allocate(self, new: Object, old: Object | None) -> list[FieldError]:
        try:
            self.allocator.allocate(new, old)
        except Refused as refused:
            return refused.errors
        return []


def masked(obj: Object) -> Object:
    """Without what differs from server to server."""
    obj = copy.deepcopy(obj)
    for name in ("namespace", "creationTimestamp"):
        obj["metadata"].pop(name, None)
    spec = obj.get("spec") or {}
    if obj["kind"] == "Service":
        if spec.get("clusterIP") not in (None, "None"):
            spec["clusterIP"], spec["clusterIPs"] = "IP", ["IP"]
        for holder, name in [(spec, "healthCheckNodePort"), *((port, "nodePort") for port in spec.get("ports") or ())]:
            if name in holder:
                holder[name] = "PORT"
    return obj


def differing(stored: Any, ours: Any, path: str = "") -> list[str]:
    if isinstance(stored, dict) and isinstance(ours, dict):
        keys = sorted(stored.keys() | ours.keys())
        return [line for key in keys for line in differing(stored.get(key, ...), ours.get(key, ...), f"{path}.{key}")]
    if isinstance(stored, list) and isinstance(ours, list) and len(stored) == len(ours):
        pairs = enumerate(zip(stored, ours, strict=True))
        return [line for i, (one, other) in pairs for line in differing(one, other, f"{path}[{i}]")]
    return [] if stored == ours else [f"{path}: kubernetes {stored!r}, here {ours!r}"]


def answer(world: World, kind: Kind, case: Object) -> tuple[Object, list[str]]:
    obj, causes = world.create(kind, case["object"])
    if "update" not in case:
        return obj, causes
    assert causes == []
    return world.update(kind, obj, case["update"])


@pytest.mark.parametrize("case", CASES)
def test_answers_as_kubernetes_does(case: Object) -> None:
    obj, causes = answer(World(), KINDS[case["object"]["kind"]], case)
    assert sorted({cause.partition("\n")[0] for cause in causes}) == case.get("causes", [])
    if "stored" in case:
        assert differing(case["stored"], masked(obj)) == []


@pytest.mark.parametrize("case", [case for case in CASES if "stored" in case.values[0]])
def test_what_is_stored_is_stored_again_unchanged(case: Object) -> None:
    world, kind = World(), KINDS[case["object"]["kind"]]
    obj, _ = answer(world, kind, case)
    again, causes = world.update(kind, obj, {})
    assert causes == []
    assert differing(obj, again) == []
