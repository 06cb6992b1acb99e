"""DaemonSets: one pod a node. The template's generation is kept in an annotation, where apps/v1 shows it."""

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.server.fielderrors import FieldError, invalid, not_supported, required
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.pods.podspec import default_pod_template, validate_pod_template
from argosy.server.kinds.pods.warnings import template_warnings
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.registry import Decoded, Object

__all__ = ["DaemonSetStrategy"]

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
STATUS = {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}


class DaemonSetStrategy(BuiltinStrategy):
    def decode(self, obj: Object) -> Decoded:
        decoded = super().decode(obj)
        text = ((obj.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_GENERATION)
        if decoded.mistyped or text is None or _is_integer(text):
            return decoded
        return Decoded(decoded.unknown, (f"strconv.ParseInt: parsing {orjson.dumps(text).decode()}: invalid syntax",))

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("revisionHistoryLimit") is None:
            spec["revisionHistoryLimit"] = 10
        fill_condition_times(obj, "lastTransitionTime")
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            if rolling.get("maxUnavailable") is None:
                rolling["maxUnavailable"] = 1
            if rolling.get("maxSurge") is None:
                rolling["maxSurge"] = 0
        default_pod_template(spec.setdefault("template", {}))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict(STATUS)
        _set_template_generation(obj, max(1, _template_generation(obj)))

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        generation = _template_generation(old)
        if not rules.same(new["spec"].get("template"), old["spec"].get("template")):
            generation += 1
        _set_template_generation(new, generation)

    def validate(self, obj: Object) -> list[FieldError]:
        spec, selector = obj["spec"], obj["spec"].get("selector")
        errors = rules.label_selector(selector, "spec.selector")
        errors += workloads.selects_template(spec, "spec")
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(
                invalid("spec.selector", workloads.shown_selector(selector), "empty selector is invalid for daemonset")
            )
        errors += validate_pod_template(spec["template"], "spec.template")
        errors += workloads.run_always(spec["template"], "spec.template", "DaemonSet")
        errors += rules.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
        errors += _update_strategy(spec["updateStrategy"], "spec.updateStrategy")
        return errors + rules.nonnegative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return workloads.selector_kept(new, old) + self.validate(new)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        fields = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        more = ("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable")
        errors = workloads.counters(new.get("status") or {}, "status", (*fields, *more, "collisionCount"))
        return errors + workloads.collision_count_kept(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if old is not None and _template_generation(obj) == _template_generation(old):
            return []
        return template_warnings(obj["spec"]["template"], "spec.template")


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdecimal() and text.isascii()


def _template_generation(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return int(text) if _is_integer(text) else 0


def _set_template_generation(obj: Object, generation: int) -> None:
    annotations = dict(obj["metadata"].get("annotations") or {})
    annotations[TEMPLATE_GENERATION] = str(generation)
    obj["metadata"]["annotations"] = annotations


def _update_strategy(strategy: Mapping[str, Any], path: str) -> list[FieldError]:
    kind = strategy["type"]
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, workloads.shown_strategy(strategy), ["RollingUpdate", "OnDelete"])]
    unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
    path = f"{path}.rollingUpdate"
    errors = workloads.int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors += workloads.int_or_percent(surge, f"{path}.maxSurge")
    errors += workloads.not_above_100_percent(unavailable, f"{path}.maxUnavailable")
    errors += workloads.not_above_100_percent(surge, f"{path}.maxSurge")
    has_unavailable = workloads.int_or_percent_value(unavailable) != 0
    has_surge = workloads.int_or_percent_value(surge) != 0
    if has_unavailable and has_surge:
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors
