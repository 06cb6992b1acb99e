"""Privilege escalation: nobody grants through roles or bindings what they do not hold themselves.

Kubernetes' rule: writing a role needs every permission in it (or the verb `escalate`), writing a binding every permission
of the bound role (or the verb `bind`).
"""

from typing import Any

from argosy.server.auth.rbac import Rbac, Rule, rules_of
from argosy.server.identity import Attributes, User

__all__ = ["refusal"]

_GROUP = "rbac.authorization.k8s.io"
_PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}


def refusal(rbac: Rbac, user: User, kind: str, obj: dict[str, Any], old: dict[str, Any] | None) -> str | None:
    """Why this write of an RBAC object is refused, or None. Other kinds and unchanged grants always pass."""
    if kind not in _PLURALS or "system:masters" in user.groups:
        return None
    namespace = obj["metadata"].get("namespace", "")
    if kind in ("Role", "ClusterRole"):
        rules = rules_of(obj)
        if old is not None and rules_of(old) == rules and obj.get("aggregationRule") == old.get("aggregationRule"):
            return None
        name, resource, verb = obj["metadata"].get("name", ""), _PLURALS[kind], "escalate"
        if obj.get("aggregationRule"):  # what it will gather is not known, so it counts as everything
            rules = (*rules, Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
    else:
        reference = obj.get("roleRef") or {}
        if old is not None and old.get("subjects") == obj.get("subjects"):
            return None
        rules = rbac.role_rules(reference, namespace) or ()
        role_kind = str(reference.get("kind", ""))
        name, resource, verb = str(reference.get("name", "")), _PLURALS.get(role_kind, ""), "bind"
    exempt = Attributes(user, verb, _GROUP, "v1", resource, namespace=namespace, name=name)
    if rbac.authorize(exempt).allowed:
        return None
    missing = rbac.missing(user, namespace, rules)
    if not missing:
        return None
    held = " ".join(f'"{group}"' for group in user.groups)
    listing = "\n".join(_shown(rule) for rule in missing)
    return (
        f'user "{user.name}" (groups=[{held}]) is attempting to grant RBAC permissions not currently held:\n{listing}'
    )


def _shown(rule: Rule) -> str:
    fields = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("ResourceNames", rule.names),
        ("NonResourceURLs", rule.urls),
        ("Verbs", rule.verbs),
    )
    parts = [f"{label}:[{', '.join(_quoted(value) for value in values)}]" for label, values in fields if values]
    return "{" + ", ".join(parts) + "}"


def _quoted(value: str) -> str:
    return f'"{value}"'
