"""Privilege escalation: users can grant through roles or bindings only what they hold themselves.

Kubernetes' rule: writing a role needs every permission in it (or the verb `escalate` on it), writing a binding every permission
of the role it names (or the verb `bind` on that), and an aggregated role needs every permission there is. A write that grants
nothing new is checked as well, for a label alone can make a role part of another; only changes of the garbage collector are
exempt.

The cost is bounded by the size of a role, by the number of comparisons (`rbac`) and by the length of the message.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.kube import names
from argosy.server import status
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.auth.identity import Attributes
from argosy.server.auth.rbac import GROUP, MAX_NAMED, SUPERUSERS, Rbac, Rule, named, rules_of
from argosy.server.fielderrors import FieldError, too_many
from argosy.server.http.request import Call
from argosy.server.registry import Object

__all__ = ["NoEscalation"]

_ROLES = {"Role": "roles", "ClusterRole": "clusterroles"}
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
#: What an aggregated role may come to hold.
_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_GATHERS = "must have cluster-admin privileges to use the aggregationRule"
#: Rules of a role, and subjects of a binding: each request of theirs may have to check all of them.
MAX_ITEMS = 5000
#: Characters of the list in a refusal, and values of one field of a rule in it.
MAX_LISTING = 64 * 1024
MAX_VALUES = 1000
#: Metadata of the garbage collector, and metadata that the writer does not set.
_COLLECTORS = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class NoEscalation(AdmissionPlugin):
    """Checks every write of a role or binding. Raises 403, and 404 for a binding to a role that does not exist."""

    def __init__(self, rbac: Rbac):
        self._rbac = rbac

    def create(self, call: Call, obj: Object) -> None:
        if call.kind.group == GROUP:
            _check_size(call, obj, None)
            if SUPERUSERS not in call.user.groups:
                self._check(call, obj, None)

    def authorize_update(self, call: Call, new: Object, old: Object) -> None:
        if call.kind.group != GROUP:
            return
        _check_size(call, new, old)
        if SUPERUSERS not in call.user.groups and not _only_collected(call, new, old):
            self._check(call, new, old)

    def _check(self, call: Call, obj: Object, old: Object | None) -> None:
        if call.kind.kind in _ROLES:
            self._check_role(call, obj, old)
        elif call.kind.kind in _BINDINGS:
            self._check_binding(call, obj)

    def _check_role(self, call: Call, obj: Object, old: Object | None) -> None:
        # A POST names no object, so a right to escalate certain names does not apply.
        if self._may(call, "escalate", GROUP, call.kind.plural, call.name):
            return
        self._confirm(call, obj, rules_of(obj))
        gathers = _gathers(obj) or (old is not None and _gathers(old))
        if gathers and self._rbac.missing(call.user, call.namespace, _EVERYTHING):
            raise status.forbidden(call.kind, _name(obj), _GATHERS)

    def _check_binding(self, call: Call, obj: Object) -> None:
        reference = obj["roleRef"]
        kind, name = reference["kind"], reference["name"]
        if kind in _ROLES and self._may(call, "bind", reference["apiGroup"], _ROLES[kind], name):
            return
        if kind not in _ROLES:
            raise status.plain(500, f'unsupported role reference kind: "{kind}"')
        if kind == "Role" and not call.namespace:
            raise status.bad_request("Namespace parameter required.")
        if not name:
            raise status.bad_request("Name parameter required.")
        if wrong := names.path_segment_name_errors(name):
            raise status.bad_request(f"Name parameter invalid: {_quoted(name)}: {';'.join(wrong)}")
        rules = self._rbac.role_rules(kind, call.namespace, name)
        if rules is None:
            # Reported for the requested resource, as in kube-apiserver.
            raise status.not_found(call.kind, name)
        self._confirm(call, obj, rules)

    def _may(self, call: Call, verb: str, group: str, resource: str, name: str) -> bool:
        asked = Attributes(call.user, verb, group, "*", resource, namespace=call.namespace, name=name)
        return self._rbac.authorize(asked).allowed

    def _confirm(self, call: Call, obj: Object, rules: Iterable[Rule]) -> None:
        missing = self._rbac.missing(call.user, call.namespace, rules)
        if not missing:
            return
        user = call.user
        text = (
            f"user {_quoted(user.name)} (groups={_listed(user.groups)}) is attempting to grant RBAC permissions "
            f"not currently held:\n{_listing(_compact(missing))}"
        )
        lost = [f"{call.kind.resource} {_quoted(name)} not found" for _, name in self._rbac.lost(user, call.namespace)]
        if lost:
            text += f"; resolution errors: [{status.aggregate(lost)}]"
        raise status.forbidden(call.kind, _name(obj), text)


def _check_size(call: Call, obj: Object, old: Object | None) -> None:
    """Raises 422 if too large, unless it was already before there was a limit."""
    for field in ("rules", "subjects"):
        wrong = _too_much(obj, field)
        if wrong is not None and (old is None or obj.get(field) != old.get(field)):
            raise status.invalid(call.kind, _name(obj), [wrong])


def _too_much(obj: Object, field: str) -> FieldError | None:
    items = len(obj.get(field) or ())
    if items > MAX_ITEMS:
        return too_many(field, items, MAX_ITEMS)
    if field == "rules" and (count := named(obj)) > MAX_NAMED:
        detail = f"must name at most {MAX_NAMED} verbs, groups, resources, names and URLs together"
        return FieldError("FieldValueTooMany", field, count, detail)
    return None


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def _gathers(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(call: Call, new: Object, old: Object) -> bool:
    """Whether the write changes only what the garbage collector changes.

    It is compared as sent: a PUT without the version or the uid is a change.
    """
    sent = dict(new["metadata"])
    if call.verb == "patch":
        sent.setdefault("resourceVersion", old["metadata"]["resourceVersion"])
    for field in _COLLECTORS:
        sent[field] = old["metadata"].get(field)
    if _told(sent) != _told(old["metadata"]):
        return False
    # Usually unchanged, which is found at once.
    return all(_same(new.get(field), old.get(field)) for field in (new.keys() | old.keys()) - {"metadata"})


def _same(new: Any, old: Any) -> bool:
    return bool(new == old or _told({"": new}) == _told({"": old}))


def _told(value: Any) -> Any:
    """The value without empty fields: an absent field and an empty one are the same."""
    if isinstance(value, dict):
        fields = ((key, _told(field)) for key, field in value.items())
        return {key: field for key, field in fields if field not in (None, "", [], {})}
    if isinstance(value, list):
        return [_told(item) if isinstance(item, dict | list) else item for item in value]
    return value


def _compact(permissions: Iterable[Rule]) -> list[Rule]:
    """Merges permissions that differ only in their verb."""
    whole: list[Rule] = []
    verbs: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for rule in permissions:
        if rule.urls:
            whole.append(rule)
        else:
            verbs.setdefault((rule.groups, rule.resources, rule.names), []).extend(rule.verbs)
    return whole + [Rule(tuple(verbs), *place) for place, verbs in verbs.items()]


def _listing(permissions: Sequence[Rule]) -> str:
    """One line for each, in order, up to a readable number."""
    lines: set[str] = set()
    size = 0
    for number, rule in enumerate(permissions):
        if size > MAX_LISTING:
            return "\n".join([*sorted(lines), f"and {len(permissions) - number} more"])
        line = _shown(rule)
        lines.add(line if len(line) <= MAX_LISTING else f"{line[:MAX_LISTING]}...")
        size += len(line)
    return "\n".join(sorted(lines))


def _shown(rule: Rule) -> str:
    fields = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{label}:{_listed(values)}" for label, values in fields if values) + "}"


def _listed(values: Sequence[str]) -> str:
    more = len(values) - MAX_VALUES
    return "[" + " ".join(map(_quoted, values[:MAX_VALUES])) + (f" and {more} more]" if more > 0 else "]")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
