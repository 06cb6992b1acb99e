"""Custom migration: which clusters a user wants a workload to leave, and how much of that is in force.

The user annotates the source with `kubeadmiral.io/migration-configuration`: limits on replicas per cluster, and clusters to
leave until a time. Checked and converted, it becomes `kubeadmiral.io/applied-migration-configuration`, which scheduling
reads. Expired entries are not applied: the applied form changes when a time passes, and with it the placement.
`next_expiry` tells when to look again; the caller supplies the clock.
"""

import datetime
from collections.abc import Mapping
from typing import Annotated

import msgspec
import orjson

from argosy.api import keys
from argosy.kube import timestamps
from argosy.kube.objects import DecodeError, decode
from argosy.plan.fields import Json
from argosy.plan.metadata import without_annotations
from argosy.plan.scheduling.unit import AppliedMigration, UnavailableCluster, desired_replicas

__all__ = ["MigrationConfigError", "applied_migration", "applied_to", "in_force", "next_expiry", "text_of"]

_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class MigrationConfigError(ValueError):
    """The user's configuration cannot be applied; the message says what is wrong with it."""


class _ReplicasMigration(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    limited_capacity: _Int64 | None = None


class _WorkloadMigration(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    valid_until: str | None = None


class _MigrationConfig(msgspec.Struct, frozen=True, rename="camel"):
    replicas_migrations: tuple[_ReplicasMigration, ...] = ()
    workload_migrations: tuple[_WorkloadMigration, ...] = ()


def applied_to(
    annotations: Mapping[str, str], template: Json, replicas_path: str, now: datetime.datetime | None
) -> tuple[dict[str, str], str]:
    """A federated object's annotations with the applied form of the user's annotation at this time, and the error in it ("" if
    none).

    An unreadable annotation leaves the last readable one in force. Without a time nothing expires.
    """
    stated, complaint = annotations.get(keys.MIGRATION_CONFIGURATION), ""
    rest = without_annotations(annotations, keys.APPLIED_MIGRATION_CONFIGURATION)
    if stated is None:
        return rest, ""
    try:
        applied = applied_migration(stated, template, replicas_path)
    except MigrationConfigError as error:
        complaint = f"{keys.MIGRATION_CONFIGURATION} is not applied: {error}"
        before = annotations.get(keys.APPLIED_MIGRATION_CONFIGURATION)
        try:
            applied = decode((before or "").encode(), AppliedMigration)
            if now is not None:
                applied = in_force(applied, now)
        except (DecodeError, MigrationConfigError):
            return rest, complaint
    else:
        applied = applied if now is None else in_force(applied, now)
    return {**rest, keys.APPLIED_MIGRATION_CONFIGURATION: text_of(applied)}, complaint


def applied_migration(text: str, template: Json, replicas_path: str) -> AppliedMigration:
    """The user's annotation in the form scheduling reads, expired entries included. Raises MigrationConfigError."""
    try:
        config = decode(text.encode(), _MigrationConfig)
    except DecodeError as error:
        raise MigrationConfigError(str(error)) from None
    if config.replicas_migrations and desired_replicas(template, replicas_path) is None:
        raise MigrationConfigError("workload does not support the replica migration configurations")
    seen: set[str] = set()
    limits = {}
    for item in config.replicas_migrations:
        _check_cluster(item.cluster, seen)
        if item.limited_capacity is None:
            raise MigrationConfigError("limitedCapacity cannot be empty")
        if item.limited_capacity < 0:
            raise MigrationConfigError("limitedCapacity cannot be less than zero")
        limits[item.cluster] = item.limited_capacity
    left = []
    for migration in config.workload_migrations:
        _check_cluster(migration.cluster, seen)
        if not migration.valid_until:
            raise MigrationConfigError("validUntil cannot be empty")
        left.append(UnavailableCluster(migration.cluster, _normal(migration.valid_until)))
    return AppliedMigration(limits, tuple(sorted(left, key=lambda each: each.cluster)))


def text_of(applied: AppliedMigration) -> str:
    """The applied annotation; the same content gives the same bytes, and empty parts are left out."""
    shown: Json = {}
    if applied.limited_capacity:
        shown["limitedCapacity"] = applied.limited_capacity
    if applied.unavailable_clusters:
        shown["unavailableClusters"] = [
            {"cluster": each.cluster, "validUntil": each.valid_until} for each in applied.unavailable_clusters
        ]
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS).decode()


def in_force(applied: AppliedMigration, now: datetime.datetime) -> AppliedMigration:
    """Without the clusters whose time has passed."""
    left = tuple(each for each in applied.unavailable_clusters if _time(each.valid_until) > now)
    return msgspec.structs.replace(applied, unavailable_clusters=left)


def next_expiry(annotation: str | None, now: datetime.datetime) -> datetime.datetime | None:
    """When the applied annotation changes next by itself; None if nothing in it expires."""
    if not annotation:
        return None
    try:
        applied = decode(annotation.encode(), AppliedMigration)
        times = [_time(each.valid_until) for each in applied.unavailable_clusters]
    except (DecodeError, MigrationConfigError):
        return None
    return min((time for time in times if time > now), default=None)


def _check_cluster(cluster: str, seen: set[str]) -> None:
    if not cluster:
        raise MigrationConfigError("cluster cannot be empty")
    if cluster in seen:
        raise MigrationConfigError("multiple migration configurations cannot be configured for the same cluster")
    seen.add(cluster)


def _time(text: str) -> datetime.datetime:
    time = timestamps.parse(text)
    if time is None:
        raise MigrationConfigError(f"validUntil {text!r} is not a time like 2026-01-31T12:00:00Z")
    return time


def _normal(text: str) -> str:
    """As Kubernetes writes times: UTC, whole seconds."""
    return timestamps.timestamp(_time(text))
