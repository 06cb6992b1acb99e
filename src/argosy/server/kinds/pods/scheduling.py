"""Where a pod may run: node selectors, affinity, tolerations, topology spread and scheduling gates."""

from typing import Any

from argosy.kube import names
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared.meta_rules import (
    NOT_AN_OPERATOR,
    dns_label,
    dns_subdomain,
    label_name,
    label_selector,
    messages,
    positive,
    selector_values,
)

__all__ = [
    "TAINT_EFFECTS",
    "validate_affinity",
    "validate_node_selector",
    "validate_scheduling_gates",
    "validate_tolerations",
    "validate_topology_spread",
]

Object = dict[str, Any]

TAINT_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(affinity: Object, path: str) -> list[FieldError]:
    errors = []
    node = affinity.get("nodeAffinity") or {}
    at = f"{path}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        errors += validate_node_selector(node[_REQUIRED], f"{at}.{_REQUIRED}")
    for i, term in enumerate(node.get(_PREFERRED) or ()):
        where = f"{at}.{_PREFERRED}[{i}]"
        errors += _weight(term, where)
        # Label values of preferences were never validated, and objects rely on that.
        errors += _node_term(term.get("preference") or {}, f"{where}.preference", check_values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        errors += _pod_affinity(affinity.get(name) or {}, f"{path}.{name}")
    return errors


def validate_node_selector(selector: Object, path: str) -> list[FieldError]:
    """A NodeSelector: any of its terms, each all of its requirements."""
    terms = selector.get("nodeSelectorTerms") or []
    at = f"{path}.nodeSelectorTerms"
    if not terms:
        return [required(at, "must have at least one node selector term")]
    errors = []
    for i, term in enumerate(terms):
        errors += _node_term(term, f"{at}[{i}]", check_values=True)
    return errors


def _node_term(term: Object, path: str, *, check_values: bool) -> list[FieldError]:
    errors = []
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{i}]"
        errors += _node_requirement(requirement, at)
        if check_values:
            for j, value in enumerate(requirement.get("values") or ()):
                errors += messages(value, f"{at}.values[{j}]", names.label_value_errors(value))
    for i, requirement in enumerate(term.get("matchFields") or ()):
        errors += _field_requirement(requirement, f"{path}.matchFields[{i}]")
    return errors


def _node_requirement(requirement: Object, path: str) -> list[FieldError]:
    if requirement.get("operator") not in ("Gt", "Lt"):
        errors = selector_values(requirement, path)
    elif len(requirement.get("values") or []) != 1:
        errors = [required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    else:
        errors = []
    return errors + label_name(requirement.get("key", ""), f"{path}.key")


def _field_requirement(requirement: Object, path: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    errors = []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, NOT_AN_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if requirement.get("key") != "metadata.name":
        return [*errors, invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key")]
    for i, value in enumerate(values):
        errors += dns_subdomain(value, f"{path}.values[{i}]")
    return errors


def _weight(term: Object, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_affinity(affinity: Object, path: str) -> list[FieldError]:
    errors = []
    for i, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term(term, f"{path}.{_REQUIRED}[{i}]")
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{i}]"
        errors += _weight(weighted, at)
        errors += _pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return errors


def _pod_term(term: Object, path: str) -> list[FieldError]:
    errors = label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces") or ():
        errors += dns_label(namespace, f"{path}.namespace")
    errors += _label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name(key, f"{path}.topologyKey")


def _label_keys(term: Object, path: str) -> list[FieldError]:
    """`matchLabelKeys` and `mismatchLabelKeys` need a selector and must not overlap."""
    errors = []
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set"))
            continue
        for i, key in enumerate(keys):
            errors += label_name(key, f"{path}.{name}[{i}]")
    known, mismatched = set((selector or {}).get("matchLabels") or ()), set(mismatch)
    matched = {key: i for i, key in reversed([*enumerate(match)])}
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key", "")
        if key in matched and key in known:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{matched[key]}]", key, detail))
        known.add(key)
    for i, key in enumerate(match):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{i}]", key, detail))
    return errors


def validate_tolerations(tolerations: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, toleration in enumerate(tolerations):
        errors += _toleration(toleration, f"{path}[{i}]")
    return errors


def _toleration(toleration: Object, path: str) -> list[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    errors = label_name(key, f"{path}.key") if key else []
    at = f"{path}.operator"
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(at, operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, detail))
    if operator in ("", "Equal"):
        wrong = names.label_value_errors(value)
        if wrong:
            errors.append(invalid(at, value, ";".join(wrong)))
    elif operator == "Exists":
        if value:
            errors.append(invalid(at, value, "value must be empty when `operator` is 'Exists'"))
    else:
        # Lt and Gt are behind a feature gate that is off by default; the list of supported values names them nevertheless.
        more = ["Lt", "Gt"] if operator in ("Lt", "Gt") else []
        errors.append(not_supported(at, operator, ["Equal", "Exists", *more]))
    if effect and effect not in TAINT_EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, TAINT_EFFECTS))
    return errors


def validate_topology_spread(constraints: list[Object], path: str) -> list[FieldError]:
    errors = []
    last = {(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")): i for i, each in enumerate(constraints)}
    for i, constraint in enumerate(constraints):
        at = f"{path}[{i}]"
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        errors += positive(constraint.get("maxSkew", 0), f"{at}.maxSkew")
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, ["DoNotSchedule", "ScheduleAnyway"]))
        if last[key, action] > i:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        domains = constraint.get("minDomains")
        if domains is not None:
            errors += positive(domains, f"{at}.minDomains")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{at}.minDomains", domains, detail))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(name)
            if policy is not None and policy not in ("Honor", "Ignore"):
                errors.append(not_supported(f"{at}.{name}", policy, ["Honor", "Ignore"]))
        errors += _label_keys(constraint, at)
        errors += label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")
    return errors


def validate_scheduling_gates(gates: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += messages(name, f"{path}[{i}]", names.qualified_name_errors(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{i}]", name))
        seen.add(name)
    return errors
