"""rbac.authorization.k8s.io/v1: roles and their bindings, in a namespace and for the whole cluster.

Escalation checks belong to authorisation and are not done here.
"""

from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid, not_supported, required
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "rbac.authorization.k8s.io"
SUBJECTS = ["ServiceAccount", "User", "Group"]


def kinds(schemas: Schemas) -> list[Kind]:
    def kind(strategy: type[StatuslessStrategy], name: str, namespaced: bool) -> Kind:
        return declare(schemas, strategy, GROUP, "v1", name, f"{name.lower()}s", namespaced=namespaced)

    return [
        kind(ClusterRoleBindingStrategy, "ClusterRoleBinding", False),
        kind(ClusterRoleStrategy, "ClusterRole", False),
        kind(RoleBindingStrategy, "RoleBinding", True),
        kind(RoleStrategy, "Role", True),
    ]


class RoleStrategy(StatuslessStrategy):
    name_rule = "path"
    create_on_update = True
    validates_prefix = True
    namespaced = True

    def default(self, obj: Object) -> None:
        # The field is always written; a role without rules has null.
        obj["rules"] = obj.get("rules") or None

    def validate(self, obj: Object) -> list[FieldError]:
        return [
            error
            for i, rule in enumerate(obj.get("rules") or ())
            for error in _rule(rule, f"rules[{i}]", self.namespaced)
        ]


class ClusterRoleStrategy(RoleStrategy):
    namespaced = False

    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        aggregation = obj.get("aggregationRule")
        if aggregation is None:
            return errors
        path, listed = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
        if not listed:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required(path, detail))
        for i, selector in enumerate(listed):
            errors += rules.label_selector(selector, f"{path}[{i}]")
            if workloads.selector_matches(selector, None) is None:
                errors.append(invalid(f"{path}[{i}]", None, "invalid label selector."))
        return errors


def _rule(rule: Mapping[str, Any], path: str, namespaced: bool) -> list[FieldError]:
    errors = [] if rule.get("verbs") else [required(f"{path}.verbs", "verbs must contain at least one value")]
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


class RoleBindingStrategy(StatuslessStrategy):
    name_rule = "path"
    create_on_update = True
    validates_prefix = True
    roles: tuple[str, ...] = ("Role", "ClusterRole")
    namespaced = True

    def default(self, obj: Object) -> None:
        ref = obj.setdefault("roleRef", {})
        for field in ("kind", "name"):
            fill(ref, field, "")
        if not ref.get("apiGroup"):
            ref["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object) -> list[FieldError]:
        ref = obj["roleRef"]
        errors = []
        if ref["apiGroup"] != GROUP:
            errors.append(not_supported("roleRef.apiGroup", ref["apiGroup"], [GROUP]))
        if ref["kind"] not in self.roles:
            errors.append(not_supported("roleRef.kind", ref["kind"], list(self.roles)))
        if not ref["name"]:
            errors.append(required("roleRef.name"))
        else:
            errors += rules.messages(ref["name"], "roleRef.name", names.path_segment_name_errors(ref["name"]))
        for i, subject in enumerate(obj.get("subjects") or ()):
            errors += _subject(subject, f"subjects[{i}]", self.namespaced)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        if new["roleRef"] != old["roleRef"]:
            # A right to change subjects must not allow granting another role: delete and create instead.
            internal = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
            shown = {name: new["roleRef"].get(field, "") for name, field in internal.items()}
            errors.append(invalid("roleRef", shown, "cannot change roleRef"))
        return errors


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    roles = ("ClusterRole",)
    namespaced = False


def _subject(subject: Mapping[str, Any], path: str, namespaced: bool) -> list[FieldError]:
    kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += rules.dns_subdomain(name, f"{path}.name")
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        errors.append(not_supported(f"{path}.kind", kind, SUBJECTS))
    return errors
