"""The explanation of one object's placement: the stored record of the decision, what has changed since, and what holds it.

Gathered with a handful of reads, then put together by `explained`, which is pure. How it looks on a screen is `explain`'s
part; how decisions are told is `plan.explain.summary`'s.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.api.names import federated_name
from argosy.api.types import FederatedCluster, FederatedObject, FederatedTypeConfig, PropagationPolicy
from argosy.cli.client.claims import claim_of
from argosy.cli.client.plugin_session import PluginSession
from argosy.cli.output.failures import Failure
from argosy.cli.output.report import EVENTS, EventView, is_of, or_none, replicas_wanted
from argosy.fleet.fingerprint import FleetChange
from argosy.fleet.snapshot import Fleet
from argosy.kube.client import Client
from argosy.kube.objects import encode
from argosy.kube.resource import Resource
from argosy.plan.claims.claim import Claim
from argosy.plan.claims.exclusions import excluded, subject_of
from argosy.plan.claims.record import InForce, in_force_now, looked_at
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.patches import OverrideError
from argosy.plan.explain import summary as explain
from argosy.plan.explain.differences import SCHEDULER, differences
from argosy.plan.explain.record import Account, Record, RecordError, account_of, decode, names_then, record_of
from argosy.plan.explain.snapshot import ObjectKey, Snapshot
from argosy.plan.explain.whatif import pass_over
from argosy.plan.followers.needs import waits_for
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline.held import held_of
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.scheduling import triggers
from argosy.plan.status.undecided import unfederated

__all__ = ["Explained", "Facts", "decided_now", "explained", "gather"]

_EVENTS_SHOWN = 5
#: Clusters that are named where the same is told of many.
_NAMED = 8


class Facts(msgspec.Struct, frozen=True):
    """Everything that is known about one object's placement; None is what is not there."""

    source: dict[str, Any]
    type_config: FederatedTypeConfig | None
    federated: dict[str, Any] | None
    #: The policy in force, if it exists.
    policy: PropagationPolicy | None
    clusters: tuple[FederatedCluster, ...]
    events: tuple[EventView, ...]
    #: Which policy claims it now, by its label or by selectors, as far as policies may be read.
    claim: Claim | None = None

    @property
    def in_force(self) -> InForce:
        """The policy that counts for it, whether or not it exists."""
        return _in_force(self.source, self.federated, self.claim)


class Explained(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    name: str
    namespace: str
    policy: str = ""
    #: Why it has this policy, or nothing by itself.
    claimed: str = ""
    #: Other policies that select it, in the order in which they would get it.
    other_policies: tuple[str, ...] = ()
    #: Effective now, whoever placed it; replicas, or None for kinds without.
    placements: dict[str, int | None] = {}
    #: The objects it goes along with, as `Kind name`.
    follows: tuple[str, ...] = ()
    #: Clusters it is in because of them.
    followed_to: tuple[str, ...] = ()
    #: What its division with its workloads means, of a budget.
    budget: str = ""
    #: What it needs and waits for, and does not exist.
    waits_for: tuple[str, ...] = ()
    #: Why no decision can be told, where that is so.
    undecided: str = ""
    decision: Account | None = None
    #: The decision in sentences.
    lines: tuple[str, ...] = ()
    #: What the decision rested on and is another one today.
    since: tuple[str, ...] = ()
    #: Why nothing else was placed than what is, though something else is asked for.
    held: str = ""
    #: The settings that keep it from being scheduled again although something changed.
    deferred: str = ""
    #: What override policies change, and where they cannot.
    overrides: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    #: About the one cluster that was asked for.
    cluster: explain.Why | None = None


async def gather(client: Client, resource: Resource, name: str, namespace: str | None) -> Facts:
    """Raises NotFound when the object itself is not there."""
    source = await client.get(resource, name, namespace)
    configs = await client.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
    config = next((each for each in configs.items if is_of(each, resource)), None)
    selector = f"involvedObject.kind={resource.kind},involvedObject.name={name}"
    federated = await _federated(client, config, source)
    claim, clusters, events = await asyncio.gather(
        claim_of(client, resource, source, looked_at(federated) if federated is not None else None),
        client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster),
        client.list(EVENTS, namespace or "default", field_selector=selector, into=EventView),
    )
    return Facts(
        source=source,
        type_config=config,
        federated=federated,
        policy=await _policy(client, _in_force(source, federated, claim).ref),
        claim=claim,
        clusters=tuple(clusters.items),
        events=tuple(sorted(events.items, key=lambda event: event.when, reverse=True)),
    )


