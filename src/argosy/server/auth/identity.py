"""The values that authentication and authorisation exchange: users, and what they request."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

__all__ = ["Attributes", "Authenticator", "Authorizer", "Decision", "User"]


class User(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class Attributes(msgspec.Struct, frozen=True):
    """What a request wants to do; for non-resource requests only `verb` and `path` are set."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


class Decision(msgspec.Struct, frozen=True):
    allowed: bool
    reason: str = ""


class Authenticator(Protocol):
    def authenticate(self, headers: Mapping[str, str], peer_certificate: bytes | None) -> User | None:
        """The user; None if the credentials are missing or wrong. `peer_certificate` is verified DER."""
        ...


class Authorizer(Protocol):
    def authorize(self, attributes: Attributes) -> Decision: ...
