"""Shortfalls: what an object says and what will not happen, as far as that depends on other objects: its type config, the
policies it names. What has no effect by itself is in `api.admission.caveats`.

Told when it is written (on Argosy's own API server), by an event when it is federated, and by `argosy status`.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from argosy.plan.replicas.whole import mode_of, why_kept_whole

__all__ = ["NOWHERE", "OPTED_OUT", "Named", "obstacles", "places_nothing", "shortfalls"]

#: The steps that place objects in clusters.
_PLACING: Final = frozenset({keys.GLOBAL_SCHEDULER, keys.NSAUTOPROP_CONTROLLER})
OPTED_OUT: Final = (
    f"annotation {keys.NO_AUTO_PROPAGATION} came when the namespace was in clusters already: it stays in those, which may use it,"
    " and goes to no others"
)
NOWHERE: Final = "the type config {name} lists no controller that places objects"
#: Where kinds that can be divided have their number.
_REPLICAS: Final = ("spec.replicas", "spec.parallelism")
_UNFEDERATED: Final = "this kind is not federated, no FederatedTypeConfig names it"


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What a source names or is selected by, as far as it exists."""

    policy: PropagationPolicy | None = None
    #: The policy that selects it, unless it names one.
    selected: PolicyRef | None = None
    overrides: frozenset[PolicyRef] = frozenset()
    #: Whether there is the scheduling profile that the policy names, if it names one.
    profile: bool = True


def obstacles(source: Json, config: FederatedTypeConfig | None, named: Named) -> list[str]:
    """Why nothing will come of a source that a policy claims, before anything was tried; empty if none does.

    Its federated object, if there is to be one, says the same when it is held.
    """
    labels = labels_of(source)
    ref, overrides = _references(source)
    if config is None and named.selected is not None:
        return [f"{named.selected.kind} {named.selected.key} selects it, and nothing comes of it: {_UNFEDERATED}"]
    if config is None:
        stated = sorted(keys.POLICY_LABELS & labels.keys())
        return [f"label {key} has no effect: {_UNFEDERATED}" for key in stated]
    ref = named.selected or ref
    if ref is None:
        return []
    steps = _steps(config)
    if places_nothing(config):
        return [f"nothing is propagated: {NOWHERE.format(name=config.name)}"]
    found: list[str] = []
    if keys.GLOBAL_SCHEDULER in steps:
        found += _unscheduled(ref, named)
    if keys.OVERRIDE_CONTROLLER in steps:
        missing = [each for each in overrides if each not in named.overrides]
        found += [_until(each, "OverridePolicy") for each in missing]
    return found


def _unscheduled(ref: PolicyRef, named: Named) -> Iterator[str]:
    if named.policy is None:
        yield _until(ref, "PropagationPolicy")
    elif not named.profile:
        profile = f"SchedulingProfile {named.policy.spec.scheduling_profile}"
        yield f"{named.policy.kind} {ref.key} names {profile}, which does not exist: nothing is placed until it does"


def _until(ref: PolicyRef, kind: str) -> str:
    return (
        f"{kind if ref.namespace else f'Cluster{kind}'} {ref.key} does not exist: nothing is propagated until it does"
    )


def places_nothing(config: FederatedTypeConfig) -> bool:
    """Whether no step places objects; steps of others may."""
    steps = _steps(config)
    return steps <= set(keys.OWN_STEPS) and not steps & _PLACING


def shortfalls(
    source: Json,
    config: FederatedTypeConfig,
    policy: PropagationPolicy | None,
    *,
    placed: bool = False,
    divided: bool = False,
) -> list[str]:
    """What is done otherwise than it is written, although the object is propagated. `policy` is the one it names, if there is;
    `placed` and `divided` say where a step of ours placed it, and whether it divided it."""
    steps, annotations = _steps(config), annotations_of(source)
    ref, overrides = _references(source)
    found = []
    if steps <= set(keys.OWN_STEPS):
        unheeded = "not looked at: the type config {} does not list {}"
        if ref is not None and keys.NSAUTOPROP_CONTROLLER in steps and keys.GLOBAL_SCHEDULER not in steps:
            found.append(f"propagation policy {ref.key} is {unheeded.format(config.name, keys.GLOBAL_SCHEDULER)}")
        if keys.OVERRIDE_CONTROLLER not in steps and steps & _PLACING:
            why = unheeded.format(config.name, keys.OVERRIDE_CONTROLLER)
            found += [f"override policy {each.key} is {why}" for each in overrides]
    if keys.NSAUTOPROP_CONTROLLER in steps and placed and annotations.get(keys.NO_AUTO_PROPAGATION) == "true":
        found.append(OPTED_OUT)
    pathless = not config.spec.path_definition.replicas_spec
    if annotations.get(keys.RETAIN_REPLICAS) == "true" and pathless:
        found.append(f"annotation {keys.RETAIN_REPLICAS} has no effect: {_NO_PATH.format(name=config.name)}")
    if policy is None or keys.GLOBAL_SCHEDULER not in steps or not _has_replicas(source):
        return found
    why = _NO_PATH.format(name=config.name) if pathless else why_kept_whole(source, placed=placed, divided=divided)
    if why and mode_of(annotations, policy)[0] == keys.DIVIDE:
        found.append(f"replicas are not divided, every cluster gets all of them: {why}")
    if policy.spec.auto_migration is not None and not config.spec.auto_migration.enabled:
        found.append(f"autoMigration of {policy.kind} {policy.metadata.name} has no effect on this kind")
    return found


_NO_PATH: Final = "the type config {name} has no pathDefinition.replicasSpec"


def _steps(config: FederatedTypeConfig) -> set[str]:
    return {name for step in config.spec.controllers for name in step}


def _references(source: Json) -> tuple[PolicyRef | None, tuple[PolicyRef, ...]]:
    labels, namespace = labels_of(source), source["metadata"].get("namespace") or ""
    return propagation_ref(labels, namespace), override_refs(labels, namespace)


def _has_replicas(source: Json) -> bool:
    return any(fields.number(source, path) is not None for path in _REPLICAS)