def _in_force(source: dict[str, Any], federated: dict[str, Any] | None, claim: Claim | None) -> InForce:
    return in_force_now(source, federated, claim.ref if claim is not None and not claim.by_label else None)


async def _federated(
    client: Client, config: FederatedTypeConfig | None, source: dict[str, Any]
) -> dict[str, Any] | None:
    if config is None:
        return None
    metadata = source["metadata"]
    resource = resources.federated_objects(config.namespaced)
    name = federated_name(metadata["name"], config.name)
    found: dict[str, Any] | None = await or_none(client.get(resource, name, metadata.get("namespace")))
    return found


async def _policy(client: Client, ref: PolicyRef | None) -> PropagationPolicy | None:
    if ref is None:
        return None
    resource = resources.PROPAGATION_POLICIES if ref.namespace else resources.CLUSTER_PROPAGATION_POLICIES
    found: PropagationPolicy | None = await or_none(
        client.get(resource, ref.name, ref.namespace or None, into=PropagationPolicy)
    )
    return found


def explained(facts: Facts, cluster: str | None = None, now: Account | None = None) -> Explained:
    """`now` is told instead of the stored record where somebody decided anew. Raises Failure for an unknown cluster."""
    metadata = facts.source["metadata"]
    ref = facts.in_force.ref
    federated = msgspec.convert(facts.federated, FederatedObject) if facts.federated is not None else None
    told = Explained(
        kind=facts.source.get("kind", ""),
        name=metadata["name"],
        namespace=metadata.get("namespace") or "",
        policy=_policy_text(ref, facts.policy),
        claimed=_claimed(facts),
        other_policies=tuple(f"{each.kind} {each.name}" for each in facts.claim.others) if facts.claim else (),
        placements=replicas_wanted(federated) if federated is not None else {},
        events=tuple(_event(each) for each in facts.events[:_EVENTS_SHOWN]),
    )
    if federated is None:
        return _with_cluster(facts, msgspec.structs.replace(told, undecided=_unfederated(facts)), cluster)
    held = held_of(federated.metadata.annotations)
    told = msgspec.structs.replace(
        told,
        held=f"{held.reason}: {held.message}" if held is not None else "",
        overrides=tuple(_overrides(federated, facts.type_config, cluster)),
        follows=tuple(f"{each.kind} {each.name}" for each in federated.spec.follows),
        followed_to=federated.placement_of(keys.FOLLOWER_CONTROLLER),
        waits_for=tuple(waits_for(federated.metadata.annotations)),
        budget=federated.metadata.annotations.get(keys.BUDGET, ""),
    )
    record = None
    if now is None:
        try:
            record = _record(federated)
        except RecordError as error:
            told = msgspec.structs.replace(told, undecided=str(error))
        if record is not None:
            now = account_of(record, _names(record, federated, facts))
    if now is None:
        undecided = told.undecided or _unrecorded(federated)
        return _with_cluster(facts, msgspec.structs.replace(told, undecided=undecided), cluster)
    told = msgspec.structs.replace(
        told,
        decision=now,
        lines=tuple(explain.lines(now)),
        since=_since(record, facts) if record is not None else (),
        deferred=_deferred(facts),
    )
    return _with_cluster(facts, told, cluster)


