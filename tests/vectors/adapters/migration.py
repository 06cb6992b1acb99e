"""Custom and auto migration."""

import datetime
from typing import Any

import orjson

from argosy.api import keys
from argosy.fleet.capacity import PodView
from argosy.fleet.pods.replicasets import PodsByReplicaSet
from argosy.kube import duration
from argosy.kube.objects import decode
from argosy.plan.failover.auto_migration import count, newest_replica_set, same_pod_template, threshold_of
from argosy.plan.failover.custom_migration import MigrationConfigError, applied_migration, text_of
from argosy.plan.scheduling.unit import AppliedMigration

#: Of a workload with replicas, where a vector names none.
_TEMPLATE = {"spec": {"replicas": 1}}


def migration_config(vector: dict[str, Any]) -> dict[str, Any]:
    template, path = vector.get("template", _TEMPLATE), vector.get("replicas_path", "spec.replicas")
    match vector["kind"]:
        case "validate":
            try:
                applied_migration(orjson.dumps(vector["migration_config"]).decode(), template, path)
            except MigrationConfigError as error:
                return {"error": str(error)}
            return {"error": None}
        case "convert":
            applied = applied_migration(orjson.dumps(vector["migration_config"]).decode(), template, path)
            return {"applied": orjson.loads(text_of(applied))}
        case "serialise":
            return {"applied_json": text_of(applied_migration(vector["migration_config_json"], template, path))}
        case _:
            text = vector["annotations"][keys.APPLIED_MIGRATION_CONFIGURATION]
            return {"applied": orjson.loads(text_of(decode(text.encode(), AppliedMigration)))}


_OWNER = {"kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}


def count_pods(vector: dict[str, Any]) -> dict[str, Any]:
    pods = PodsByReplicaSet()
    for number, pod in enumerate(vector["pods"]):
        pods.change(str(number), None, _pod(pod))
    threshold = threshold_of(vector["threshold"])
    assert threshold is not None
    counted = count(pods.of("u"), datetime.datetime.fromisoformat(vector["now"]), threshold)
    crossing = counted.next_crossing
    return {
        "scheduled": counted.scheduled,
        "unschedulable": counted.stuck,
        "next_cross_in": crossing and duration.format(round(crossing.total_seconds()) * 10**9),
    }


def pod_condition_changed(vector: dict[str, Any]) -> dict[str, Any]:
    pods = PodsByReplicaSet()
    old, new = _pod(vector["old_pod"]), _pod(vector["new_pod"])
    pods.change("pod", None, old)
    return {"changed": pods.change("pod", old, new) != ""}


def replica_set(vector: dict[str, Any]) -> dict[str, Any]:
    if vector["kind"] == "equal_ignore_hash":
        return {"equal": same_pod_template(vector["a"], vector["b"])}
    found = newest_replica_set(vector["deployment"], vector["replicasets"])
    return {"index": None if found is None else vector["replicasets"].index(found)}


def _pod(pod: dict[str, Any]) -> PodView:
    owned = {**pod, "metadata": {**pod["metadata"], "ownerReferences": [_OWNER]}}
    return decode(orjson.dumps(owned), PodView)


ADAPTERS = {
    "scheduler_migration_config": migration_config,
    "automigration_count_pods": count_pods,
    "automigration_pod_condition_changed": pod_condition_changed,
    "automigration_replicaset": replica_set,
}
