"""Auto migration: how many replicas of a workload each member can run, estimated from its unschedulable pods.

Pods that are unschedulable for longer than the policy's threshold lower their cluster's estimated capacity for this
workload, and scheduling places the rest of the replicas in other clusters.

An estimate outlives its pods as long as the cluster is full for them (`full_clusters`): otherwise the next scale-up would try
the same full cluster again. It is dropped once there is room, or once the cluster runs more replicas than estimated. In a full
cluster only pods that have a node raise an estimate, never the desired number of replicas: object and pods come by two
watches, and while the watch of pods is behind, no pod seems to be pending. An unreachable cluster keeps its estimate.

Pure: `control/migrate` supplies pods, ReplicaSets and the time.
"""

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.pods.replicasets import Pods
from argosy.kube import duration, timestamps
from argosy.kube.objects import DecodeError, decode
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import without_annotations
from argosy.plan.scheduling.unit import AutoMigrationInfo

__all__ = [
    "Counted",
    "Estimate",
    "count",
    "estimate",
    "info_of",
    "migration_info",
    "newest_replica_set",
    "noted_in",
    "relevant",
    "same_pod_template",
    "text_of",
    "threshold_of",
]

_HASH = "pod-template-hash"


class Counted(msgspec.Struct, frozen=True):
    """Pods with a node, pods stuck for longer than the threshold, and when the next pod will be."""

    scheduled: int
    stuck: int
    next_crossing: datetime.timedelta | None = None


class Estimate(msgspec.Struct, frozen=True):
    """What one member runs of a workload, and can run. `capacity` is None if it runs all desired replicas."""

    scheduled: int
    capacity: int | None = None
    next_crossing: datetime.timedelta | None = None
    #: Pods without a node, stuck or not.
    waiting: int = 0


