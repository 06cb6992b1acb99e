"""The first step: whether a source gets a federated object, and how that begins."""

import pytest

from argosy.api import keys
from argosy.plan.pipeline.federate import federate
from argosy.plan.pipeline.held import Held, with_held
from argosy.plan.pipeline.template import template_of
from tests.unit.plan.pipeline.steps import begun, inputs
from tests.unit.plan.worlds import NAMESPACES, deployment

UNNAMED = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})


def existing(**metadata):
    made = begun(inputs()).base
    return {**made, "metadata": {**made["metadata"], **metadata}}


def test_the_state_begins_with_the_template_and_nothing_decided():
    state = begun(inputs())
    assert state.before is None
    assert state.spec == {"template": template_of(deployment())}
    assert (state.held, state.notes, state.decision, state.stopped) == (None, (), None, False)


@pytest.mark.parametrize(
    "given",
    [
        {"source": UNNAMED},
        {"source": deployment(metadata={"annotations": {keys.NO_FEDERATED_RESOURCE: "1"}}), "wanted": True},
        {"source": deployment(metadata={"namespace": keys.SYSTEM_NAMESPACE}), "wanted": True},
        {"existing": existing(deletionTimestamp="2026-01-01T00:00:00Z")},
    ],
    ids=["no policy", "opted out", "system namespace", "being deleted"],
)
def test_there_is_no_federated_object_of(given):
    assert federate(inputs(**given)) is None


@pytest.mark.parametrize("given", [{"wanted": True}, {"existing": existing()}], ids=["led by another", "made before"])
def test_without_a_policy_there_is_one_where_it_is(given):
    assert federate(inputs(source=UNNAMED, **given)) is not None


def test_a_namespace_asks_for_its_own_propagation_unless_it_opts_out():
    def namespace(**metadata):
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u-2", **metadata}}

    assert federate(inputs(source=namespace(), type_config=NAMESPACES)) is not None
    opted_out = namespace(annotations={keys.NO_AUTO_PROPAGATION: "true"})
    assert federate(inputs(source=opted_out, type_config=NAMESPACES)) is None


def test_what_is_stored_is_compared_without_who_manages_its_fields():
    state = begun(inputs(existing=existing(managedFields=[{"manager": "x"}], generation=3)))
    assert "managedFields" not in state.before["metadata"]
    assert state.base == state.before


def test_why_it_was_held_is_read_from_what_is_stored():
    held = Held("Unschedulable", "no room")
    stored = existing()
    stored["metadata"]["annotations"] = with_held(stored["metadata"]["annotations"], held)
    state = begun(inputs(existing=stored))
    assert (state.held_before, state.held) == (held, None)
