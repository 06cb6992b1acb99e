"""Kinds of packages: found by entry point, and none of them, however broken, costs more than its own kind."""

import re
import types
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from argosy.plan.fields import Json
from argosy.plan.kinds import packages, registry
from argosy.plan.kinds.registry import kind_of
from argosy.plan.kinds.unmergeable import Unmergeable
from argosy.plugins.kinds import GROUP, Aggregation, Kind, Member, Observation, merged, named, sums

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "generation": 1}}
GADGET = {**WIDGET, "kind": "Gadget"}
RULE = {
    "statusRules": {"merge": {"sums": ["turns"]}, "health": {"phases": [{"path": "status.mood", "oneOf": ["good"]}]}}
}

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A package that describes the kind Widget with a value, or by whatever happens when it is looked up."""

    def made(value: Any = None, name: str = "Widget.example.com") -> None:
        module = types.ModuleType("theirs")
        if value is not None:
            module.__dict__["WIDGET"] = value
        monkeypatch.setitem(__import__("sys").modules, "theirs", module)
        points = [EntryPoint(name, "theirs:WIDGET", GROUP)]
        monkeypatch.setattr(packages, "entry_points", lambda group: points if group == GROUP else [])
        forget()

    yield made
    monkeypatch.undo()
    forget()


def forget() -> None:
    packages._offered.cache_clear()
    registry._described.cache_clear()


def status_of(source: Json, *statuses: Json) -> Json | None:
    observations = [Observation(f"m{at}", {"status": status}) for at, status in enumerate(statuses, 1)]
    return kind_of(source).aggregate(Aggregation(source, observations, True, "now"))


def lacks(source: Json, copy: Json) -> list[str]:
    look = kind_of(source).unfinished
    return [] if look is None else look(source, copy)


def test_a_kind_in_python(install: Install) -> None:
    def merge(members: list[Member], aggregation: Aggregation) -> Json:
        return {**sums(members, ("turns",)), "clusters": len(members)}

    install(
        Kind(
            aggregate=merged(merge),
            unfinished=lambda desired, copy: ["it turns"],
            references=lambda obj: named("Secret", "s"),
        )
    )
    assert status_of(WIDGET, {"turns": 1}, {"turns": 2}) == {"turns": 3, "clusters": 2}
    assert lacks(WIDGET, {}) == ["it turns"]
    assert [each.name for each in kind_of(WIDGET).references(WIDGET)] == ["s"]
    assert kind_of(GADGET) == Kind()


def test_a_kind_as_data(install: Install) -> None:
    install(RULE)
    assert status_of(WIDGET, {"turns": 1, "mood": "good"}, {"turns": 2, "mood": "bad"}) == {"turns": 3}
    assert lacks(WIDGET, {"status": {"mood": "bad"}}) == ["it is bad"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "AttributeError"),
        (7, "TypeError: a Kind or a rule is needed, not int"),
        ({"statusRules": {"merge": {"sum": ["turns"]}}}, "ValueError: a rule has no field statusRules.merge.sum"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_told_and_its_kind_is_never_finished(
    install: Install, value: Any, said: str
) -> None:
    install(value)
    [told] = lacks(WIDGET, {"status": {"mood": "good"}})
    assert told.startswith("theirs:WIDGET, which describes its kind, cannot be loaded: ")
    assert said in told
    assert status_of(WIDGET, {"replicas": 1}, {"replicas": 2}) == {"replicas": 3}
    assert lacks(GADGET, {}) == []


def test_functions_that_fail_cost_only_their_own_answer(install: Install) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("broken")

    install(Kind(aggregate=fails, unfinished=fails, references=fails))
    stored = {**WIDGET, "status": {"replicas": 7}}
    assert status_of(WIDGET, {"replicas": 1}, {"replicas": 2}) is None
    assert status_of(stored, {"replicas": 1}, {"replicas": 2}) == {"replicas": 7}
    assert lacks(WIDGET, {}) == ["theirs:WIDGET cannot tell whether it is finished: RuntimeError: broken"]
    assert list(kind_of(WIDGET).references(WIDGET)) == []
    install(Kind(aggregate=lambda aggregation: "fine"))
    assert status_of(stored, {"replicas": 1}, {"replicas": 2}) == {"replicas": 7}


def test_a_member_whose_status_a_package_cannot_merge_is_found_out(install: Install) -> None:
    def merge(members: list[Member], aggregation: Aggregation) -> Json:
        return {"turns": sum(each.status["turns"] + 0 for each in members)}

    install(Kind(aggregate=merged(merge)))
    assert status_of(WIDGET, {"turns": 1}, {"turns": 2}) == {"turns": 3}
    with pytest.raises(Unmergeable) as raised:
        status_of(WIDGET, {"turns": 1}, {"turns": "many"})
    assert list(raised.value.clusters) == ["m2"]
    stored = {**WIDGET, "status": {"turns": 7}}
    assert status_of(stored, {"turns": "many"}, {"turns": "few"}) == {"turns": 7}


def test_a_package_may_say_more_than_a_rule_that_comes_with_argosy_and_not_more_than_kubernetes(
    install: Install,
) -> None:
    install(Kind(unfinished=lambda desired, copy: ["ours"]), "Rollout.argoproj.io")
    assert lacks({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}, {}) == ["ours"]
    install(Kind(unfinished=lambda desired, copy: ["ours"]), "Deployment.apps")
    assert lacks({"apiVersion": "apps/v1", "kind": "Deployment"}, {}) == ["its newest change is not observed yet"]
    for version, kind in (("v1", "ConfigMap"), ("v1", "Namespace"), ("networking.k8s.io/v1", "NetworkPolicy")):
        install(Kind(unfinished=lambda desired, copy: ["ours"]), f"{kind}.{version.rpartition('/')[0]}".rstrip("."))
        assert kind_of({"apiVersion": version, "kind": kind}) == Kind()


def test_a_package_that_ends_the_process_when_it_is_imported_is_told(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(point: EntryPoint) -> Any:
        raise SystemExit(3)

    install(RULE)
    monkeypatch.setattr(EntryPoint, "load", ends)
    [told] = lacks(WIDGET, {})
    assert "cannot be loaded: SystemExit: 3" in told


def test_the_package_in_the_docs_does_what_it_says(install: Install) -> None:
    text = (Path(__file__).parents[3] / "docs" / "kinds.md").read_text()
    [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    world: dict[str, Any] = {}
    exec(block, world)
    install(world["FOUNTAIN"], "Fountain.example.com")
    fountain = {**WIDGET, "kind": "Fountain", "spec": {"jets": 3}}
    good, bad = {"jetsRunning": 3, "coldest": 14}, {"jetsRunning": 2, "coldest": 8}
    assert status_of(fountain, good, bad) == {"jetsRunning": 5, "average": 11}
    assert lacks(fountain, {"status": good}) == []
    assert lacks(fountain, {"status": bad}) == ["2 of 3 replicas are running"]
