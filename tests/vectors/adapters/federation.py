"""Vectors of the federation's own functions: names, annotations, overrides, retention, status."""

from collections.abc import Callable
from typing import Any

import msgspec

from argosy.api import keys, names
from argosy.api.federated import ClusterPatches, FederatedObject, FederatedStatus
from argosy.api.policies import TargetClusters
from argosy.control.telemetry.events import source_of
from argosy.kube.podreferences import pod_references
from argosy.plan import metadata
from argosy.plan.copies import adoption, retain
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import merged_overrides
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from argosy.plan.kinds.stock import job, pod
from argosy.plan.pipeline.override import rule_matches
from argosy.plan.pipeline.policy import override_refs, propagation_ref
from argosy.plan.scheduling.selection import SelectionError
from argosy.plan.status.aggregate import feedback
from argosy.plan.status.propagation import Result, propagation_status

Case = dict[str, Any]


def _naming(case: Case) -> Case:
    match case["kind"]:
        case "federated_object_name":
            name = names.federated_name(case["object_name"], case["ftc_name"])
        case "imported_endpointslice_name":
            name = names.imported_slice_name(case["cluster"], case["endpointslice_name"])
        case "derived_service_fedobj_name":
            name = names.derived_service_name(case["service_name"])
        case "source_cluster_label_value":
            name = names.source_cluster_label_value(case["cluster"])
    return {"name": name}


def _annotation_helpers(case: Case) -> Case:
    stated = case.get("annotations") or {}
    match case["kind"]:
        case "has_key":
            return {"result": metadata.has_annotation(stated, case["key"])}
        case "has_key_value":
            return {"result": metadata.has_value(stated, case["key"], case["value"])}
        case "add":
            changed = metadata.with_annotation(stated, case["key"], case["value"])
        case "remove":
            changed = metadata.without_annotations(stated, case["key"])
        case "copy_submap":
            copied, changes = metadata.copy_keys(case["src"], case["dest"], case["keys"])
            return {"dest": copied, "num_changes": changes}
    return {"updated": changed != stated, "annotations": changed}


def _follower_from_pod(case: Case) -> Case:
    found = {(each.group, each.kind, each.name) for each in pod_references(case["pod_spec"])}
    return {
        "error": False,
        "followers": [
            {"group": group, "kind": kind, "namespace": case["namespace"], "name": name}
            for group, kind, name in sorted(found)
        ],
    }


def _finalizer_helpers(case: Case) -> Case:
    stated = case["finalizers"] or []
    match case["kind"]:
        case "has":
            return {"result": case["finalizer"] in stated}
        case "add":
            changed = metadata.with_finalizers(stated, case["change"])
        case "remove":
            changed = metadata.without_finalizers(stated, case["change"])
    return {"updated": changed != stated, "finalizers": changed}


def _meta_equivalent(case: Case) -> Case:
    return {"equivalent": metadata.meta_equivalent(case["a"], case["b"])}


def _matched_policy(case: Case) -> Case:
    ref = propagation_ref(case["labels"] or {}, case["namespace"])
    if ref is None:
        return {"found": False}
    return {"found": True, "policy_namespace": ref.namespace, "policy_name": ref.name}


def _adoption(case: Case) -> Case:
    try:
        return {"adopt": adoption.may_adopt(case["annotations"], case["cluster"]), "error": False}
    except adoption.AdoptionError:
        return {"adopt": False, "error": True}


def _derived_service(case: Case) -> Case:
    return {"derived": adoption.is_derived_service(case["annotations"])}


def _events(case: Case) -> Case:
    stored = {"metadata": {"ownerReferences": case["owner_references"]}, "spec": {"template": case["template"]}}
    federated = msgspec.convert(stored, FederatedObject)
    reference = source_of(federated)
    return {"events": [{"involvedObject": {**reference, "resourceVersion": ""}}] if reference is not None else []}


def _feedback(case: Case) -> Case:
    wanted = keys.FEEDBACK_ANNOTATIONS if case["kind"] == "all" else (case["key"],)
    changed = feedback(case["source_annotations"], case["federated_annotations"], wanted)
    return {
        "need_update": changed is not None,
        "annotations": changed if changed is not None else case["source_annotations"],
    }


def _propagation_status(case: Case) -> Case:
    """A cluster that was written has another version on record, which is how the product knows."""
    before = msgspec.convert(case["before"], FederatedStatus)
    version = "gen:1" if case["resources_updated"] else ""
    results = {
        cluster: Result(status, case["generation_map"].get(cluster, 0), version)
        for cluster, status in (case["status_map"] or {}).items()
    }
    after = propagation_status(before, case["generation"], results, "2024-01-01T00:00:00Z", reason=case["reason"])
    stored = msgspec.to_builtins(before if after is None else after)
    for condition in stored.get("conditions", ()):
        condition.pop("lastUpdateTime", None)
        condition.pop("lastTransitionTime", None)
    for entry in stored.get("clusters", ()):
        entry.pop("version", None)
    return {"changed": after is not None, "after": stored}


