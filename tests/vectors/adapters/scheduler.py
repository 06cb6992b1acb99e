"""The scheduler around its plugins: units, triggers and the whole decision."""

from typing import Any

import msgspec
import numpy as np

from argosy.api import keys
from argosy.api.types import SchedulingProfile
from argosy.fleet.snapshot import Fleet, Rows
from argosy.plan.scheduling import triggers_kubeadmiral
from argosy.plan.scheduling.framework import Division, Filter, Profile, Replicas, Score, Select
from argosy.plan.scheduling.profile import Registry, merge_profile
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.triggers import Difference, read_record, triggers_of, verdict
from argosy.plan.scheduling.unit import Unit, current_placement, unit_of
from tests.vectors.adapters import units


def scheduling_unit(vector: dict[str, Any]) -> dict[str, Any]:
    federated, type_config = units.federated(vector["federated_object"]), units.type_config(vector["ftc"])
    unit = unit_of(
        federated.spec.template,
        federated.metadata.annotations,
        current_placement(federated, type_config),
        units.policy(vector["policy"]),
        type_config,
    )
    return {"scheduling_unit": _shown(unit)}


def cluster_trigger_changed(vector: dict[str, Any]) -> dict[str, Any]:
    return {"changed": triggers_kubeadmiral.hashes_changed(vector["old"] or {}, vector["new"] or {})}


def triggers(vector: dict[str, Any]) -> dict[str, Any]:
    """The recorded text form, and the decision on it by the rules the stored form follows."""
    federated, type_config = units.federated(vector["federated_object"]), units.type_config(vector["ftc"])
    policy = units.policy(vector["policy"])
    clusters = [units.cluster(cluster) for cluster in vector["clusters"]]
    annotations = federated.metadata.annotations
    now = triggers_of(federated.spec.template, annotations, policy, type_config, Fleet.of(clusters))
    record = triggers_kubeadmiral.record_of(now.inputs, clusters)
    stored = annotations.get(keys.SCHEDULING_TRIGGERS)
    then = read_record(stored)
    if not isinstance(then, triggers_kubeadmiral.Record):
        return _verdict(True, "", record.text, record.text)
    found = verdict(
        Difference(
            stable=then.stable_changes(record),
            content=then.policy_content_hash != record.policy_content_hash,
            fleet=then.fleet_change(record),
        ),
        policy.spec,
    )
    return _verdict(found.schedule, found.deferred_reasons, record.text, record.text if found.schedule else stored)


def core_schedule(vector: dict[str, Any]) -> dict[str, Any]:
    profile = Profile(replicas={"Spread": Replicas("one-replica-each", _one_each)})
    decision = schedule(units.unit(vector["scheduling_unit"]), units.fleet(vector["clusters"]), profile)
    return {"suggested_clusters": decision.placements, "error": decision.message or None}


def apply_profile(vector: dict[str, Any]) -> dict[str, Any]:
    """Plugins of the recorded names that do nothing; replicas plugins are no part of a profile and stay."""
    base, spec = vector["base"], units.read(vector["profile"], SchedulingProfile).spec
    every = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    default = Profile(
        filters=tuple(_filter(name) for name in base["filter"]),
        scores=tuple(_score(name) for name in base["score"]),
        selects=tuple(_select(name) for name in base["select"]),
        replicas={name: Replicas(name, _one_each) for name in base["replicas"]},
    )
    registry = Registry(
        filters={name: _filter(name) for name in every},
        scores={name: _score(name) for name in every},
        selects={name: _select(name) for name in every},
    )
    merged = merge_profile(default, registry, spec)
    return {
        "filter": [plugin.name for plugin in merged.filters],
        "score": [plugin.name for plugin in merged.scores],
        "select": [plugin.name for plugin in merged.selects],
        "replicas": list(merged.replicas),
    }


def policy_fields(vector: dict[str, Any]) -> dict[str, Any]:
    annotations = vector.get("annotations") or {}
    policy = units.policy(vector.get("policy") or {"metadata": {}, "spec": {}})
    unit = unit_of({}, annotations, {}, policy, _CONFIG_WITHOUT_REPLICAS)
    if vector["kind"] == "replicas_strategy":
        return {"replicas_strategy": unit.replicas_strategy}
    if vector["kind"] == "priorities_from_policy":
        return {"priorities": unit.priorities}
    honoured = keys.PLACEMENTS in annotations and keys.PLACEMENTS not in unit.ignored
    return {"priorities": unit.priorities, "exists": honoured}


def same_placements(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """A null is a placement without a number here, so nothing is stripped."""
    return bool(expected == actual)


_CONFIG_WITHOUT_REPLICAS = units.type_config(
    {"metadata": {}, "spec": {"sourceType": {"version": "v1", "kind": "K", "pluralName": "ks", "scope": "Namespaced"}}}
)


def _filter(name: str) -> Filter:
    return Filter(name, lambda unit, fleet: fleet.ready, lambda unit, fleet, row: name)


def _score(name: str) -> Score:
    return Score(name, lambda unit, fleet: fleet.allocatable(name))


def _select(name: str) -> Select:
    return Select(name, lambda unit, fleet, ranked: ranked)


def _one_each(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    return Division(np.ones(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64))


def _verdict(changed: bool, deferred: str, text: str, stored: str | None) -> dict[str, Any]:
    return {
        "triggers_changed": changed,
        "deferred_reasons": deferred,
        "new_trigger_text": text,
        "annotation_text": stored,
    }


def _shown(unit: Unit) -> dict[str, Any]:
    version = {"group": unit.group, "version": unit.version}
    shown: dict[str, Any] = {
        "annotations": unit.annotations,
        "labels": unit.labels,
        "group_version": version if unit.version else {},
        "kind": unit.kind,
        "resource": unit.resource,
        "name": unit.name,
        "namespace": unit.namespace,
        "scheduling_mode": unit.mode,
        "replicas_strategy": unit.replicas_strategy,
        "desired_replicas": unit.desired_replicas,
        "current_clusters": unit.current,
        "sticky_cluster": unit.sticky,
        "avoid_disruption": unit.avoid_disruption,
        "cluster_selector": unit.cluster_selector,
        "tolerations": [msgspec.to_builtins(toleration) for toleration in unit.tolerations],
        "max_clusters": unit.max_clusters,
        "cluster_names": sorted(unit.cluster_names),
        "min_replicas": unit.min_replicas,
        "max_replicas": unit.max_replicas,
        "weights": unit.weights,
        "priorities": unit.priorities,
    }
    if unit.affinity is not None:
        required = unit.affinity.required
        terms = None if required is None else {"clusterSelectorTerms": [msgspec.to_builtins(term) for term in required]}
        shown["affinity"] = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if unit.auto_migration:
        shown["auto_migration"] = {"info": None, "keep_unschedulable_replicas": unit.keep_unschedulable}
    return {key: value for key, value in shown.items() if value not in ("", False)}


ADAPTERS = {
    "scheduler_scheduling_unit": scheduling_unit,
    "scheduler_cluster_trigger_changed": cluster_trigger_changed,
    "scheduler_triggers": triggers,
    "scheduler_apply_profile": apply_profile,
    "scheduler_policy_fields": policy_fields,
    "core_schedule": core_schedule,
}
SAME = {"core_schedule": same_placements}
