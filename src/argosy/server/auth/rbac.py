"""RBAC: what the roles and bindings in the store allow.

`Rbac` keeps its own small view of the four kinds, fed by `observe` for each committed change, and indexed by subject, so
that a decision looks only at the bindings of the user and its groups.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from argosy.server.identity import Attributes, Decision, User
from argosy.server.status import aggregate

__all__ = ["GROUP", "SUPERUSERS", "Rbac", "Rule", "rules_of"]

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
#: The group whose members may do everything, whatever the roles say.
SUPERUSERS = "system:masters"
#: Comparisons of single permissions that one write of a role is worth. A few lines can name billions of permissions.
MAX_COMPARED = 100_000
_JSON_NAMES = {"groups": "apiGroups", "names": "resourceNames", "urls": "nonResourceURLs"}


class Rule(msgspec.Struct, frozen=True, rename=_JSON_NAMES.get):
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


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Role(msgspec.Struct):
    """A Role or ClusterRole, as it is stored."""

    metadata: _Metadata
    rules: tuple[Rule, ...] | None = None


class _Grant(msgspec.Struct):
    """A RoleBinding or ClusterRoleBinding, as it is stored."""

    metadata: _Metadata
    role_ref: dict[str, str] = msgspec.field(default_factory=dict, name="roleRef")
    subjects: list[dict[str, str]] | None = None


_decode_role = msgspec.json.Decoder(_Role).decode
_decode_grant = msgspec.json.Decoder(_Grant).decode


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

    def observe(self, kind: str, value: bytes, *, deleted: bool = False) -> None:
        """A role or binding was created, changed or deleted; `value` is what is stored of it, or was."""
        if kind in ("Role", "ClusterRole"):
            role = _decode_role(value)
            key = (kind, role.metadata.namespace, role.metadata.name)
            if deleted:
                self._roles.pop(key, None)
            else:
                self._roles[key] = role.rules or ()
            return
        grant = _decode_grant(value)
        key = (kind, grant.metadata.namespace, grant.metadata.name)
        stale = self._bindings.pop(key, None)
        for subject in stale.subjects if stale else ():
            self._by_subject[subject].pop(key, None)
        if not deleted:
            binding = _binding(kind, grant)
            self._bindings[key] = binding
            for subject in binding.subjects:
                self._by_subject.setdefault(subject, {})[key] = binding

    def authorize(self, attributes: Attributes) -> Decision:
        if SUPERUSERS in attributes.user.groups:
            return Decision(True)
        user, namespace = attributes.user, attributes.namespace
        for binding in self._bindings_of(user, namespace):
            for rule in self._roles.get(binding.role, ()):
                if rule.allows(attributes):
                    return Decision(True, _reason(binding, user))
        lost = self.unresolved(user, namespace)
        return Decision(False, f"RBAC: {lost}" if lost else "")

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Every rule that applies to a user in a namespace (SelfSubjectRulesReview)."""
        if SUPERUSERS in user.groups:
            everything = ("*",)
            return [Rule(everything, everything, everything), Rule(everything, urls=everything)]
        return [rule for binding in self._bindings_of(user, namespace) for rule in self._roles.get(binding.role, ())]

    def missing(self, user: User, namespace: str, rules: Iterable[Rule]) -> list[Rule]:
        """Those of `rules`, broken down to single permissions, that the user does not hold (escalation check).

        What would take too long to compare counts as not held, and is told as it stands.
        """
        held = self.rules_for(user, namespace)
        compared = 0
        missing: list[Rule] = []
        for rule in rules:
            compared += len(held)
            if compared <= MAX_COMPARED and any(_covers_whole(own, rule) for own in held):
                continue
            compared += _count(rule) * len(held)
            if compared > MAX_COMPARED:
                missing.append(rule)
                continue
            missing += [atom for atom in _atoms(rule) if not any(_covers(own, atom) for own in held)]
        return missing

    def role_rules(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """The rules of a Role in the namespace, or of a ClusterRole; None where there is none of that name."""
        return self._roles.get((kind, namespace if kind == "Role" else "", name))

    def lost(self, user: User, namespace: str) -> list[tuple[str, str]]:
        """(kind, name) of the roles that bindings of the user name and that do not exist: cluster bindings' first."""
        bindings = sorted(self._bindings_of(user, namespace), key=lambda binding: (binding.namespace, binding.name))
        return [(binding.role[0], binding.role[2]) for binding in bindings if binding.role not in self._roles]

    def unresolved(self, user: User, namespace: str) -> str:
        """What `lost` finds, in the words of an authorizer; empty where nothing is."""
        lost = self.lost(user, namespace)
        return aggregate([f'{kind.lower()}.{GROUP} "{name}" not found' for kind, name in lost]) if lost else ""

    def _bindings_of(self, user: User, namespace: str) -> Iterator[_Binding]:
        for subject in _subjects_of(user):
            # A copy, made in one step: reviews of many groups are answered in a thread.
            for binding in tuple(self._by_subject.get(subject, {}).values()):
                if binding.kind == "ClusterRoleBinding" or (namespace and binding.namespace == namespace):
                    yield binding


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


def _binding(kind: str, grant: _Grant) -> _Binding:
    namespace = grant.metadata.namespace
    role_kind = grant.role_ref.get("kind", "")
    role = (role_kind, namespace if role_kind == "Role" else "", grant.role_ref.get("name", ""))
    subjects = dict(_subject(subject, namespace) for subject in grant.subjects or ())
    return _Binding(kind, namespace, grant.metadata.name, role, subjects)


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
    own = set(_subjects_of(user))
    subject = next((told for subject, told in binding.subjects.items() if subject in own), "")
    return f'RBAC: allowed by {binding.kind} {place} of {role_kind} "{role_name}" to {subject}'


def _resource_matches(patterns: tuple[str, ...], resource: str, subresource: str) -> bool:
    full = f"{resource}/{subresource}" if subresource else resource
    return "*" in patterns or full in patterns or bool(subresource and f"*/{subresource}" in patterns)


def _url_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _atoms(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or (None,):
                    yield Rule((verb,), (group,), (resource,), (name,) if name is not None else ())
    for url in rule.urls:
        for verb in rule.verbs:
            yield Rule((verb,), urls=(url,))


def _count(rule: Rule) -> int:
    """How many single permissions a rule names."""
    return len(rule.verbs) * (len(rule.groups) * len(rule.resources) * max(len(rule.names), 1) + len(rule.urls))


def _covers_whole(own: Rule, rule: Rule) -> bool:
    """Whether one rule alone holds all of another: what most grants come down to."""
    if rule.urls or (own.names and not rule.names):
        return False
    return (
        ("*" in own.verbs or set(rule.verbs) <= set(own.verbs))
        and ("*" in own.groups or set(rule.groups) <= set(own.groups))
        and ("*" in own.resources or set(rule.resources) <= set(own.resources))
        and (not own.names or set(rule.names) <= set(own.names))
    )


def _covers(own: Rule, atom: Rule) -> bool:
    if "*" not in own.verbs and atom.verbs[0] not in own.verbs:
        return False
    if atom.urls:
        return not own.names and any(_url_matches(pattern, atom.urls[0]) for pattern in own.urls)
    if "*" not in own.groups and atom.groups[0] not in own.groups:
        return False
    if own.names and (not atom.names or atom.names[0] not in own.names):
        return False
    resource = atom.resources[0]
    _, slash, subresource = resource.partition("/")
    return "*" in own.resources or resource in own.resources or bool(slash and f"*/{subresource}" in own.resources)
