"""Undecided: why nothing of an object is to reach members, or not yet: it is not federated, held, pending, or placed nowhere."""

from typing import Final

from argosy.api import keys
from argosy.api.conditions import CHECK_CLUSTERS, PROPAGATED
from argosy.api.types import FederatedObject, FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.claims.record import NOBODY, InForce, claimed_by, in_force_now
from argosy.plan.fields import Json
from argosy.plan.followers.needs import unreadable_followers, waits_for
from argosy.plan.kinds.lack import About, Lack
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.automatic import propagates
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.pipeline.template import names_the_policies, reflects
from argosy.plan.status.shortfalls import NOWHERE

__all__ = ["undecided", "unfederated"]

#: The steps that place objects in clusters.
_PLACING: Final = frozenset({keys.GLOBAL_SCHEDULER, keys.NSAUTOPROP_CONTROLLER})
_OURS: Final = _PLACING | {keys.OVERRIDE_CONTROLLER, keys.FOLLOWER_CONTROLLER}
_NO_POLICY: Final = f"no policy is named and none selects it; label it, e.g. {keys.PROPAGATION_POLICY_LABEL}=NAME"
_NO_LEADER: Final = "the objects it follows are placed nowhere"


def unfederated(source: Json, config: FederatedTypeConfig | None, selected: PolicyRef | None = None) -> str:
    """Why nothing is made of an object that has no federated object. `selected` is the policy whose selectors claim it."""
    annotations, namespace = annotations_of(source), source["metadata"].get("namespace") or ""
    if config is None:
        return "this kind is not federated: no FederatedTypeConfig names it; copies that members have stay as they are"
    if annotations.get(keys.NO_FEDERATED_RESOURCE):
        return f"not federated: the annotation {keys.NO_FEDERATED_RESOURCE} says so"
    if namespace == keys.SYSTEM_NAMESPACE:
        return f"not federated: nothing in the namespace {keys.SYSTEM_NAMESPACE} is"
    if in_force_now(source, None, selected).ref is not None:
        return "waiting to be federated: are the controllers running?"
    if source.get("kind") != "Namespace":
        return f"not federated: {_NO_POLICY}"
    if annotations.get(keys.NO_AUTO_PROPAGATION) == "true":
        return f"not federated: the annotation {keys.NO_AUTO_PROPAGATION} says so"
    if propagates(source["metadata"]["name"], annotations):
        return "waiting to be federated: are the controllers running, and do they not exclude this namespace?"
    return "not federated: the namespaces every cluster has of its own are not propagated"


def undecided(
    source: Json, federated: FederatedObject, config: FederatedTypeConfig, clusters: int, policy: InForce = NOBODY
) -> list[Lack]:
    """What keeps an object that has a federated object from members, before any of them is looked at. `clusters` are the
    members there are, `policy` is in force."""
    annotations, found = federated.metadata.annotations, []

    def lacks(text: str, about: About = About.DECISION) -> None:
        found.append(Lack(text, about))

    if source["metadata"].get("deletionTimestamp") or federated.metadata.deletion_timestamp:
        return [Lack("being deleted: its copies in the members go first", About.DECISION)]
    owner = next((each for each in federated.metadata.owner_references if each.controller), None)
    if owner is not None and owner.uid != source["metadata"].get("uid"):
        text = f"the name of its federated object is taken by that of {owner.kind} {owner.name}"
        return [Lack(text, About.HOLD)]
    if not reflects(source, federated) or not names_the_policies(source, federated):
        ignored = annotations_of(source).get(keys.NO_FEDERATED_RESOURCE)
        why = f": the annotation {keys.NO_FEDERATED_RESOURCE} says so" if ignored else " yet"
        lacks(f"the newest change is not federated{why}")
    ref = claimed_by(federated.metadata.labels, annotations, federated.metadata.namespace)
    if policy.ref is not None and policy.selected and policy.ref != ref:
        lacks(f"{policy.ref.kind} {policy.ref.key} selects it: that is not acted on yet")
    held = held_of(annotations)
    if held is not None:
        what = "placement is held as it was" if federated.spec.placements else "held, placed nowhere"
        lacks(f"{what}: {held.reason}: {held.message}", About.HOLD)
    for text in _pending(annotations.get(keys.PENDING_CONTROLLERS), held=held is not None):
        lacks(text)
    for each in waits_for(annotations):
        lacks(f"waits for {each}, which does not exist", About.NEED)
    if problem := unreadable_followers(annotations):
        lacks(problem, About.NEED)
    if deferred := annotations.get(keys.SCHEDULING_DEFERRED_REASONS):
        lacks(f"scheduling is deferred: {deferred}")
    if annotations.get(keys.DRY_RUN) == "true" and not federated.status.clusters:
        lacks(f"a dry run: nothing is created, the annotation {keys.DRY_RUN} says so", About.HOLD)
    refused = next((each.reason for each in federated.status.conditions if each.type == PROPAGATED), "")
    # A hold that is over may still be told of: the condition follows with the next pass.
    if refused not in ("", CHECK_CLUSTERS, *HeldReason) and held is None:
        lacks(f"nothing is sent to members: {refused}", About.HOLD)
    if not federated.placed and not found:
        leaderless = _NO_LEADER if federated.spec.follows else _NO_POLICY
        why = _nowhere(source, annotations, config, clusters, leaderless if policy.ref is None else "")
        lacks(f"placed nowhere: {why}", About.PLACEMENT)
    return found


def _pending(text: str | None, *, held: bool) -> list[str]:
    """While it is held, our own steps wait for what holds it and nothing else."""
    try:
        steps = pending.parse(text)
    except pending.Unreadable as error:
        return [str(error)]
    waiting = [name for step in steps for name in step if not held or name not in _OURS]
    return [f"controllers that have yet to act: {', '.join(waiting)}"] if waiting else []


def _nowhere(
    source: Json, annotations: dict[str, str], config: FederatedTypeConfig, clusters: int, no_policy: str
) -> str:
    """`no_policy` is said of one without."""
    steps = {name for step in config.spec.controllers for name in step}
    if not steps & _PLACING:
        return NOWHERE.format(name=config.name)
    if not clusters:
        return "no cluster has joined"
    if annotations.get(keys.NO_SCHEDULING):
        return f"the annotation {keys.NO_SCHEDULING} says so"
    if keys.NSAUTOPROP_CONTROLLER in steps and annotations_of(source).get(keys.NO_AUTO_PROPAGATION) == "true":
        return f"the annotation {keys.NO_AUTO_PROPAGATION} says so"
    if no_policy:
        return no_policy
    if fields.number(source, config.spec.path_definition.replicas_spec) == 0:
        return "it has no replicas to divide"
    return "no controller has placed it"
