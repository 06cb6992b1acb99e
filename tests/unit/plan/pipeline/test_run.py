"""The way through the table of steps: order, others' steps, where it stops."""

import msgspec
import pytest

from argosy.api import keys
from argosy.plan.pipeline import pending, run
from argosy.plan.pipeline.held import HeldReason
from tests.unit.plan.pipeline.steps import inputs
from tests.unit.plan.worlds import DEPLOYMENTS

THEIRS = "example.com/auditor"


def with_controllers(*controllers):
    spec = msgspec.structs.replace(DEPLOYMENTS.spec, controllers=controllers)
    return inputs(type_config=msgspec.structs.replace(DEPLOYMENTS, spec=spec))


def marking(name, **changed):
    """A step that leaves its name in an annotation."""

    def step(given, state):
        seen = f"{state.annotations.get('seen', '')}{name}"
        return msgspec.structs.replace(state.with_annotations({**state.annotations, "seen": seen}), **changed)

    return step


@pytest.fixture
def steps(monkeypatch):
    def use(**table):
        monkeypatch.setattr(run, "STEPS", table)

    return use


def test_a_step_is_one_line_in_the_table_and_runs_where_the_type_config_lists_it(steps):
    steps(a=marking("a"), b=marking("b"), unlisted=marking("x"))
    outcome = run.run_locally(with_controllers(("b",), ("a",)))
    assert outcome.object["metadata"]["annotations"]["seen"] == "ba"
    assert outcome.object["metadata"]["annotations"][keys.PENDING_CONTROLLERS] == "[]"


def test_it_stops_in_front_of_somebody_elses_step(steps):
    steps(a=marking("a"), b=marking("b"))
    outcome = run.run_locally(with_controllers(("a",), (THEIRS,), ("b",)))
    annotations = outcome.object["metadata"]["annotations"]
    assert annotations["seen"] == "a"
    assert pending.parse(annotations[keys.PENDING_CONTROLLERS]) == ((THEIRS,), ("b",))


def test_a_step_that_stops_the_pass_stays_pending(steps):
    def stopping(given, state):
        return state.stopping(HeldReason.NOT_SERVED, "no", "Event")

    steps(a=stopping, b=marking("b"))
    outcome = run.run_locally(with_controllers(("a",), ("b",)))
    annotations = outcome.object["metadata"]["annotations"]
    assert "seen" not in annotations
    assert outcome.held.message == "no"
    assert pending.parse(annotations[keys.PENDING_CONTROLLERS]) == (("a",), ("b",))


def test_a_step_that_may_ask_is_a_generator(steps):
    def asking(given, state):
        yield from ()
        return marking("a")(given, state)

    steps(a=asking)
    assert run.run_locally(with_controllers(("a",))).object["metadata"]["annotations"]["seen"] == "a"


def test_null_is_an_empty_list():
    """Go writes it so, and others' steps are written in Go."""
    assert pending.parse("null") == pending.parse("[null]") == pending.parse("[]") == ()
    assert pending.parse('[null,["a"]]') == (("a",),)
    assert pending.finished("null")
