"""StatefulSets: pods with names, an order and claims of their own."""

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.core.claims import validate_claim_spec
from argosy.server.kinds.pods.defaults import default_claim_spec
from argosy.server.kinds.pods.podspec import default_pod_template, validate_pod_template
from argosy.server.kinds.pods.warnings import template_warnings
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.registry import Object

__all__ = ["StatefulSetStrategy"]

#: The fields that may change after creation. Kubernetes' message lists them in another order.
MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(BuiltinStrategy):
    name_rule = "label"

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("serviceName", "")
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        for field, default in (("replicas", 1), ("revisionHistoryLimit", 10)):
            if spec.get(field) is None:
                spec[field] = default
        _default_update_strategy(spec.setdefault("updateStrategy", {}))
        fill_condition_times(obj, "lastTransitionTime")
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not retention.get(field):
                retention[field] = "Retain"
        default_pod_template(spec.setdefault("template", {}))
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"availableReplicas": 0, "replicas": 0}
        _drop_max_unavailable(obj, None)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        _drop_max_unavailable(new, old)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _policies(spec)
        for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errors += validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}].spec")
        errors += _numbers(spec)
        if spec.get("serviceName"):
            errors += rules.dns_label(spec["serviceName"], "spec.serviceName")
        return errors + _selector_and_template(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec = new["spec"]
        # serviceName and claims cannot change, so an update is not refused for a value stored before a rule existed.
        errors = _policies(spec) + _numbers(spec) + _selector_and_template(spec)
        if any(not rules.same(spec.get(field), old["spec"].get(field)) for field in _fixed(spec) | _fixed(old["spec"])):
            errors.append(forbidden("spec", FIXED))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        fields = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        errors = workloads.counters(status, "status", (*fields, "observedGeneration", "collisionCount"))
        replicas = status.get("replicas") or 0
        for field in fields[1:]:
            if (status.get(field) or 0) > replicas:
                errors.append(
                    invalid(f"status.{field}", status.get(field) or 0, "cannot be greater than status.replicas")
                )
        available = status.get("availableReplicas") or 0
        if available > (status.get("readyReplicas") or 0):
            detail = "cannot be greater than status.readyReplicas"
            errors.append(invalid("status.availableReplicas", available, detail))
        return errors + workloads.collision_count_kept(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        found = []
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            found = template_warnings(obj["spec"]["template"], "spec.template")
        if obj["spec"]["revisionHistoryLimit"] >= 0:
            return found
        return [
            *found,
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
        ]


def _default_update_strategy(strategy: Object) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None and rolling.get("partition") is None:
        rolling["partition"] = 0


def _drop_max_unavailable(new: Object, old: Object | None) -> None:
    """Behind a feature gate that is off by default: kept only if a stored object has it already."""
    stored = ((old or {}).get("spec") or {}).get("updateStrategy") or {}
    if (stored.get("rollingUpdate") or {}).get("maxUnavailable") is None:
        (new["spec"]["updateStrategy"].get("rollingUpdate") or {}).pop("maxUnavailable", None)


def _fixed(spec: Mapping[str, Any]) -> set[str]:
    return spec.keys() - MUTABLE


def _policies(spec: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    management = spec["podManagementPolicy"]
    if management not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'"))
    errors += _update_strategy(spec["updateStrategy"], "spec.updateStrategy")
    retention = spec["persistentVolumeClaimRetentionPolicy"]
    for field in ("whenDeleted", "whenScaled"):
        if retention[field] not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(not_supported(path, retention[field], ["Retain", "Delete"]))
    return errors


def _update_strategy(strategy: Mapping[str, Any], path: str) -> list[FieldError]:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    path_rolling = f"{path}.rollingUpdate"
    if kind not in ("RollingUpdate", "OnDelete"):
        internal = {"Type": kind, "RollingUpdate": _internal(rolling)}
        return [invalid(path, orjson.Fragment(orjson.dumps(internal)), "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    if kind == "OnDelete":
        shown = orjson.Fragment(orjson.dumps(_internal(rolling)))
        return [invalid(path_rolling, shown, "only allowed for updateStrategy 'RollingUpdate'")]
    errors = rules.nonnegative(rolling.get("partition") or 0, f"{path_rolling}.partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is None:
        return errors
    path = f"{path_rolling}.maxUnavailable"
    errors += workloads.int_or_percent(unavailable, path)
    if workloads.int_or_percent_value(unavailable) == 0:
        errors.append(invalid(path, unavailable, "cannot be 0"))
    return errors + workloads.not_above_100_percent(unavailable, path)


def _internal(rolling: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """As messages show it: with the names of Kubernetes' internal type."""
    if rolling is None:
        return None
    return {"Partition": rolling.get("partition") or 0, "MaxUnavailable": rolling.get("maxUnavailable")}


def _numbers(spec: Mapping[str, Any]) -> list[FieldError]:
    errors = rules.nonnegative(spec["replicas"], "spec.replicas")
    errors += rules.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
    return errors + rules.nonnegative((spec.get("ordinals") or {}).get("start") or 0, "spec.ordinals.start")


def _selector_and_template(spec: Mapping[str, Any]) -> list[FieldError]:
    errors = workloads.workload_selector(spec, "spec", "empty selector is invalid for statefulset")
    if workloads.selector_matches(spec.get("selector"), None) is None:
        errors.append(invalid("spec.selector", workloads.shown_selector(spec.get("selector")), ""))
    else:
        errors += workloads.selects_template(spec, "spec")
        errors += validate_pod_template(_as_run(spec), "spec.template")
    return errors + workloads.run_always(spec["template"], "spec.template", "StatefulSet")


def _as_run(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The template as its pods will have it: hostname and subdomain are replaced, claims become volumes."""
    template: dict[str, Any] = spec["template"]
    pod = {key: value for key, value in template["spec"].items() if key not in ("hostname", "subdomain")}
    claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if claims:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = volumes
    return {**template, "spec": pod}
