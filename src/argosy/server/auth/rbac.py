"""RBAC: what the roles and bindings in the store allow.

`Rbac` keeps its own small view of the four kinds, fed by `observe` for each committed change, and indexed by subject, so
that a decision looks only at the bindings of the user and its groups.

Everything runs on the event loop, so the cost is bounded: a role has a limited size, a rule's names are looked up in sets, a
role that is bound many times is checked once, and comparisons of grants are counted.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from argosy.server.auth.identity import Attributes, Decision, User
from argosy.server.status import aggregate
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["GROUP", "KINDS", "MAX_NAMED", "SUPERUSERS", "Rbac", "Rule", "named", "rules_of"]

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
#: The four kinds by their plural.
KINDS = {
    "roles": "Role",
    "clusterroles": "ClusterRole",
    "rolebindings": "RoleBinding",
    "clusterrolebindings": "ClusterRoleBinding",
}
#: Members of this group may do everything, whatever the roles say.
SUPERUSERS = "system:masters"
#: Verbs, groups, resources, names and URLs of one role. Kubernetes has no such limit; hundreds of kinds take thousands.
MAX_NAMED = 50_000
#: Comparisons of two rules that one write of a role may cost. A few lines can name billions of permissions.
MAX_COMPARED = 50_000
#: So many names are compared in the time of one such comparison.
_NAMES_COMPARED = 16
#: Listing one permission takes the time of so many comparisons.
_TOLD = 10
_JSON_NAMES = {"groups": "apiGroups", "names": "resourceNames", "urls": "nonResourceURLs"}
_NAMING = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class Rule(msgspec.Struct, frozen=True, rename=_JSON_NAMES.get):
    """One policy rule, as it is written."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


