"""Shared by the kinds that run pods: selectors against templates, amounts that may be percentages, status counters.

Rules of single kinds are in `apps`, `statefulsets`, `daemonsets`, `batch` and `policy`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from argosy.kube import names, selectors
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.registry import Object

__all__ = [
    "NAME_WARNING",
    "collision_count_kept",
    "counters",
    "int_or_percent",
    "int_or_percent_value",
    "name_warnings",
    "not_above_100_percent",
    "run_always",
    "selector_kept",
    "selector_matches",
    "selects_template",
    "shown_selector",
    "shown_strategy",
    "workload_selector",
]

NAME_WARNING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: [{}]"
)


def name_warnings(obj: Object) -> list[str]:
    """Subdomains are allowed as names of workloads, but make poor hostnames."""
    found = names.dns_label_errors(obj["metadata"].get("name", ""))
    return [NAME_WARNING.format(" ".join(found))] if found else []


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool | None:
    """Whether a LabelSelector object selects these labels; None if the selector itself is invalid."""
    try:
        return selectors.from_label_selector(selector).matches(labels)
    except selectors.SelectorError:
        return None


def shown_selector(selector: Mapping[str, Any] | None) -> Any:
    """A LabelSelector object as messages show it: labels first, without empty fields, but with every key and operator."""
    if selector is None:
        return None
    shown: Object = {}
    if selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        shown["matchExpressions"] = [
            {"key": expression.get("key") or "", "operator": expression.get("operator") or ""}
            | ({"values": expression["values"]} if expression.get("values") else {})
            for expression in selector["matchExpressions"]
        ]
    return orjson.Fragment(orjson.dumps(shown))


def selector_kept(new: Object, old: Object) -> list[FieldError]:
    """The selector of a workload is immutable: with another one its pods would be left behind."""
    selector, before = new["spec"].get("selector"), old["spec"].get("selector")
    if rules.same(selector, before):
        return []
    return [invalid("spec.selector", shown_selector(selector), rules.IMMUTABLE)]


def workload_selector(spec: Mapping[str, Any], path: str, empty: str) -> list[FieldError]:
    """The required, non-empty selector of a workload."""
    selector = spec.get("selector")
    if selector is None:
        return [required(f"{path}.selector")]
    errors = rules.label_selector(selector, f"{path}.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid(f"{path}.selector", shown_selector(selector), empty))
    return errors


def selects_template(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    """The selector must select the pods the template makes."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector_matches(spec.get("selector"), labels) is not False:
        return []
    return [invalid(f"{path}.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def shown_strategy(strategy: Mapping[str, Any]) -> Any:
    """The update strategy of a Deployment or DaemonSet, as messages show it: with the names of Kubernetes' internal type."""
    rolling = strategy.get("rollingUpdate")
    shown = {"Type": strategy["type"], "RollingUpdate": None}
    if rolling is not None:
        amounts = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
        shown["RollingUpdate"] = amounts
    return orjson.Fragment(orjson.dumps(shown))


def run_always(template: Mapping[str, Any], path: str, kind: str) -> list[FieldError]:
    """Pods of these kinds run until they are replaced."""
    errors = []
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", detail))
    return errors


def int_or_percent(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, int):
        return rules.nonnegative(value, path)
    return rules.messages(value, path, names.percent_errors(value))


def int_or_percent_value(value: int | str | None) -> int:
    """The number in an amount or percentage; an unreadable one counts as 0, as in Kubernetes."""
    if isinstance(value, int):
        return value
    digits = (value or "").removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def not_above_100_percent(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, int) or names.percent_errors(value) or int(value[:-1]) <= 100:
        return []
    return [invalid(path, value, "must not be greater than 100%")]


def counters(status: Mapping[str, Any], path: str, fields: Iterable[str]) -> list[FieldError]:
    """Counters of a status."""
    return [error for field in fields for error in rules.nonnegative(status.get(field) or 0, f"{path}.{field}")]


def collision_count_kept(new: Object, old: Object) -> list[FieldError]:
    """Revision names are derived from it: decreasing it would reuse old names."""
    count = (new.get("status") or {}).get("collisionCount")
    before = (old.get("status") or {}).get("collisionCount")
    if before is None or (count is not None and count >= before):
        return []
    return [invalid("status.collisionCount", count or 0, "cannot be decremented")]
