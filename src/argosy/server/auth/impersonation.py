"""Impersonation: a user with the right to do so acts as somebody else for one request.

As in Kubernetes, there are several modes. The older one needs the verb `impersonate` on everything that is claimed (user or
account, uid, groups, extra values), and then allows any request. The constrained modes, one for each kind of user, need the
verb `impersonate:<mode>` on what is claimed and `impersonate-on:<mode>:<verb>` on the target of the request itself.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

import msgspec

from argosy.kube import names
from argosy.server.auth.authentication import AUTHENTICATED, UNAUTHENTICATED
from argosy.server.auth.identity import Attributes, Authorizer, User
from argosy.server.auth.rbac import SUPERUSERS
from argosy.server.auth.tokens import NODE_NAME, account_groups, account_of
from argosy.server.kinds.shared.domains import prefixed_path
from argosy.server.status import aggregate

__all__ = ["Impersonation", "ImpersonationDenied", "ImpersonationIncomplete"]

_EXTRA = "impersonate-extra-"
_NODE = "system:node:"
_NODES = "system:nodes"
_ANONYMOUS = "system:anonymous"
_REVIEWS = "authentication.k8s.io"
#: From so many groups or values on, a constrained right to the name `*` covers them all.
_MANY = 4
#: Users whose last mode is remembered.
_REMEMBERED = 10_000
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class ImpersonationDenied(Exception):
    """Carries the attributes that were not allowed, for the message of the 403, and further text."""

    def __init__(self, attributes: Attributes, why: str = ""):
        super().__init__(f"{attributes.user.name} may not {attributes.verb} {attributes.resource} {attributes.name}")
        self.attributes = attributes
        self.why = why


class ImpersonationIncomplete(Exception):
    """Groups, a uid or extra fields were claimed without a user."""


class Impersonation:
    def __init__(self, authorizer: Authorizer):
        self._authorizer = authorizer
        self._ways = (_AssociatedNode(), _ArbitraryNode(), _Account(), _UserInfo(), _Older())
        #: The last successful mode of each user: tried first, so that a refusal names the rights the user expects to need.
        self._last: OrderedDict[str, _Way] = OrderedDict()

    def user(self, user: User, headers: Mapping[str, str], attributes: Callable[[User], Attributes]) -> User:
        """The user to act as: the same if the headers claim nobody.

        Header names are lower case; repeated headers have their values on separate lines. `attributes` tells what the request
        is about. Raises ImpersonationDenied and ImpersonationIncomplete.
        """
        wanted = _claimed(headers)
        if wanted is None:
            return user
        last = self._last.get(user.name)
        ways = self._ways if last is None else (last, *(way for way in self._ways if way is not last))
        refusal: ImpersonationDenied | None = None
        for way in ways:
            if not way.serves(user, wanted):
                continue
            try:
                self._check(way.questions(user, wanted, attributes))
            except ImpersonationDenied as denial:
                refusal = refusal or denial
                continue
            self._remember(user.name, way)
            return _completed(wanted, way.groups(wanted))
        assert refusal is not None  # the older mode applies to everybody
        raise refusal

    def _check(self, questions: "Iterator[tuple[Attributes, ...]]") -> None:
        """Each must be allowed, by one of its alternatives; a refusal names the last alternative."""
        for alternatives in questions:
            decisions = [self._authorizer.authorize(attributes) for attributes in alternatives]
            if not any(decision.allowed for decision in decisions):
                raise ImpersonationDenied(alternatives[-1], decisions[-1].reason)

    def _remember(self, name: str, way: "_Way") -> None:
        self._last[name] = way
        self._last.move_to_end(name)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


class _Way:
    """One mode of impersonation."""

    verb = "impersonate"
    #: API group of users and groups in the rights of this mode.
    group = ""

    def serves(self, user: User, wanted: User) -> bool:
        raise NotImplementedError

    def groups(self, wanted: User) -> tuple[str, ...]:
        """The groups of the user to act as."""
        account = account_of(wanted.name)
        return wanted.groups or (account_groups(account[0]) if account else ())

    def questions(
        self, user: User, wanted: User, attributes: Callable[[User], Attributes]
    ) -> Iterator[tuple[Attributes, ...]]:
        """What must be allowed, one after another, each with its alternatives."""
        yield (self._name(user, wanted.name),)
        if wanted.uid:
            yield (Attributes(user, self.verb, _REVIEWS, "v1", "uids", name=wanted.uid),)
        for group in wanted.groups:
            yield (Attributes(user, self.verb, self.group, "v1", "groups", name=group),)
        for key, values in wanted.extra.items():
            for value in values:
                yield (Attributes(user, self.verb, _REVIEWS, "v1", "userextras", key, name=value),)

    def _name(self, user: User, name: str) -> Attributes:
        account = account_of(name)
        if account is not None:
            namespace, name = account
            return Attributes(user, self.verb, self.group, "v1", "serviceaccounts", namespace=namespace, name=name)
        return Attributes(user, self.verb, self.group, "v1", "users", name=name)


class _Older(_Way):
    def serves(self, user: User, wanted: User) -> bool:
        return True


class _Constrained(_Way):
    group = _REVIEWS

    def questions(
        self, user: User, wanted: User, attributes: Callable[[User], Attributes]
    ) -> Iterator[tuple[Attributes, ...]]:
        asked = attributes(user)
        way = self.verb.removeprefix("impersonate:")
        yield (msgspec.structs.replace(asked, verb=f"impersonate-on:{way}:{asked.verb}"),)
        yield from super().questions(user, wanted, attributes)


class _ArbitraryNode(_Constrained):
    verb = "impersonate:arbitrary-node"

    def serves(self, user: User, wanted: User) -> bool:
        return _named_only(wanted) and _node_of(wanted.name) is not None

    def groups(self, wanted: User) -> tuple[str, ...]:
        return (_NODES,)

    def _name(self, user: User, name: str) -> Attributes:
        return Attributes(user, self.verb, _REVIEWS, "v1", "nodes", name=_node_of(name) or "")


class _AssociatedNode(_ArbitraryNode):
    """The node that the service account's token is bound to."""

    verb = "impersonate:associated-node"

    def serves(self, user: User, wanted: User) -> bool:
        own = user.extra.get(NODE_NAME, ())
        return super().serves(user, wanted) and account_of(user.name) is not None and own == (_node_of(wanted.name),)

    def _name(self, user: User, name: str) -> Attributes:
        return Attributes(user, self.verb, _REVIEWS, "v1", "nodes", name="*")


