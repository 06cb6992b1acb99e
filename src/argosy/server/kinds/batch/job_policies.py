"""When a Job has failed, succeeded, or replaces its pods: the three policies of a Job's spec, and index ranges."""

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.server.fielderrors import (
    OMITTED,
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from argosy.server.kinds.shared import meta_rules as rules

__all__ = ["IndexesError", "count_indexes", "failure", "index_intervals", "replacement", "success"]

ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"]
OPERATORS = ["In", "NotIn"]
STATUSES = ["False", "True", "Unknown"]
REPLACEMENTS = ["Failed", "TerminatingOrFailed"]
MAX_RULES = 20
MAX_PATTERNS = 20
MAX_EXIT_CODES = 255
MAX_INDEXES_TEXT = 64 * 1024


class IndexesError(ValueError):
    """Why a list of indexes cannot be read."""


def failure(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    listed = policy.get("rules") or []
    path = f"{path}.rules"
    errors = [too_many(path, len(listed), MAX_RULES)] if len(listed) > MAX_RULES else []
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {c.get("name") for field in ("containers", "initContainers") for c in pod.get(field) or ()}
    for i, rule in enumerate(listed):
        errors += _failure_rule(spec, rule, f"{path}[{i}]", containers)
    return errors


def _failure_rule(
    spec: Mapping[str, Any], rule: Mapping[str, Any], path: str, containers: set[str | None]
) -> list[FieldError]:
    errors = []
    action = rule.get("action") or ""
    if not action:
        errors.append(required(f"{path}.action", _valid(ACTIONS)))
    elif action not in ACTIONS:
        errors.append(not_supported(f"{path}.action", action, ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        errors += _exit_codes(codes, f"{path}.onExitCodes", containers)
    errors += _pod_conditions(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, detail))
    elif codes is None and not patterns:
        errors.append(invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _exit_codes(codes: Mapping[str, Any], path: str, containers: set[str | None]) -> list[FieldError]:
    errors = _choice(codes.get("operator") or "", f"{path}.operator", OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, detail))
    values: list[int] = codes.get("values") or []
    path = f"{path}.values"
    if not values:
        errors.append(invalid(path, codes.get("values"), "at least one value is required"))
    elif len(values) > MAX_EXIT_CODES:
        errors.append(too_many(path, len(values), MAX_EXIT_CODES))
    for i, (value, repeated) in enumerate(zip(values, rules.repeated(values), strict=True)):
        if value == 0 and codes.get("operator") == "In":
            errors.append(invalid(f"{path}[{i}]", value, "must not be 0 for the In operator"))
        if repeated:
            errors.append(duplicate(f"{path}[{i}]", value))
    if values != sorted(values):
        errors.append(invalid(path, values, "must be ordered"))
    return errors


def _pod_conditions(patterns: list[Mapping[str, Any]], path: str) -> list[FieldError]:
    errors = [too_many(path, len(patterns), MAX_PATTERNS)] if len(patterns) > MAX_PATTERNS else []
    for i, pattern in enumerate(patterns):
        errors += rules.qualified_name(pattern.get("type") or "", f"{path}[{i}].type")
        errors += _choice(pattern.get("status") or "", f"{path}[{i}].status", STATUSES)
    return errors


def _choice(value: str, path: str, supported: list[str]) -> list[FieldError]:
    if not value:
        return [required(path, _valid(supported))]
    return [] if value in supported else [not_supported(path, value, supported)]


def _valid(values: list[str]) -> str:
    return f"valid values: [{' '.join(orjson.dumps(value).decode() for value in values)}]"


def replacement(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    supported = ["Failed"] if spec.get("podFailurePolicy") is not None else REPLACEMENTS
    return [] if policy in supported else [not_supported(path, policy, supported)]


def success(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    listed = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        # As messages show it: by the names of Kubernetes' internal type.
        internal = [
            {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
            for rule in listed
        ]
        shown = orjson.Fragment(orjson.dumps({"Rules": None if policy.get("rules") is None else internal}))
        return [invalid(path, shown, "requires indexed completion mode")]
    path = f"{path}.rules"
    errors = []
    if not listed:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(path, detail))
    if len(listed) > MAX_RULES:
        errors.append(too_many(path, len(listed), MAX_RULES))
    for i, rule in enumerate(listed):
        errors += _success_rule(rule, f"{path}[{i}]", spec.get("completions") or 0)
    return errors


def _success_rule(rule: Mapping[str, Any], path: str, completions: int) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        return [required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    errors = []
    total = 0
    if indexes is not None:
        if len(indexes) > MAX_INDEXES_TEXT:
            errors.append(too_long(f"{path}.succeededIndexes", MAX_INDEXES_TEXT))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            detail = f"error parsing succeededIndexes: {error}"
            errors.append(invalid(f"{path}.succeededIndexes", indexes, detail))
    if count is None:
        return errors
    path = f"{path}.succeededCount"
    errors += rules.nonnegative(count, path)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(path, count, detail))
    if indexes is not None and count > total:
        what = "the number of indexes in the specified succeededIndexes field"
        errors.append(invalid(path, count, f"must be less than or equal to {total} ({what})"))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a list like `0,2-5` names."""
    return sum(end - start + 1 for start, end in index_intervals(text, completions))


def index_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    """The intervals of an ascending list like `0,2-5`, both ends included; raises where it is not one."""
    intervals: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        start, end = _interval(part, completions)
        if intervals and intervals[-1][1] >= start:
            raise _not_ascending(intervals[-1][1], start)
        intervals.append((start, end))
    return intervals


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {orjson.dumps(text).decode()} {rule}")
    limits = [_index(part, completions) for part in parts]
    if len(limits) == 2 and limits[0] >= limits[1]:
        raise _not_ascending(limits[0], limits[1])
    return limits[0], limits[-1]


def _index(text: str, completions: int) -> int:
    quoted = orjson.dumps(text).decode()
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise IndexesError(f"cannot convert string to integer for index: {quoted}")
    if int(text) >= completions:
        raise IndexesError(f"too large index: {quoted}")
    return int(text)


def _not_ascending(before: int, after: int) -> IndexesError:
    return IndexesError(f"non-increasing order, previous: {before}, current: {after}")
