"""Impersonation: a user who may impersonate acts as somebody else for one request.

Every part that is claimed (user, groups, uid, extra) needs its own permission, as in Kubernetes.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from argosy.server.auth.authentication import AUTHENTICATED
from argosy.server.identity import Attributes, Authorizer, User

__all__ = ["ImpersonationDenied", "ImpersonationIncomplete", "impersonated"]

_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"


class ImpersonationDenied(Exception):
    """Carries the attributes that were not allowed, for the 403 that names them."""

    def __init__(self, attributes: Attributes):
        super().__init__(f"{attributes.user.name} may not impersonate {attributes.resource} {attributes.name}")
        self.attributes = attributes


class ImpersonationIncomplete(Exception):
    """Groups, a uid or extra fields were claimed, and no user."""


def impersonated(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """The user to act as. Header names are lower case; several groups come joined by newlines or commas."""
    target = headers.get("impersonate-user", "")
    groups = [group for group in headers.get("impersonate-group", "").replace("\n", ",").split(",") if group]
    uid = headers.get("impersonate-uid", "")
    extra = {unquote(key[len(_EXTRA) :]): value for key, value in headers.items() if key.startswith(_EXTRA)}
    if not (target or groups or uid or extra):
        return user
    if not target:
        raise ImpersonationIncomplete(f"requested {_shown(groups, uid, extra)} without impersonating a user name")

    for attributes in _claims(user, target, groups, uid, extra):
        if not authorizer.authorize(attributes).allowed:
            raise ImpersonationDenied(attributes)

    if target.startswith(_ACCOUNT) and not groups:
        namespace = target[len(_ACCOUNT) :].partition(":")[0]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if target != "system:anonymous" and AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    return User(target, tuple(groups), uid, {key: (value,) for key, value in extra.items()})


def _shown(groups: list[str], uid: str, extra: dict[str, str]) -> str:
    """The claim as kube-apiserver prints it."""
    listed = "[]string{" + ", ".join(f'"{group}"' for group in groups) + "}" if groups else "[]string(nil)"
    fields = ", ".join(f'"{key}":[]string{{"{value}"}}' for key, value in extra.items())
    more = f"map[string][]string{{{fields}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{listed}, Extra:{more}}}'


def _claims(user: User, target: str, groups: list[str], uid: str, extra: dict[str, str]) -> list[Attributes]:
    if target.startswith(_ACCOUNT):
        namespace, _, name = target[len(_ACCOUNT) :].partition(":")
        claims = [Attributes(user, "impersonate", resource="serviceaccounts", namespace=namespace, name=name)]
    else:
        claims = [Attributes(user, "impersonate", resource="users", name=target)]
    claims += [Attributes(user, "impersonate", resource="groups", name=group) for group in groups]
    review = {"group": "authentication.k8s.io", "version": "v1"}
    if uid:
        claims.append(Attributes(user, "impersonate", resource="uids", name=uid, **review))
    claims += [
        Attributes(user, "impersonate", resource="userextras", subresource=key, name=value, **review)
        for key, value in extra.items()
    ]
    return claims
