"""Follow: before the steps of its type config, an object is placed where the objects are that need it; and it notes what it
needs itself and does not exist.

Not a step that type configs list: any object may be a follower. `plan.followers` says who follows whom.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import orjson

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.federated import LeaderReference
from argosy.plan.copies.placement import placed_by, with_placement
from argosy.plan.fields import Json, equal
from argosy.plan.followers.graph import NOBODY, Following
from argosy.plan.followers.needs import unreadable_followers
from argosy.plan.metadata import annotations_of, without_annotations
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State

__all__ = ["follow"]

_EVENT: Final = EventReason.FOLLOWER_PLACED


def follow(inputs: PassInputs, state: State) -> State:
    alone = state.annotations.get(keys.DISABLE_FOLLOWING) == "true"
    following = NOBODY if alone else inputs.following
    if following is not None:
        state = _placed(following, state)
    if inputs.missing is not None:
        state = _noting_what_is_missing(sorted(inputs.missing), state)
    return _noting_what_is_unreadable(state)


def _placed(following: Following, state: State) -> State:
    before = placed_by(state.spec, keys.FOLLOWER_CONTROLLER)
    after = following.clusters | (before if following.unknown else before & following.staying)
    spec = state.spec if after == before else with_placement(state.spec, keys.FOLLOWER_CONTROLLER, after)
    spec = _with_follows(spec, following.leaders)
    if spec is state.spec:
        return state
    state = state.with_spec(spec)
    if before == after:
        return state
    whom = ", ".join(f"{each.kind} {each.name}" for each in following.leaders) or "nobody any more"
    where = ", ".join(sorted(after)) or "nowhere"
    return state.noting("Normal", _EVENT, f"follows {whom}: placed in {where}")


def _with_follows(spec: Json, leaders: tuple[LeaderReference, ...]) -> Json:
    follows = msgspec.to_builtins(leaders)
    if equal(list(follows), spec.get("follows") or []):
        return spec
    rest = {key: value for key, value in spec.items() if key != "follows"}
    return {**rest, "follows": list(follows)} if follows else rest


def _noting_what_is_missing(missing: Sequence[str], state: State) -> State:
    before = state.annotations.get(keys.WAITS_FOR)
    if not missing:
        return (
            state if before is None else state.with_annotations(without_annotations(state.annotations, keys.WAITS_FOR))
        )
    note = orjson.dumps(missing).decode()
    if note == before:
        return state
    message = f"waits for {', '.join(missing)}, which {'do' if len(missing) > 1 else 'does'} not exist"
    annotated = state.with_annotations({**state.annotations, keys.WAITS_FOR: note})
    return annotated.noting("Warning", EventReason.FOLLOWERS_MISSING, message)


def _noting_what_is_unreadable(state: State) -> State:
    problem = unreadable_followers(state.annotations)
    known = state.before is not None and unreadable_followers(annotations_of(state.before)) == problem
    return state if not problem or known else state.noting("Warning", EventReason.FAILED_INFER_FOLLOWERS, problem)