def threshold_of(annotation: str | None) -> datetime.timedelta | None:
    """How long a pod may wait, by the federated object's annotation; None if auto migration is off."""
    try:
        return datetime.timedelta(microseconds=duration.parse(annotation or "") // 1000)
    except (ValueError, OverflowError):
        return None


def count(pods: Pods, now: datetime.datetime, threshold: datetime.timedelta) -> Counted:
    stuck, crossings = 0, []
    for since in pods.waiting.values():
        # A pod without a transition time counts as waiting from now.
        left = threshold - (now - (timestamps.parse(since) or now))
        if left > datetime.timedelta():
            crossings.append(left)
        else:
            stuck += 1
    return Counted(pods.scheduled, stuck, min(crossings, default=None))


def estimate(
    desired: int, replicas: int, ready: int, pods: Pods | None, now: datetime.datetime, threshold: datetime.timedelta
) -> Estimate:
    """The estimate for one member: `replicas` and `ready` from its object's status, `pods` those of the newest ReplicaSet.

    `pods` may be None if all replicas are ready. Otherwise None means that the ReplicaSet does not exist yet.
    """
    if replicas == ready:
        return Estimate(replicas)
    if pods is None:
        return Estimate(0)
    counted = count(pods, now, threshold)
    capacity = max(pods.total, desired) - counted.stuck
    stuck = max(capacity, 0) if capacity < desired else None
    return Estimate(counted.scheduled, stuck, counted.next_crossing, pods.total - pods.scheduled)


def migration_info(
    estimates: Mapping[str, Estimate | None], stored: AutoMigrationInfo, full: Collection[str]
) -> AutoMigrationInfo:
    """The information scheduling reads. `estimates` has every cluster the workload is placed in, None if it is unreachable.

    `stored` is the information stored so far, `full` names the clusters that are full for one more of the pods.
    """
    left = stored.estimated_capacity.keys() - estimates.keys()
    capacity = {cluster: stored.estimated_capacity[cluster] for cluster in left if cluster in full}
    scheduled = {}
    for cluster, seen in estimates.items():
        known = stored.estimated_capacity.get(cluster)
        if seen is None:
            if cluster in stored.scheduled_replicas:
                scheduled[cluster] = stored.scheduled_replicas[cluster]
            if known is not None:
                capacity[cluster] = known
            continue
        scheduled[cluster] = seen.scheduled
        number = seen.capacity
        if known is not None and cluster in full and (number is not None or seen.scheduled <= known):
            proven = max(known, seen.scheduled)
            number = proven if number is None else min(number, proven)
        if number is not None:
            capacity[cluster] = number
    return AutoMigrationInfo(dict(sorted(capacity.items())), dict(sorted(scheduled.items())))


def info_of(annotation: str | None) -> AutoMigrationInfo:
    """The information stored with a federated object; empty if there is none, or it is unreadable."""
    try:
        return decode((annotation or "{}").encode(), AutoMigrationInfo)
    except DecodeError:
        return AutoMigrationInfo()


def text_of(info: AutoMigrationInfo) -> str:
    shown = {
        "estimatedCapacity": info.estimated_capacity,
        "scheduledReplicas": info.scheduled_replicas,
        "tried": info.tried,
        "shape": info.shape,
    }
    return orjson.dumps({k: v for k, v in shown.items() if v}, option=orjson.OPT_SORT_KEYS).decode()


def noted_in(
    annotations: Mapping[str, str], policy: PropagationPolicy, seen: AutoMigrationInfo | None
) -> tuple[dict[str, str], str]:
    """A federated object's annotations with the threshold and the estimates, and a text about changed estimates.

    If None was seen, the stored estimates stay. If the policy does not migrate, both annotations are removed.
    """
    wanted = policy.spec.auto_migration
    threshold = _go_duration(wanted.when.pod_unschedulable_for) if wanted is not None else ""
    if not threshold:
        return without_annotations(annotations, keys.POD_UNSCHEDULABLE_THRESHOLD, keys.AUTO_MIGRATION_INFO), ""
    noted = {**annotations, keys.POD_UNSCHEDULABLE_THRESHOLD: threshold}
    if seen is None or seen == info_of(annotations.get(keys.AUTO_MIGRATION_INFO)):
        return noted, ""
    news = text_of(seen)
    return {**noted, keys.AUTO_MIGRATION_INFO: news}, news


def _go_duration(text: str | None) -> str:
    try:
        return duration.format(duration.parse(text or ""))
    except ValueError:
        return ""


def relevant(annotation: str | None, strategy: str) -> str:
    """The part of the annotation that a placement depends on: only bin-packing reads the number of pods with a node."""
    if annotation is None:
        return ""
    info = info_of(annotation)
    if strategy == keys.BINPACK:
        return (
            text_of(AutoMigrationInfo(info.estimated_capacity, info.scheduled_replicas)) if info.tried else annotation
        )
    return text_of(AutoMigrationInfo(info.estimated_capacity)) if info.estimated_capacity else ""


# Which pods belong to the current template.


def newest_replica_set(deployment: Json, replica_sets: Sequence[Json]) -> Json | None:
    """The ReplicaSet of the Deployment's current template, the oldest of several. None if it does not exist yet."""
    uid = deployment["metadata"].get("uid") or ""
    template = deployment["spec"]["template"]
    own = [
        each
        for each in replica_sets
        if _controlled_by(each, uid) and same_pod_template(each["spec"]["template"], template)
    ]
    return min(own, key=_age, default=None)


def same_pod_template(a: Json, b: Json) -> bool:
    """Whether two pod templates are equal except for the hash that the Deployment controller adds."""
    return equal(_without_hash(a), _without_hash(b))


def _without_hash(template: Json) -> Json:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _controlled_by(obj: Json, uid: str) -> bool:
    owners: Sequence[Any] = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and (owner.get("uid") or "") == uid for owner in owners)


def _age(replica_set: Json) -> tuple[str, str]:
    metadata = replica_set["metadata"]
    return metadata.get("creationTimestamp") or "", metadata.get("name") or ""
