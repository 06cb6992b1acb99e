"""What a single step is given in tests: the inputs of a pass, and the state the step begins with."""

from typing import Any

from argosy.plan.pipeline.federate import federate
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.scheduling.evaluation import without_remote_plugins
from tests.unit.plan.worlds import DEPLOYMENTS, deployment, fleet, policy


def inputs(**given: Any) -> PassInputs:
    """The Deployment default/web with the policy `all` and three members, unless something else is given."""
    defaults = {"source": deployment(), "type_config": DEPLOYMENTS, "fleet": fleet(), "policy": policy()}
    return PassInputs(**{**defaults, **given})


def begun(given: PassInputs) -> State:
    """As the first step leaves it."""
    state = federate(given)
    assert state is not None
    return state


def taken(step: Any, given: PassInputs, state: State | None = None) -> State:
    """The state after the step, where no remote plugin can be asked."""
    result = step(given, begun(given) if state is None else state)
    after = result if isinstance(result, State) else without_remote_plugins(result)
    assert isinstance(after, State)
    return after