class _Sets(NamedTuple):
    """The names in a rule, for lookups. A tuple, because unpacking it is the fastest access."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: frozenset[str]
    #: URL prefixes, from patterns that end with a star.
    prefixes: tuple[str, ...]
    #: The number of names.
    size: int

    @classmethod
    def of(cls, rule: Rule) -> "_Sets":
        verbs, groups, resources = frozenset(rule.verbs), frozenset(rule.groups), frozenset(rule.resources)
        names, urls = frozenset(rule.names), frozenset(rule.urls)
        prefixes = tuple([url.rstrip("*") for url in urls if url.endswith("*")]) if urls else ()
        size = len(verbs) + len(groups) + len(resources) + len(names) + len(urls)
        return cls(verbs, groups, resources, names, urls, prefixes, size)


class _Rules(NamedTuple):
    """The rules of one role: as written, and in the form for lookups."""

    written: tuple[Rule, ...] = ()
    sets: tuple[_Sets, ...] = ()

    @classmethod
    def of(cls, rules: tuple[Rule, ...]) -> "_Rules":
        sets = tuple(map(_Sets.of, rules))
        if sum(len(names) for rule in rules for names in _fields(rule)) > MAX_NAMED:
            # From before there was a limit: without duplicates.
            rules = tuple(map(_distinct, rules, sets))
        return cls(rules, sets)


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
        self._roles: dict[tuple[str, str, str], _Rules] = {}
        self._bindings: dict[tuple[str, str, str], _Binding] = {}
        self._by_subject: dict[str, dict[tuple[str, str, str], _Binding]] = {}

    def follow(self, store: Store) -> None:
        """Decisions follow the stored roles and bindings as soon as a write is durable."""
        for plural, kind in KINDS.items():
            store.follow(partial(self._changed, kind), f"{GROUP}/{plural}")

    def _changed(self, kind: str, event: StoreEvent) -> None:
        self.observe(kind, event.entry.value, deleted=event.deleted)

    def observe(self, kind: str, value: bytes, *, deleted: bool = False) -> None:
        """A role or binding was created, changed or deleted; `value` is the stored object, or the last one."""
        if kind in ("Role", "ClusterRole"):
            role = _decode_role(value)
            key = (kind, role.metadata.namespace, role.metadata.name)
            if deleted:
                self._roles.pop(key, None)
            else:
                self._roles[key] = _Rules.of(role.rules or ())
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
        for binding, rules in self._roles_of(user, namespace):
            if _allow(rules.sets, attributes):
                return Decision(True, _reason(binding, user))
        lost = self.unresolved(user, namespace)
        return Decision(False, f"RBAC: {lost}" if lost else "")

    def rules_for(self, user: User, namespace: str) -> Iterator[Rule]:
        """Every rule that applies to a user in a namespace (SelfSubjectRulesReview)."""
        return chain.from_iterable(rules.written for rules in self._held(user, namespace))

    def missing(self, user: User, namespace: str, rules: Iterable[Rule]) -> list[Rule]:
        """The parts of `rules` that the user does not hold, one resource, name or URL each (escalation check).

        What would take too long to compare counts as not held, and is listed as written.
        """
        roles = list(self._held(user, namespace))
        held = [own for role in roles for own in role.sets]
        # A user with a role may grant it, however long it is.
        passed_on = {id(rule) for role in roles for rule in role.written}
        effort = _Effort(MAX_COMPARED)
        missing: list[Rule] = []
        for rule in rules:
            if id(rule) in passed_on:
                continue
            near = _near(held, rule, effort)
            if near is None:
                continue
            if effort.affords(_breakdown(rule, near)):
                missing += _lacking(rule, near)
            else:
                missing.append(rule)
        return missing

    def role_rules(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """The rules of a Role in the namespace, or of a ClusterRole; None if there is none of that name."""
        rules = self._roles.get((kind, namespace if kind == "Role" else "", name))
        return None if rules is None else rules.written

    def lost(self, user: User, namespace: str) -> list[tuple[str, str]]:
        """(kind, name) of missing roles that bindings of the user name, cluster bindings first."""
        bindings = sorted(self._bindings_of(user, namespace), key=lambda binding: (binding.namespace, binding.name))
        return [(binding.role[0], binding.role[2]) for binding in bindings if binding.role not in self._roles]

    def unresolved(self, user: User, namespace: str) -> str:
        """The result of `lost` in an authorizer's words; empty if nothing is missing."""
        lost = self.lost(user, namespace)
        return aggregate([f'{kind.lower()}.{GROUP} "{name}" not found' for kind, name in lost]) if lost else ""

    def _held(self, user: User, namespace: str) -> Iterable[_Rules]:
        return (_EVERYTHING,) if SUPERUSERS in user.groups else (rules for _, rules in self._roles_of(user, namespace))

    def _roles_of(self, user: User, namespace: str) -> Iterator[tuple[_Binding, _Rules]]:
        """The rules of each role of the user, once, with a binding that grants it."""
        seen = set()
        for binding in self._bindings_of(user, namespace):
            if binding.role not in seen:
                seen.add(binding.role)
                yield binding, self._roles.get(binding.role, _NOTHING)

    def _bindings_of(self, user: User, namespace: str) -> Iterator[_Binding]:
        for subject in _subjects_of(user):
            # A copy, made in one step: reviews of many groups are handled in a thread.
            for binding in tuple(self._by_subject.get(subject, {}).values()):
                if binding.kind == "ClusterRoleBinding" or (namespace and binding.namespace == namespace):
                    yield binding


def named(role: Object) -> int:
    """How many names a Role or ClusterRole object has, duplicates counted."""
    return sum(len(rule.get(field) or ()) for rule in role.get("rules") or () for field in _NAMING)


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


def _fields(rule: Rule) -> tuple[tuple[str, ...], ...]:
    return rule.verbs, rule.groups, rule.resources, rule.names, rule.urls


def _distinct(rule: Rule, sets: _Sets) -> Rule:
    if sum(map(len, _fields(rule))) == sets.size:
        return rule
    return Rule(*(tuple(dict.fromkeys(names)) for names in _fields(rule)))


_NOTHING = _Rules()
_EVERYTHING = _Rules.of((Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))))


def _binding(kind: str, grant: _Grant) -> _Binding:
    namespace = grant.metadata.namespace
    role_kind = grant.role_ref.get("kind", "")
    role = (role_kind, namespace if role_kind == "Role" else "", grant.role_ref.get("name", ""))
    subjects = dict(_subject(subject, namespace) for subject in grant.subjects or ())
    return _Binding(kind, namespace, grant.metadata.name, role, subjects)