def _unfederated(facts: Facts) -> str:
    ref = facts.in_force.ref if facts.in_force.selected else None
    return unfederated(facts.source, facts.type_config, ref)


def _is_held(facts: Facts) -> bool:
    return facts.federated is not None and held_of(annotations_of(facts.federated)) is not None


def _claimed(facts: Facts) -> str:
    claim, counts = facts.claim, facts.in_force
    if counts.lost and not _is_held(facts):
        return "it selected it"  # whoever asks may not read policies, or the controllers have yet to act
    if counts.lost:
        return "it selects it no more" if facts.policy is not None else "it selected it, and was deleted"
    if claim is not None:
        return claim.why if claim.by_label or len(claim.others) == 0 else f"selected: {claim.why}"
    if facts.type_config is None:
        return ""
    return excluded(subject_of(facts.type_config.resource.group, facts.type_config.kind, facts.source["metadata"]))


def _overrides(federated: FederatedObject, config: FederatedTypeConfig | None, cluster: str | None) -> Iterator[str]:
    """A line for all clusters of which the same is to be told."""
    told: dict[str, list[str]] = {}
    for name in federated.placed if config is not None else ():
        if cluster in (None, name):
            for line in _overrides_in(federated, config, name):
                told.setdefault(line, []).append(name)
    for line, names in told.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{', '.join(names[:_NAMED])}{more}: {line}"


def _overrides_in(federated: FederatedObject, config: FederatedTypeConfig | None, name: str) -> Iterator[str]:
    assert config is not None
    if refusal := held_copies(federated.metadata.annotations).refusal(name):
        yield f"its copy stays as it is: {refusal}"
        return
    try:
        found = differences(federated, config, name)
    except OverrideError as error:
        yield f"its overrides cannot be applied: {error}"
        return
    for by in sorted({each.by for each in found if each.by != SCHEDULER}):
        yield f"{', '.join(each.path for each in found if each.by == by)} by {by}"


def _deferred(facts: Facts) -> str:
    """By the same rules as the controllers': asked of them, with nothing else at hand than what triggers look at."""
    if facts.federated is None or facts.type_config is None or facts.policy is None:
        return ""
    annotations = facts.federated["metadata"].get("annotations") or {}
    seen = _triggers(annotations)
    now = triggers.triggers_of(
        facts.federated["spec"].get("template") or {},
        annotations,
        facts.policy,
        facts.type_config,
        Fleet.of(facts.clusters),
        seen.profile if seen is not None else "",
    )
    verdict = triggers.decide(annotations.get(keys.SCHEDULING_TRIGGERS), now, facts.policy, placed=True)
    return "" if verdict.schedule else verdict.deferred_reasons


async def decided_now(snapshot: Snapshot, facts: Facts) -> Account:
    """What would be decided if the object were scheduled this moment. Raises Failure where nothing would be."""
    metadata = facts.source["metadata"]
    if facts.type_config is None:
        raise Failure(f"{facts.source.get('kind')} is not federated: no FederatedTypeConfig names it")
    key = ObjectKey(facts.type_config.name, metadata.get("namespace") or "", metadata["name"])
    world = msgspec.structs.replace(snapshot, sources={**snapshot.sources, key: encode(facts.source)})
    elsewhere = PluginSession(world)
    try:
        await elsewhere.open()
        outcome = await elsewhere.run(pass_over(elsewhere.known_to(world), key, _unscheduled(facts.federated)))
    finally:
        await elsewhere.close()
    if outcome.decision is not None:
        record = record_of(outcome.decision)
        return account_of(record, outcome.decision.fleet.names)
    why = f"{outcome.held.reason}: {outcome.held.message}" if outcome.held is not None else "no policy is named"
    raise Failure(f"nothing would be decided now: {why}", "`argosy status` shows more of it")


