"""Bearer tokens: static ones from a list, and service-account tokens (JWTs) that the server signs and checks itself.

A service-account token is bound to the account's uid, so that it dies with the account; `lives` asks the store. It may be
bound to an object besides, and then dies with that as well; `bound_lives` asks.
"""

import hashlib
import hmac
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from argosy.server.identity import User

__all__ = ["ISSUER", "ServiceAccountTokens", "StaticTokens", "TokenClaims", "new_key", "service_account_user"]

ISSUER = "https://kubernetes.default.svc"
_ALGORITHM = "ES256"
_CLAIM = "kubernetes.io"


class StaticTokens:
    """A fixed list of tokens. Only digests are kept, and they are compared in constant time."""

    def __init__(self, tokens: Mapping[str, User] | None = None):
        self._users = [(_digest(token), user) for token, user in (tokens or {}).items()]

    def find(self, token: str) -> User | None:
        digest = _digest(token)
        found: User | None = None
        for known, user in self._users:
            if hmac.compare_digest(known, digest):
                found = user
        return found


class TokenClaims(msgspec.Struct, frozen=True):
    """What a valid service-account token says."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]


class ServiceAccountTokens:
    """Signs and verifies service-account tokens with one key (PEM, EC P-256)."""

    def __init__(
        self,
        key: bytes,
        *,
        issuer: str = ISSUER,
        lives: Callable[[str, str, str], bool] | None = None,
        bound_lives: Callable[[str, Mapping[str, Any]], bool] | None = None,
    ):
        private = serialization.load_pem_private_key(key, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the service-account key is not an elliptic-curve key")
        self._private = private
        self._public = private.public_key()
        self.issuer = issuer
        self._lives = lives or (lambda namespace, name, uid: True)
        self._bound_lives = bound_lives or (lambda namespace, claims: True)

    def sign(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        audiences: Iterable[str] = (),
        seconds: int = 3600,
        bound: Mapping[str, Any] | None = None,
    ) -> tuple[str, int]:
        """A token and the Unix time it expires at. `bound` is the object it is bound to besides the account."""
        now = int(time.time())
        expires = now + seconds
        account = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **(bound or {})}
        claims = {
            "aud": list(audiences) or [self.issuer],
            "exp": expires,
            "iat": now,
            "nbf": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
            _CLAIM: account,
        }
        return jwt.encode(claims, self._private, algorithm=_ALGORITHM), expires

    def verify(self, token: str, audiences: Iterable[str] = ()) -> TokenClaims | None:
        """The claims of a token that is ours, in time, for one of `audiences`, and whose account still lives."""
        wanted = list(audiences) or [self.issuer]
        try:
            claims = jwt.decode(token, self._public, algorithms=[_ALGORITHM], audience=wanted, issuer=self.issuer)
            account = claims[_CLAIM]
            found = TokenClaims(
                namespace=account["namespace"],
                name=account["serviceaccount"]["name"],
                uid=account["serviceaccount"]["uid"],
                audiences=tuple(audience for audience in claims["aud"] if audience in wanted),
            )
        except (jwt.PyJWTError, KeyError, TypeError):
            return None
        if not self._lives(found.namespace, found.name, found.uid):
            return None
        return found if self._bound_lives(found.namespace, account) else None


def service_account_user(claims: TokenClaims) -> User:
    """The user a service account acts as."""
    return User(
        name=f"system:serviceaccount:{claims.namespace}:{claims.name}",
        uid=claims.uid,
        groups=("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", "system:authenticated"),
    )


def new_key() -> bytes:
    """A fresh signing key, PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
