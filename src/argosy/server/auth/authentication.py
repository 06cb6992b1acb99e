"""Authentication: from a request's certificate or bearer token to a user.

The order is Kubernetes': client certificate, then token; no token is looked at when a certificate answers. There are no
anonymous users: a request without credentials is nobody's (401).
"""

from collections.abc import Mapping

from argosy.server.auth.certificates import peer_identity
from argosy.server.auth.tokens import ServiceAccountTokens, StaticTokens, service_account_user
from argosy.server.identity import User

__all__ = ["AUTHENTICATED", "Authentication"]

AUTHENTICATED = "system:authenticated"


class Authentication:
    """Implements `identity.Authenticator`."""

    def __init__(self, static: StaticTokens, accounts: ServiceAccountTokens | None = None):
        self._static = static
        self._accounts = accounts

    def authenticate(self, headers: Mapping[str, str], peer_certificate: bytes | None) -> User | None:
        if peer_certificate:
            name, groups = peer_identity(peer_certificate)
            if name:
                return User(name=name, groups=_with_authenticated(groups))
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        return self.user_of_token(token.strip())

    def user_of_token(self, token: str, audiences: tuple[str, ...] = ()) -> User | None:
        """Whose token this is (also what a TokenReview answers)."""
        user = self._static.find(token)
        if user is not None:
            return User(user.name, _with_authenticated(user.groups), user.uid, user.extra)
        if self._accounts is None:
            return None
        claims = self._accounts.verify(token, audiences)
        return service_account_user(claims) if claims else None


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
