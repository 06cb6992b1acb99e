"""RBAC: what the roles and bindings in the store allow.

`Rbac` keeps its own small view of the four kinds, fed by `observe` for each committed change, and indexed by subject, so
that a decision looks only at the bindings of the user and its groups.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from argosy.server.identity import Attributes, Decision, User

__all__ = ["Rbac", "Rule", "rules_of"]

Object = dict[str, Any]
_GROUP = "rbac.authorization.k8s.io"
_SUPERUSERS = "system:masters"


class Rule(msgspec.Struct, frozen=True):
    """One policy rule."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, attributes: Attributes) -> bool:
        if "*" not in self.verbs and attributes.verb not in self.verbs:
            return False
        if not attributes.is_resource:
            return any(_url_matches(pattern, attributes.path) for pattern in self.urls)
        if "*" not in self.groups and attributes.group not in self.groups:
            return False
        if self.names and attributes.name not in self.names:
            return False
        return _resource_matches(self.resources, attributes.resource, attributes.subresource)


class _Binding(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str
    role: tuple[str, str, str]  # (kind, namespace, name) of the role
    subjects: dict[str, str]  # what users are looked up by -> how reasons name it


class Rbac:
    """Implements `identity.Authorizer`."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str, str], tuple[Rule, ...]] = {}
        self._bindings: dict[tuple[str, str, str], _Binding] = {}
        self._by_subject: dict[str, dict[tuple[str, str, str], _Binding]] = {}

    def observe(self, kind: str, old: Object | None, new: Object | None) -> None:
        """A role or binding was created, changed (both given) or deleted (`new` is None)."""
        metadata = (new or old or {})["metadata"]
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        if kind in ("Role", "ClusterRole"):
            if new is None:
                self._roles.pop(key, None)
            else:
                self._roles[key] = rules_of(new)
            return
        stale = self._bindings.pop(key, None)
        for subject in stale.subjects if stale else ():
            self._by_subject[subject].pop(key, None)
        if new is not None:
            binding = _binding(kind, new)
            self._bindings[key] = binding
            for subject in binding.subjects:
                self._by_subject.setdefault(subject, {})[key] = binding

    def authorize(self, attributes: Attributes) -> Decision:
        if _SUPERUSERS in attributes.user.groups:
            return Decision(True)
        for binding, rule in self._rules(attributes.user, attributes.namespace):
            if rule.allows(attributes):
                return Decision(True, _reason(binding, attributes.user))
        return Decision(False)

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Every rule that applies to a user in a namespace (SelfSubjectRulesReview)."""
        if _SUPERUSERS in user.groups:
            everything = ("*",)
            return [Rule(everything, everything, everything), Rule(everything, urls=everything)]
        return [rule for _, rule in self._rules(user, namespace)]

    def missing(self, user: User, namespace: str, rules: Iterable[Rule]) -> list[Rule]:
        """Those of `rules`, broken down to single permissions, that the user does not hold (escalation check)."""
        held = self.rules_for(user, namespace)
        return [atom for rule in rules for atom in _atoms(rule) if not any(_covers(own, atom) for own in held)]

    def role_rules(self, reference: Object, namespace: str) -> tuple[Rule, ...] | None:
        """The rules behind a binding's roleRef; None where the role does not exist."""
        kind = str(reference.get("kind", ""))
        return self._roles.get((kind, namespace if kind == "Role" else "", str(reference.get("name", ""))))

    def _rules(self, user: User, namespace: str) -> Iterator[tuple[_Binding, Rule]]:
        for subject in _subjects_of(user):
            for binding in self._by_subject.get(subject, {}).values():
                if binding.kind == "RoleBinding" and (not namespace or binding.namespace != namespace):
                    continue
                for rule in self._roles.get(binding.role, ()):
                    yield binding, rule


def rules_of(role: Object) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole object."""
    return tuple(
        Rule(
            verbs=tuple(rule.get("verbs") or ()),
            groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            names=tuple(rule.get("resourceNames") or ()),
            urls=tuple(rule.get("nonResourceURLs") or ()),
        )
        for rule in role.get("rules") or ()
    )


def _binding(kind: str, obj: Object) -> _Binding:
    namespace = obj["metadata"].get("namespace", "")
    reference = obj.get("roleRef") or {}
    role_kind = reference.get("kind", "")
    role = (role_kind, namespace if role_kind == "Role" else "", reference.get("name", ""))
    subjects = dict(_subject(subject, namespace) for subject in obj.get("subjects") or ())
    return _Binding(kind, namespace, obj["metadata"]["name"], role, subjects)


def _subject(subject: Object, namespace: str) -> tuple[str, str]:
    """What a user is looked up by, and how the subject is named in reasons."""
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return f"User:system:serviceaccount:{home}:{name}", f'ServiceAccount "{name}/{home}"'
    return f"{kind}:{name}", f'{kind} "{name}"'


def _subjects_of(user: User) -> Iterator[str]:
    yield f"User:{user.name}"
    for group in user.groups:
        yield f"Group:{group}"


def _reason(binding: _Binding, user: User) -> str:
    role_kind, _, role_name = binding.role
    place = f'"{binding.name}/{binding.namespace}"' if binding.namespace else f'"{binding.name}"'
    subject = next((told for subject in _subjects_of(user) if (told := binding.subjects.get(subject))), "")
    return f'RBAC: allowed by {binding.kind} {place} of {role_kind} "{role_name}" to {subject}'


def _resource_matches(patterns: tuple[str, ...], resource: str, subresource: str) -> bool:
    full = f"{resource}/{subresource}" if subresource else resource
    return "*" in patterns or full in patterns or bool(subresource and f"*/{subresource}" in patterns)


def _url_matches(pattern: str, path: str) -> bool:
    return pattern == "*" or pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _atoms(rule: Rule) -> Iterator[Rule]:
    for verb in rule.verbs:
        for url in rule.urls:
            yield Rule((verb,), urls=(url,))
        for group in rule.groups:
            for resource in rule.resources:
                for name in rule.names or (None,):
                    yield Rule((verb,), (group,), (resource,), (name,) if name is not None else ())


def _covers(own: Rule, atom: Rule) -> bool:
    if "*" not in own.verbs and atom.verbs[0] not in own.verbs:
        return False
    if atom.urls:
        return any(_url_matches(pattern, atom.urls[0]) for pattern in own.urls)
    if "*" not in own.groups and atom.groups[0] not in own.groups:
        return False
    if own.names and (not atom.names or atom.names[0] not in own.names):
        return False
    resource, _, subresource = atom.resources[0].partition("/")
    return _resource_matches(own.resources, resource, subresource)
