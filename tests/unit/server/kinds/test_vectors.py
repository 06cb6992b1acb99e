"""Objects of all groups but the core one, with what kube-apiserver 1.36 answered to each: stored, or refused and why.

A case in `vectors/` creates `object`; with `update` (a merge patch) or `status` it is written to afterwards, `first`
being earlier writes to its status. `stored` is the whole answer but for metadata the server makes up; `causes` are the
causes of the 422 in their order, or the one message of a 400.
"""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kube import mergepatch, names
from argosy.server.kinds import builtin_kinds
from argosy.server.registry import Kind

VECTORS = Path(__file__).parent / "vectors"
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}

Object = dict[str, Any]


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(VECTORS.glob("*.yaml"))
        for case in yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    ]


CASES = cases()


def decoded(kind: Kind, obj: Object) -> Object:
    obj = copy.deepcopy(obj)
    found = kind.strategy.decode(obj)
    if found.mistyped or found.unknown:
        raise ValueError(*found.mistyped, *found.unknown)
    kind.strategy.default(obj)
    return obj


def create(kind: Kind, obj: Object) -> tuple[Object, list[str]]:
    obj = decoded(kind, obj)
    metadata = obj["metadata"]
    metadata["uid"] = "the-uid"
    if kind.namespaced:
        metadata.setdefault("namespace", "probe")
    kind.strategy.prepare_create(obj)
    wrong = [
        f'metadata.name: Invalid value: "{metadata["name"]}": {message}'
        for message in names.RULES[kind.strategy.name_rule](metadata["name"])
    ]
    return obj, wrong + [str(error) for error in kind.strategy.validate(obj)]


def update(kind: Kind, stored: Object, patch: Object) -> tuple[Object, list[str]]:
    new = decoded(kind, mergepatch.apply(stored, patch))
    kind.strategy.prepare_update(new, copy.deepcopy(stored))
    return new, [str(error) for error in kind.strategy.validate_update(new, stored)]


def update_status(kind: Kind, stored: Object, status: Object) -> tuple[Object, list[str]]:
    new = decoded(kind, mergepatch.apply(stored, {"status": status}))
    kind.strategy.prepare_status(new, copy.deepcopy(stored))
    return new, [str(error) for error in kind.strategy.validate_status(new, stored)]


def answer(kind: Kind, case: Object) -> tuple[Object, list[str]]:
    obj, causes = create(kind, case["object"])
    for write in case.get("first", ()):
        obj, causes = update_status(kind, obj, write["status"])
    if "update" in case:
        assert causes == []
        return update(kind, obj, case["update"])
    if "status" in case:
        assert causes == []
        return update_status(kind, obj, case["status"])
    return obj, causes


def comparable(cause: str) -> str:
    """Whole specs are shown in Kubernetes' internal notation, with every field there is: those compare without them."""
    field, words, rest = cause.split(": ", 2) if cause.count(": ") > 1 else (cause, "", "")
    value, _, detail = rest.rpartition(": ")
    return f"{field}: {words}: {detail}" if len(value) > 100 and value[0] in "{[" else cause


def differing(stored: Any, ours: Any, path: str = "") -> list[str]:
    if isinstance(stored, dict) and isinstance(ours, dict):
        keys = sorted(stored.keys() | ours.keys())
        return [line for key in keys for line in differing(stored.get(key, ...), ours.get(key, ...), f"{path}.{key}")]
    return [] if stored == ours else [f"{path}: kubernetes {stored!r}, here {ours!r}"]


@pytest.mark.parametrize("case", CASES)
def test_answers_as_kubernetes_does(case: Object) -> None:
    kind = KINDS[case["object"]["apiVersion"], case["object"]["kind"]]
    obj, causes = answer(kind, case)
    assert [comparable(c) for c in causes] == [comparable(c) for c in case.get("causes", [])]
    if "stored" in case:
        obj["metadata"].pop("uid")
        if "status" not in case["stored"] and kind.plural == "customresourcedefinitions":
            obj.pop("status")  # Conditions and accepted names are another module's.
        assert differing(case["stored"], obj) == []


@pytest.mark.parametrize("case", [case for case in CASES if "stored" in case.values[0]])
def test_what_is_stored_is_stored_again_unchanged(case: Object) -> None:
    kind = KINDS[case["object"]["apiVersion"], case["object"]["kind"]]
    obj, _ = answer(kind, case)
    again, causes = update(kind, obj, {})
    assert causes == []
    assert differing(obj, again) == []
    assert not kind.strategy.generation_grows(again, obj)
