"""The step of autoscalers: one in each member, where that can work."""

import pytest

from argosy.api import keys
from argosy.plan.followers.graph import Following, Leader
from argosy.plan.pipeline.autoscale import DIVIDED, NO_WORKLOAD, NOT_RETAINED, NOT_SERVED, autoscale
from argosy.plan.pipeline.held import Held, HeldReason
from tests.unit.plan.pipeline.steps import begun, inputs, taken
from tests.unit.plan.worlds import deployment

CENTRALIZED = deployment(metadata={"labels": {keys.HPA_MODE_LABEL: "centralized"}})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, NO_WORKLOAD),
        ({"following": Following()}, NO_WORKLOAD),
        ({"following": Following(target=Leader(divided=True, retains=True))}, DIVIDED),
        ({"following": Following(target=Leader())}, NOT_RETAINED),
        ({"following": Following(target=Leader(retains=True)), "source": CENTRALIZED}, NOT_SERVED),
    ],
)
def test_an_autoscaler_that_would_not_work_is_held(given, why):
    before = begun(inputs(**given))
    after = taken(autoscale, inputs(**given), before)
    assert after.stopped
    assert after.held == Held(HeldReason.NOT_SERVED, why)
    assert after.spec is before.spec


def test_where_members_scale_their_own_copies_each_has_its_autoscaler():
    given = inputs(following=Following(target=Leader(retains=True)))
    after = taken(autoscale, given, begun(given))
    assert not after.stopped
    assert after.held is None