def _retain(case: Case) -> Case:
    match case["kind"]:
        case "retain_replicas":
            annotations = case["federated_annotations"] or {}
            kept = retain.retain_replicas(case["desired"], case["cluster_object"], annotations, case["replicas_path"])
            return {"object": kept}
        case "merge_string_maps":
            return {
                "result": retain.merge_string_maps(case["template"], case["observed"], case["last_propagated_keys"])
            }
        case "retain_container":
            return {"container": pod.retain_container(case["desired"], case["cluster_container"])}
    kept = kind_of({"apiVersion": "v1", "kind": "Pod"}).retain(case["desired"], case["cluster_object"])
    # Absent and null lists of init containers are the same thing; the vectors write null.
    return {"error": False, "object": {**kept, "spec": {"initContainers": None, **kept["spec"]}}}


def _aggregate_job(case: Case) -> Case:
    source = {"apiVersion": "batch/v1", "kind": "Job", **case["source_object"]}
    observations = [Observation(cluster, obj) for cluster, obj in case["cluster_objects"].items()]
    aggregation = Aggregation(source, observations, case["cluster_objects_up_to_date"], "now")
    status = kind_of(source).aggregate(aggregation)
    for condition in (status or {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    return {"need_update": status != source["status"], "status": status}


def _aggregate_pod(case: Case) -> Case:
    source = {"apiVersion": "v1", "kind": "Pod", **case["source_object"]}
    observations = [Observation(cluster, obj) for cluster, obj in sorted(case["cluster_objects"].items())]
    aggregation = Aggregation(source, observations, case["cluster_objects_up_to_date"], "now")
    status = kind_of(source).aggregate(aggregation)
    return {"need_update": status != source["status"], "status": status}


def _job_finished(case: Case) -> Case:
    status = {"conditions": [{"type": case["condition_type"], "status": case["condition_status"]}]}
    return {"finished_with_failed": job.failed(status)}


def _override_target(case: Case) -> Case:
    stated = case["target_clusters"]
    target = None if stated is None else msgspec.convert(stated, TargetClusters)
    cluster = case["cluster"]["metadata"]
    try:
        return {"matched": rule_matches(target, cluster["name"], cluster.get("labels") or {})}
    except (OverrideError, SelectionError):
        return {"matched": False, "error": True}


def _override_lookup(case: Case) -> Case:
    obj = case["object"]
    exists = {(policy.get("namespace", ""), policy["name"]) for policy in case["override_policies"] or ()}
    exists |= {("", policy["name"]) for policy in case["cluster_override_policies"] or ()}
    refs = override_refs(obj.get("labels") or {}, obj.get("namespace", ""))
    for ref in refs:
        if (ref.namespace, ref.name) not in exists:
            kind = "OverridePolicy" if ref.namespace else "ClusterOverridePolicy"
            message = f"{kind} {ref.key} not found"
            return {"error": True, "policy_keys": None, "error_message": message, "needs_recheck": False}
    return {"error": False, "policy_keys": [ref.key for ref in refs] or None}


def _override_merge(case: Case) -> Case:
    if case["kind"] == "merge":
        return {"result": merged_overrides(case["dst"], case["src"])}
    if case["overrides"] is None:
        return {"result": None}
    items = msgspec.convert(case["overrides"], list[ClusterPatches])
    return {"result": {item.cluster: msgspec.to_builtins(item.patches) for item in items}}


ADAPTERS: dict[str, Callable[[Case], Any]] = {
    "naming": _naming,
    "annotation_helpers": _annotation_helpers,
    "finalizer_helpers": _finalizer_helpers,
    "follower_from_pod": _follower_from_pod,
    "meta_equivalent": _meta_equivalent,
    "scheduler_matched_policy": _matched_policy,
    "adoption": _adoption,
    "derived_service": _derived_service,
    "event_defederate": _events,
    "status_aggregate_job": _aggregate_job,
    "status_aggregate_pod": _aggregate_pod,
    "status_job_finished": _job_finished,
    "status_source_feedback": _feedback,
    "sync_propagation_status": _propagation_status,
    "sync_retain": _retain,
    "override_target_clusters": _override_target,
    "override_policy_lookup": _override_lookup,
    "override_merge": _override_merge,
}
