"""Limits on what clients may ask for at once. Bodies, headers and times are checked where bytes come in (`http`)."""

import msgspec

from argosy.server import status

__all__ = ["InFlight", "Limits"]


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = 3 * 1024 * 1024
    header_bytes: int = 64 * 1024
    #: Seconds a request may take; watches have their own.
    request_seconds: float = 60.0
    #: Seconds a client may take to send a request it began, and to leave a connection idle.
    receive_seconds: float = 30.0
    idle_seconds: float = 300.0
    #: Requests being answered at once; reads and writes apart, as in kube-apiserver.
    reads: int = 400
    writes: int = 200
    watches: int = 20_000
    #: Watches that name no timeoutSeconds end after this long (and up to twice as long, so that they do not all at once).
    watch_seconds: float = 1800.0


class InFlight:
    """Counts requests; leases pass while there is any room at all, so that leaders stay leaders under load."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self.reads = self.writes = self.watches = 0

    def enter(self, *, write: bool, priority: bool) -> None:
        """Raises 429. Whoever entered leaves."""
        limits = self._limits
        if write:
            if self.writes >= limits.writes * (2 if priority else 1):
                raise status.too_many_requests()
            self.writes += 1
            return
        if self.reads >= limits.reads * (2 if priority else 1):
            raise status.too_many_requests()
        self.reads += 1

    def leave(self, *, write: bool) -> None:
        if write:
            self.writes -= 1
        else:
            self.reads -= 1

    def enter_watch(self) -> None:
        if self.watches >= self._limits.watches:
            raise status.too_many_requests()
        self.watches += 1

    def leave_watch(self) -> None:
        self.watches -= 1
