"""Authentication: from a request's certificate or bearer token to a user.

The order is Kubernetes': client certificate, then token; the token is not checked if there is a certificate. There are no
anonymous users: a request without credentials is refused (401).
"""

import hashlib
from collections.abc import Mapping

from argosy.server.auth.certificates import peer_identity
from argosy.server.auth.identity import User
from argosy.server.auth.tokens import (
    CREDENTIAL_ID,
    ISSUER,
    ServiceAccountTokens,
    StaticTokens,
    TokenRefused,
    service_account_user,
)

__all__ = ["AUTHENTICATED", "UNAUTHENTICATED", "Authentication"]

AUTHENTICATED = "system:authenticated"
#: Nobody can log in as one of these, but a user with the right can impersonate one.
UNAUTHENTICATED = "system:unauthenticated"


class Authentication:
    """Implements `identity.Authenticator`."""

    def __init__(self, static: StaticTokens, accounts: ServiceAccountTokens | None = None):
        self._static = static
        self._accounts = accounts

    def authenticate(self, headers: Mapping[str, str], peer_certificate: bytes | None) -> User | None:
        if peer_certificate:
            name, groups = peer_identity(peer_certificate)
            if name:
                extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(peer_certificate).hexdigest()}",)}
                return User(name=name, groups=_with_authenticated(groups), extra=extra)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        try:
            known = self.known(token.strip())
        except TokenRefused:
            return None
        return known[0] if known else None

    def known(self, token: str, audiences: tuple[str, ...] = ()) -> tuple[User, tuple[str, ...]] | None:
        """The user of a token, and for which of the audiences (ours by default); None if it is nobody's.

        Raises TokenRefused.
        """
        user = self._static.find(token)
        if user is not None:
            ours = tuple(audience for audience in audiences or (ISSUER,) if audience == ISSUER)
            return (User(user.name, _with_authenticated(user.groups), user.uid, user.extra), ours) if ours else None
        claims = self._accounts.verify(token, audiences) if self._accounts is not None else None
        return (service_account_user(claims), claims.audiences) if claims else None


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
