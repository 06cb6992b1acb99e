"""Autoscale: the step that decides how autoscalers and the division of replicas work together. Not implemented yet."""

from argosy.api.conditions import EventReason
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.status.shortfalls import NOT_SERVED

__all__ = ["autoscale"]


def autoscale(inputs: PassInputs, state: State) -> State:
    """Holds the object: an autoscaler in every member would fight the division of replicas."""
    return state.stopping(HeldReason.NOT_SERVED, NOT_SERVED, EventReason.SCHEDULE_FEDERATED_OBJECT)
