"""Bearer tokens: static ones from a list, and service-account tokens (JWTs) that the server signs and verifies itself.

A service-account token is bound to the account's uid, and expires with the account. It may also be bound to an object, and then
expires with that, too; `refusal` asks the store.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from argosy.kube import chance, clock, names
from argosy.server.auth.identity import User

__all__ = [
    "CREDENTIAL_ID",
    "ISSUER",
    "NODE_NAME",
    "ServiceAccountTokens",
    "StaticTokens",
    "TokenClaims",
    "TokenRefused",
    "account_groups",
    "account_of",
    "new_key",
    "service_account_user",
]

ISSUER = "https://kubernetes.default.svc"
_ALGORITHM = "ES256"
_CLAIM = "kubernetes.io"
_ACCOUNT = "system:serviceaccount:"
_EXTRA = "authentication.kubernetes.io"
#: Extra fields of a user: which credential it came with, and the node its token names.
CREDENTIAL_ID = f"{_EXTRA}/credential-id"
NODE_NAME = f"{_EXTRA}/node-name"


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
    """The content of a valid service-account token."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    #: Extra fields of the user: which token it is, and the pod and node it names.
    extra: Mapping[str, tuple[str, ...]] = {}


class TokenRefused(Exception):
    """A token that we signed but that is not valid, or not for this audience; the message says why."""


class ServiceAccountTokens:
    """Signs and verifies service-account tokens with one key (PEM, EC P-256).

    `refusal` says why a token with these claims is no longer valid, or nothing.
    """

    def __init__(
        self, key: bytes, *, issuer: str = ISSUER, refusal: Callable[[Mapping[str, Any]], str] = lambda claims: ""
    ):
        private = serialization.load_pem_private_key(key, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the service-account key is not an elliptic-curve key")
        self._private = private
        self._public = private.public_key()
        self.issuer = issuer
        self._refusal = refusal

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
        now = int(clock.time())
        expires = now + seconds
        account = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **(bound or {})}
        claims = {
            "aud": list(audiences) or [self.issuer],
            "exp": expires,
            "iat": now,
            "nbf": now,
            "iss": self.issuer,
            "jti": chance.uid(),
            "sub": f"system:serviceaccount:{namespace}:{name}",
            _CLAIM: account,
        }
        return jwt.encode(claims, self._private, algorithm=_ALGORITHM), expires

    def verify(self, token: str, audiences: Iterable[str] = ()) -> TokenClaims | None:
        """The claims of a current token for one of `audiences` whose objects still exist; None: not ours.

        Raises TokenRefused.
        """
        wanted = list(audiences) or [self.issuer]
        options: Any = {"verify_aud": False, "verify_exp": False}
        try:
            claims = jwt.decode(token, self._public, algorithms=[_ALGORITHM], issuer=self.issuer, options=options)
            account, given, expires = claims[_CLAIM], claims["aud"], claims["exp"]
            found = TokenClaims(
                namespace=account["namespace"],
                name=account["serviceaccount"]["name"],
                uid=account["serviceaccount"]["uid"],
                audiences=tuple(audience for audience in wanted if audience in given),
                extra=_extra(claims["jti"], account),
            )
        except (jwt.PyJWTError, KeyError, TypeError):
            return None
        if not found.audiences:
            raise TokenRefused(
                f"token audiences {_listed(given)} is invalid for the target audiences {_listed(wanted)}"
            )
        if expires <= clock.time():
            raise TokenRefused("service account token has expired")
        if why := self._refusal(account):
            raise TokenRefused(why)
        return found


def service_account_user(claims: TokenClaims) -> User:
    """The user a service account acts as."""
    return User(
        name=f"{_ACCOUNT}{claims.namespace}:{claims.name}",
        uid=claims.uid,
        groups=(*account_groups(claims.namespace), "system:authenticated"),
        extra=claims.extra,
    )


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account of a user name; None if it is no service account's."""
    if not name.startswith(_ACCOUNT):
        return None
    namespace, colon, account = name.removeprefix(_ACCOUNT).partition(":")
    if not colon or names.dns_label_errors(namespace) or names.dns_subdomain_errors(account):
        return None
    return namespace, account


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every service account of a namespace."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def new_key() -> bytes:
    """A fresh signing key, PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _listed(values: Iterable[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _extra(token_id: str, account: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={token_id}",)}
    for kind in ("pod", "node"):
        named = account.get(kind)
        if named is not None:
            extra[f"{_EXTRA}/{kind}-name"] = (named["name"],)
            if named.get("uid"):
                extra[f"{_EXTRA}/{kind}-uid"] = (named["uid"],)
    return extra


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