class _Account(_Constrained):
    verb = "impersonate:serviceaccount"

    def serves(self, user: User, wanted: User) -> bool:
        return _named_only(wanted) and account_of(wanted.name) is not None


class _UserInfo(_Constrained):
    verb = "impersonate:user-info"

    def serves(self, user: User, wanted: User) -> bool:
        return _node_of(wanted.name) is None and account_of(wanted.name) is None

    def questions(
        self, user: User, wanted: User, attributes: Callable[[User], Attributes]
    ) -> Iterator[tuple[Attributes, ...]]:
        groups = Attributes(user, self.verb, _REVIEWS, "v1", "groups")
        extras = Attributes(user, self.verb, _REVIEWS, "v1", "userextras")
        many_groups = len(wanted.groups) >= _MANY
        many_extras = sum(map(len, wanted.extra.values())) >= _MANY
        for (question,) in super().questions(user, wanted, attributes):
            if question.resource == "groups" and question.verb == self.verb:
                if "" in wanted.groups:
                    raise ImpersonationDenied(groups, "impersonating the empty string group is not allowed")
                if SUPERUSERS in wanted.groups:
                    named = msgspec.structs.replace(groups, name=SUPERUSERS)
                    raise ImpersonationDenied(named, f"impersonating the {SUPERUSERS} group is not allowed")
                if many_groups:
                    yield msgspec.structs.replace(groups, name="*"), question
                    continue
            if question.resource == "userextras" and question.verb == self.verb:
                if wrong := _wrong_extra(wanted.extra):
                    raise ImpersonationDenied(extras, wrong)
                if many_extras:
                    yield msgspec.structs.replace(extras, subresource="*", name="*"), question
                    continue
            yield (question,)


def _claimed(headers: Mapping[str, str]) -> User | None:
    """The claimed user as in the headers; None if they claim nothing."""
    name = headers.get("impersonate-user", "").partition("\n")[0]
    uid = headers.get("impersonate-uid", "").partition("\n")[0]
    given = headers.get("impersonate-group")
    groups = tuple(given.split("\n")) if given is not None else ()
    extra = {
        _unescaped(key.removeprefix(_EXTRA)): tuple(value.split("\n"))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    if name:
        return User(name, groups, uid, extra)
    if groups or uid or extra:
        raise ImpersonationIncomplete(f"requested {_shown(groups, uid, extra)} without impersonating a user name")
    return None


def _completed(wanted: User, groups: tuple[str, ...]) -> User:
    if wanted.name == _ANONYMOUS:
        own = UNAUTHENTICATED
    else:
        own = AUTHENTICATED if UNAUTHENTICATED not in groups else UNAUTHENTICATED
    return User(wanted.name, groups if own in groups else (*groups, own), wanted.uid, wanted.extra)


def _named_only(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _node_of(name: str) -> str | None:
    """The node a user name stands for."""
    node = name.removeprefix(_NODE)
    return node if name.startswith(_NODE) and not names.dns_subdomain_errors(node) else None


def _unescaped(key: str) -> str:
    return key if _BAD_ESCAPE.search(key) else unquote(key)


def _wrong_extra(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if errors := prefixed_path(key, "extra.key"):
            texts = aggregate([str(error) for error in errors])
            return f"impersonating an invalid key in extra is not allowed: {texts}"
        if key != key.lower():
            return f'impersonating a non-lowercase key in extra is not allowed: "{key}"'
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _shown(groups: tuple[str, ...], uid: str, extra: Mapping[str, tuple[str, ...]]) -> str:
    """The claim as kube-apiserver prints it."""
    fields = ", ".join(f'"{key}":{_strings(values)}' for key, values in sorted(extra.items()))
    more = f"map[string][]string{{{fields}}}" if extra else "map[string][]string(nil)"
    listed = _strings(groups) if groups else "[]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{listed}, Extra:{more}}}'


def _strings(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"
