"""Guarded: a member to which nothing is sent that is not wanted any more when its turn comes.

A write may wait for long: for a slot, for a connection, for a member that answers late. Whether it may be sent is asked once
more right before it is, like the lease (`fence`).
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from argosy.control.fence import Fence, fenced
from argosy.kube.client import Client

__all__ = ["Guarded", "Reached"]

T = TypeVar("T")


class Reached(Protocol):
    """What writing to a member needs of it."""

    name: str

    async def call(self, request: Callable[[Client], Awaitable[T]]) -> T: ...

    async def confirm(self) -> None: ...


class Guarded:
    def __init__(self, member: Reached, guard: Fence):
        """The guard raises `Withheld` when nothing may be sent."""
        self.name = member.name
        self._member = member
        self._guard = guard

    async def call(self, request: Callable[[Client], Awaitable[T]]) -> T:
        return await self._member.call(lambda client: request(fenced(client, self._guard)))

    async def confirm(self) -> None:
        await self._member.confirm()
