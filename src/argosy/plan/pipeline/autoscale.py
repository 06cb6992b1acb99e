"""Autoscale: the step that decides whether an autoscaler goes to members, each of which then scales its own copy.

It must not fight the division of replicas: the workload it is about has to be federated, not divided, and to leave the number of
replicas to the members. One autoscaler for all members together is not implemented yet.
"""

from typing import Final

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.plan.metadata import labels_of
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State

__all__ = ["autoscale"]

NOT_SERVED: Final = f"the label {keys.HPA_MODE_LABEL}={keys.CENTRALIZED} is not served yet"
NO_WORKLOAD: Final = "the workload it scales is not federated, or not yet"
DIVIDED: Final = (
    "the replicas of the workload it scales are divided between clusters, and an autoscaler in each of them would change"
    " its part: the workload's policy needs schedulingMode: Duplicate"
)
NOT_RETAINED: Final = (
    "the workload it scales has one number of replicas for all members: annotate it with"
    f' {keys.RETAIN_REPLICAS}: "true", so that members keep their own'
)


def autoscale(inputs: PassInputs, state: State) -> State:
    """Holds an autoscaler that would not work in members, and says why. Where nobody knows, it stays as it is."""
    if inputs.following is None and state.before is not None:
        before = state.held_before
        why = before.message if before is not None and before.reason == HeldReason.NOT_SERVED else ""
    else:
        why = _obstacle(inputs)
    if why:
        return state.stopping(HeldReason.NOT_SERVED, why, EventReason.SCHEDULE_FEDERATED_OBJECT)
    return state


def _obstacle(inputs: PassInputs) -> str:
    if labels_of(inputs.source).get(keys.HPA_MODE_LABEL) == keys.CENTRALIZED:
        return NOT_SERVED
    workload = inputs.following.target if inputs.following is not None else None
    if workload is None:
        return NO_WORKLOAD
    if workload.divided:
        return DIVIDED
    return "" if workload.retains else NOT_RETAINED
