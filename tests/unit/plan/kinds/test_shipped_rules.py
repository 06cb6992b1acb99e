"""The rules that come with Argosy: beside each is what goes in and what comes out."""

from importlib import resources
from typing import Any

import pytest

from argosy.kube import yamlreader
from argosy.plan.fields import Json
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from argosy.plan.kinds.rules.rule import read_rule, shipped

FOLDER = resources.files("argosy.plan.kinds.rules").joinpath("shipped")
NAMES = sorted(each.name for each in FOLDER.iterdir() if ".vectors." not in each.name)
NOW = "2026-01-01T00:00:00Z"


def read(name: str) -> Any:
    return yamlreader.read(FOLDER.joinpath(name).read_bytes()).value


def vectors(part: str) -> list[Any]:
    found = []
    for name in NAMES:
        rule = read(name)
        head = {"apiVersion": f"{rule['group']}/v1", "kind": rule["kind"]}
        for number, case in enumerate(read(name.replace(".yaml", ".vectors.yaml"))[part]):
            found.append(pytest.param(head, case, id=f"{rule['kind']}-{case.get('name', number)}"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_is_found_by_the_name_of_its_file(name: str) -> None:
    rule = read_rule(read(name))
    assert name == f"{rule.kind.lower()}.{rule.group}.yaml"
    assert shipped(rule.group, rule.kind) == rule


@pytest.mark.parametrize(("head", "case"), vectors("merge"))
def test_many_statuses_make_one(head: Json, case: Json) -> None:
    source = {**head, "metadata": {"name": "x", "generation": 1}}
    assert without_times(merged(source, case["members"])) == case["status"]
    reverse = dict(reversed(case["members"].items()))
    assert merged(source, reverse) == merged(source, case["members"])


@pytest.mark.parametrize(("head", "case"), vectors("merge"))
def test_the_same_again_is_the_same(head: Json, case: Json) -> None:
    source = {**head, "metadata": {"name": "x", "generation": 1}}
    first = merged(source, case["members"])
    assert merged({**source, "status": first}, case["members"], "2027-01-01T00:00:00Z") == first


def merged(source: Json, members: Json, now: str = NOW) -> Json:
    observations = [
        Observation(name, {"status": status}, last_written_generation=int(status.get("observedGeneration", 0)))
        for name, status in sorted(members.items())
    ]
    status = kind_of(source).aggregate(Aggregation(source, observations, True, now))
    assert status is not None
    return status


def without_times(status: Json) -> Json:
    if "conditions" not in status:
        return status
    told = [{k: v for k, v in each.items() if not k.startswith("last")} for each in status["conditions"]]
    return {**status, "conditions": told}


@pytest.mark.parametrize(("head", "case"), vectors("health"))
def test_what_a_copy_lacks(head: Json, case: Json) -> None:
    look = kind_of(head).unfinished
    assert look is not None
    assert look({**head, **case["desired"]}, case["copy"]) == case["lacks"]


@pytest.mark.parametrize(("head", "case"), vectors("references"))
def test_what_an_object_needs(head: Json, case: Json) -> None:
    found = kind_of(head).references({**head, **case["object"]})
    assert sorted(f"{each.kind} {each.name}" for each in found) == sorted(case["names"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"group": "g", "kind": "K", "health": {}}, "no field health"),
        ({"group": "g", "kind": "K", "statusRules": {"merge": {"sum": ["x"]}}}, "no field statusRules.merge.sum"),
        (
            {"group": "g", "kind": "K", "references": [{"kind": "S", "path": "p", "name": "n"}]},
            "no field references.name",
        ),
        ({"group": "g", "kind": "K", "statusRules": {"merge": {"sums": "x"}}}, "statusRules.merge.sums"),
        ({"kind": "K"}, "group"),
    ],
)
def test_a_rule_with_a_mistake_is_refused(data: Json, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_rule(data)
