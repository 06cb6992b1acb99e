"""The step of autoscalers, which holds them for now."""

from argosy.plan.pipeline.autoscale import autoscale
from argosy.plan.pipeline.held import Held, HeldReason
from argosy.plan.status.shortfalls import NOT_SERVED
from tests.unit.plan.pipeline.steps import begun, inputs, taken


def test_an_autoscaler_is_held_and_goes_nowhere():
    before = begun(inputs())
    after = taken(autoscale, inputs(), before)
    assert after.stopped
    assert after.held == Held(HeldReason.NOT_SERVED, NOT_SERVED)
    assert after.spec is before.spec
