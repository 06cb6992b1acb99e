"""Budget: a PodDisruptionBudget of workloads that are divided is divided with them (`replicas.budget`).

Not a step that type configs list: it belongs to following. What override policies say comes after it.
"""

from typing import Final

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.plan import fields
from argosy.plan.copies.placement import entry_of, with_overrides
from argosy.plan.fields import Json
from argosy.plan.metadata import without_annotations
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.replicas.budget import MAX_UNAVAILABLE, MIN_AVAILABLE, Budget, budget_of

__all__ = ["divide_budget"]

#: How many clusters are named.
_NAMED: Final = 8


def divide_budget(inputs: PassInputs, state: State) -> State:
    """As long as nobody knows all of its workloads, it stays divided as it is, if that is still what it asks for."""
    following = inputs.following
    if following is None or following.unknown:
        return state if _is_of_its_fields(state.spec) else _undivided(state)
    if following.selected is None:
        return _undivided(state)
    budget = _budget(state.spec["template"], inputs)
    patches = {}
    if budget is not None:
        pointer = f"/spec/{budget.field}"
        patches = {name: [_replacing(pointer, number)] for name, number in budget.shares.items()}
    spec = with_overrides(state.spec, keys.FOLLOWER_CONTROLLER, patches)
    if not patches and keys.BUDGET not in state.annotations:
        return state.with_spec(spec)
    annotations = without_annotations(state.annotations, keys.BUDGET)
    if budget is None:
        return state.with_spec(spec).with_annotations(annotations)
    text = _text(budget)
    told = state.with_spec(spec).with_annotations({**annotations, keys.BUDGET: text})
    if state.annotations.get(keys.BUDGET) == text:
        return told
    return told.noting("Warning" if budget.blocked else "Normal", EventReason.BUDGET_DIVIDED, text)


def _undivided(state: State) -> State:
    """Every cluster gets it as it is."""
    if keys.BUDGET not in state.annotations:
        return state
    spec = with_overrides(state.spec, keys.FOLLOWER_CONTROLLER, {})
    return state.with_spec(spec).with_annotations(without_annotations(state.annotations, keys.BUDGET))


def _is_of_its_fields(spec: Json) -> bool:
    """Whether the shares are of a number that the budget has."""
    clusters = entry_of(spec, "overrides", keys.FOLLOWER_CONTROLLER).get("clusters") or ()
    paths = {patch["path"] for each in clusters for patch in each["patches"]}
    return all(fields.number(spec["template"], path.strip("/").replace("/", ".")) is not None for path in paths)


def _budget(template: Json, inputs: PassInputs) -> Budget | None:
    following = inputs.following
    for field in (MIN_AVAILABLE, MAX_UNAVAILABLE):
        number = fields.number(template, f"spec.{field}")
        if number is not None and following is not None and following.selected is not None:
            return budget_of(field, number, following.selected)
    return None


def _replacing(pointer: str, number: int) -> Json:
    return {"op": "replace", "path": pointer, "value": number}


def _text(budget: Budget) -> str:
    pods = "pod" if budget.together == 1 else "pods"
    text = f"divided with its workloads: {budget.together} {pods} may be away at once, in all clusters together"
    if not budget.blocked:
        return text
    names = ", ".join(budget.blocked[:_NAMED])
    more = f" and {len(budget.blocked) - _NAMED} more" if len(budget.blocked) > _NAMED else ""
    return f"{text}; none in {names}{more}, where nodes cannot be drained"
