"""apps/v1: Deployments, ReplicaSets and ControllerRevisions, and the list of the group's kinds.

StatefulSets and DaemonSets have modules of their own.
"""

from collections.abc import Mapping
from typing import Any

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.apps.daemonsets import DaemonSetStrategy
from argosy.server.kinds.apps.statefulsets import StatefulSetStrategy
from argosy.server.kinds.pods.podspec import default_pod_template, validate_pod_template
from argosy.server.kinds.pods.warnings import workload_warnings
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill, fill_condition_times
from argosy.server.registry import Kind, Object, ScalePaths

__all__ = ["kinds"]

GROUP = "apps"
ALL = ("all",)
SCALED = frozenset({"status", "scale"})


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(schemas, ControllerRevisionStrategy, GROUP, "v1", "ControllerRevision", "controllerrevisions"),
        declare(
            schemas,
            DaemonSetStrategy,
            GROUP,
            "v1",
            "DaemonSet",
            "daemonsets",
            short_names=("ds",),
            categories=ALL,
            subresources=frozenset({"status"}),
        ),
        _scaled(schemas, DeploymentStrategy, "Deployment", "deployments", "deploy"),
        _scaled(schemas, ReplicaSetStrategy, "ReplicaSet", "replicasets", "rs"),
        _scaled(schemas, StatefulSetStrategy, "StatefulSet", "statefulsets", "sts"),
    ]


def _scaled(schemas: Schemas, strategy: type[BuiltinStrategy], kind: str, plural: str, short_name: str) -> Kind:
    return declare(
        schemas,
        strategy,
        GROUP,
        "v1",
        kind,
        plural,
        short_names=(short_name,),
        categories=ALL,
        subresources=SCALED,
        scale=ScalePaths(),
    )


class DeploymentStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, "replicas", 1)
        fill(spec, "revisionHistoryLimit", 10)
        fill(spec, "progressDeadlineSeconds", 600)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            fill(rolling, "maxUnavailable", "25%")
            fill(rolling, "maxSurge", "25%")
        default_pod_template(spec.setdefault("template", {}))
        fill_condition_times(obj, "lastUpdateTime", "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        _keep_labels(new, old)

    def generation_grows(self, new: Object, old: Object) -> bool:
        """Annotations count: controllers and `kubectl rollout` read revisions and pauses from them."""
        annotations = new["metadata"].get("annotations") or {}
        return super().generation_grows(new, old) or annotations != (old["metadata"].get("annotations") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        spec, path = obj["spec"], "spec"
        errors = rules.nonnegative(spec["replicas"], f"{path}.replicas")
        errors += _selector_and_template(spec, path)
        errors += _strategy(spec["strategy"], f"{path}.strategy")
        ready_seconds = spec.get("minReadySeconds") or 0
        errors += rules.nonnegative(ready_seconds, f"{path}.minReadySeconds")
        errors += rules.nonnegative(spec["revisionHistoryLimit"], f"{path}.revisionHistoryLimit")
        deadline = spec["progressDeadlineSeconds"]
        errors += rules.nonnegative(deadline, f"{path}.progressDeadlineSeconds")
        if deadline <= ready_seconds:
            errors.append(invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new) + workloads.selector_kept(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        fields = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        errors = workloads.counters(
            status, "status", (*fields, "unavailableReplicas", "terminatingReplicas", "collisionCount")
        )
        errors += _within_replicas(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + workloads.collision_count_kept(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return workload_warnings(obj, old, "spec.template")


class ReplicaSetStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, "replicas", 1)
        default_pod_template(spec.setdefault("template", {}))
        fill_condition_times(obj, "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"replicas": 0}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = rules.nonnegative(spec["replicas"], "spec.replicas")
        errors += rules.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
        return errors + _selector_and_template(spec, "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new) + workloads.selector_kept(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        fields = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
        errors = workloads.counters(status, "status", (*fields, "terminatingReplicas"))
        return errors + _within_replicas(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return workload_warnings(obj, old, "spec.template")


class ControllerRevisionStrategy(StatuslessStrategy):
    def default(self, obj: Object) -> None:
        fill(obj, "revision", 0)

    def validate(self, obj: Object) -> list[FieldError]:
        errors = rules.nonnegative(obj["revision"], "revision")
        data = obj.get("data")
        if data is None:
            errors.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(required("data", "data must be a valid JSON object"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = rules.nonnegative(new["revision"], "revision")
        return errors + rules.immutable(new.get("data"), old.get("data"), "data")


def _keep_labels(new: Object, old: Object) -> None:
    """The status of a Deployment may carry annotations, but never labels."""
    labels = old["metadata"].get("labels")
    if labels is None:
        new["metadata"].pop("labels", None)
    else:
        new["metadata"]["labels"] = labels


def _selector_and_template(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    # ReplicaSets say "deployment" too: the message is shared in Kubernetes.
    errors = workloads.workload_selector(spec, path, "empty selector is invalid for deployment")
    selector, template = spec.get("selector"), spec.get("template") or {}
    if workloads.selector_matches(selector, None) is None:
        return [*errors, invalid(f"{path}.selector", workloads.shown_selector(selector), "invalid label selector")]
    errors += workloads.selects_template(spec, path)
    errors += validate_pod_template(template, f"{path}.template")
    return errors + workloads.run_always(template, f"{path}.template", "ReplicaSet")


def _strategy(strategy: Mapping[str, Any], path: str) -> list[FieldError]:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        return [not_supported(path, workloads.shown_strategy(strategy), ["Recreate", "RollingUpdate"])]
    unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
    path = f"{path}.rollingUpdate"
    errors = workloads.int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors += workloads.int_or_percent(surge, f"{path}.maxSurge")
    if workloads.int_or_percent_value(unavailable) == 0 and workloads.int_or_percent_value(surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + workloads.not_above_100_percent(unavailable, f"{path}.maxUnavailable")


def _within_replicas(status: Mapping[str, Any], fields: tuple[str, ...]) -> list[FieldError]:
    replicas = status.get("replicas") or 0
    errors = [
        invalid(f"status.{field}", status.get(field) or 0, "cannot be greater than status.replicas")
        for field in fields
        if (status.get(field) or 0) > replicas
    ]
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return errors