def _subject(subject: Object, namespace: str) -> tuple[str, str]:
    """The key by which a user is looked up, and the subject's name in reasons."""
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


def _allow(rules: Iterable[_Sets], asked: Attributes) -> bool:
    verb, group, name = asked.verb, asked.group, asked.name
    if not asked.is_resource:
        path = asked.path
        return any(
            (verb in own.verbs or "*" in own.verbs) and (path in own.urls or path.startswith(own.prefixes))
            for own in rules
        )
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    of_any = f"*/{asked.subresource}" if asked.subresource else resource
    for verbs, groups, resources, names, _, _, _ in rules:
        if names and name not in names:
            continue
        if resource not in resources and "*" not in resources and of_any not in resources:
            continue
        if (verb in verbs or "*" in verbs) and (group in groups or "*" in groups):
            return True
    return False


class _Effort:
    """The effort left for one comparison."""

    def __init__(self, left: int):
        self.left = left

    def affords(self, effort: int) -> bool:
        self.left -= effort
        return self.left >= 0


def _near(held: Iterable[_Sets], rule: Rule, effort: _Effort) -> list[_Sets] | None:
    """The rules that may hold part of a rule; None if one of them holds all of it, as in most grants."""
    near: list[_Sets] = []
    if not effort.affords(1):
        return near
    verbs, groups, resources, names, urls, _, size = _Sets.of(rule)
    left = effort.left
    for own in held:
        own_verbs, own_groups, own_resources, own_names, own_urls, _, own_size = own
        left -= 1 + (own_size if own_size < size else size) // _NAMES_COMPARED
        if left < 0:
            break
        if own_verbs.isdisjoint(verbs) and "*" not in own_verbs:
            continue
        if own_groups.isdisjoint(groups) and "*" not in own_groups and not (urls and own_urls):
            continue
        near.append(own)
        if urls or (own_names and not (names and names <= own_names)):
            continue
        if not (resources <= own_resources or "*" in own_resources):
            continue
        if (verbs <= own_verbs or "*" in own_verbs) and (groups <= own_groups or "*" in own_groups):
            effort.left = left
            return None
    effort.left = left
    return near


def _breakdown(rule: Rule, near: list[_Sets]) -> int:
    """The effort of `_lacking`, and of listing its result."""
    verbs = 1 + len(rule.verbs) // _NAMES_COMPARED
    permissions = len(rule.groups) * len(rule.resources) * max(len(rule.names), 1)
    effort = permissions * (_TOLD + verbs + len(near) * verbs)
    if rule.urls:
        prefixes = sum(len(own.prefixes) for own in near) // _NAMES_COMPARED
        effort += len(rule.urls) * (_TOLD * len(rule.verbs) + prefixes + len(near) * verbs)
    return effort


def _lacking(rule: Rule, near: list[_Sets]) -> Iterator[Rule]:
    """The part of a rule that none of the others holds. Verbs are merged, but those for URLs are listed one by one."""
    for group in rule.groups if rule.resources else ():
        of_group = [own for own in near if group in own.groups or "*" in own.groups]
        for resource in rule.resources:
            of_resource = [own for own in of_group if _holds_resource(own, resource)]
            for name in rule.names or (None,):
                holders = (own for own in of_resource if not own.names or name in own.names)
                if verbs := _verbs_lacking(rule, holders):
                    yield Rule(verbs, (group,), (resource,), () if name is None else (name,))
    for url in rule.urls:
        holders = (own for own in near if not own.names and (url in own.urls or url.startswith(own.prefixes)))
        for verb in _verbs_lacking(rule, holders):
            yield Rule((verb,), urls=(url,))


def _holds_resource(own: _Sets, resource: str) -> bool:
    if resource in own.resources or "*" in own.resources:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in own.resources


def _verbs_lacking(rule: Rule, holders: Iterable[_Sets]) -> tuple[str, ...]:
    lacking: frozenset[str] | None = None
    for own in holders:
        if "*" in own.verbs:
            return ()
        lacking = (frozenset(rule.verbs) if lacking is None else lacking) - own.verbs
        if not lacking:
            return ()
    return rule.verbs if lacking is None else tuple(verb for verb in rule.verbs if verb in lacking)