def _unscheduled(federated: dict[str, Any] | None) -> dict[str, Any] | None:
    """Without the record of what its scheduling rested on, so that it is scheduled again."""
    if federated is None:
        return None
    metadata = federated["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != keys.SCHEDULING_TRIGGERS
    }
    return {**federated, "metadata": {**metadata, "annotations": annotations}}


def _record(federated: FederatedObject) -> Record | None:
    text = federated.metadata.annotations.get(keys.DECISION)
    return decode(text) if text else None


def _names(record: Record, federated: FederatedObject, facts: Facts) -> tuple[str, ...] | None:
    seen = _triggers(federated.metadata.annotations)
    return names_then(record, Fleet.of(facts.clusters), seen.clusters if seen is not None else None)


def _triggers(annotations: Mapping[str, str]) -> triggers.Record | None:
    """What the last scheduling rested on, as far as it can be read; KubeAdmiral's record does not tell of the fleet."""
    record = triggers.read_record(annotations.get(keys.SCHEDULING_TRIGGERS))
    return record if isinstance(record, triggers.Record) else None


def _since(record: Record, facts: Facts) -> tuple[str, ...]:
    """What the record rested on that is another one today."""
    found = []
    inputs = record.inputs
    policy = facts.policy
    if policy is not None and inputs.policy_generation and inputs.policy_generation != policy.metadata.generation:
        found.append(
            f"the policy has changed (generation {inputs.policy_generation}, now {policy.metadata.generation})"
        )
    generation = int(facts.source["metadata"].get("generation") or 0)
    if inputs.source_generation and generation and inputs.source_generation != generation:
        found.append(f"the object has changed (generation {inputs.source_generation}, now {generation})")
    if _is_another_fleet(record, facts):
        found.append("clusters have joined, left, or changed in taints, APIs or labels that count")
    return tuple(found)


def _is_another_fleet(record: Record, facts: Facts) -> bool:
    fleet = Fleet.of(facts.clusters)
    seen = _triggers(annotations_of(facts.federated)) if facts.federated is not None else None
    if seen is None:
        return fleet.joined_only().hashes.short != record.fleet_hash
    return fleet.discovered_only().hashes.reading(seen.reads).since(seen.clusters) != FleetChange()


def _with_cluster(facts: Facts, told: Explained, cluster: str | None) -> Explained:
    if cluster is None:
        return told
    known = sorted(each.name for each in facts.clusters)
    decision = told.decision
    if cluster not in known and cluster not in told.placements:
        raise Failure(f"there is no cluster {cluster!r}; the clusters are: {', '.join(known) or 'none'}")
    if decision is not None and cluster not in told.followed_to:
        return msgspec.structs.replace(told, cluster=explain.why(decision, cluster))
    placed = cluster in told.placements
    because = "somebody else than the scheduler placed it there" if placed else told.undecided
    if cluster in told.followed_to:
        because = f"it follows {', '.join(told.follows) or 'an object that is being removed there'}"
    return msgspec.structs.replace(
        told, cluster=explain.Why(cluster, placed, because, told.placements.get(cluster) if placed else None)
    )


def _unrecorded(federated: FederatedObject) -> str:
    automatic = any(entry.controller == keys.NSAUTOPROP_CONTROLLER for entry in federated.spec.placements)
    if automatic:
        return "namespaces go to every cluster: nothing is decided about them"
    if federated.spec.follows or federated.placement_of(keys.FOLLOWER_CONTROLLER):
        return "it names no policy of its own: it goes where the objects go that need it"
    if held_of(federated.metadata.annotations) is not None and not federated.spec.placements:
        return "nothing is decided: it is held"
    return "no decision is on record: it was scheduled by an older version, or not yet; --now decides anew"


def _policy_text(ref: PolicyRef | None, policy: PropagationPolicy | None) -> str:
    if ref is None:
        return ""
    return f"{ref.kind} {ref.name}" + ("" if policy is not None else " (not found)")


def _event(event: EventView) -> str:
    return f"{event.reason}: {event.message}"
