"""Autoscale: the step that decides how autoscalers and the division of replicas work together. Not implemented yet."""

from argosy.api.conditions import EventReason
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State

__all__ = ["autoscale"]

NOT_SERVED = "autoscalers are not propagated yet: their step of the pipeline is not implemented"


def autoscale(inputs: PassInputs, state: State) -> State:
    """Holds the object: an autoscaler in every member would fight the division of replicas."""
    return state.stopping(HeldReason.NOT_SERVED, NOT_SERVED, EventReason.SCHEDULE_FEDERATED_OBJECT)
