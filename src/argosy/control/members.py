"""Members: the clusters we can talk to, each with its client, its limits and its own tasks.

`control/clusters` connects and disconnects them; everybody else only looks them up. A member that is disconnected takes its
informers with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from argosy.control.breaker import Breaker
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.supervise import Supervisor

__all__ = ["Member", "Members"]

T = TypeVar("T")


class Member:
    """One connected member. Calls go through `call`, which keeps a silent member from holding up the others."""

    #: Requests under way to one member at a time; more would only queue up in the member, each on a connection of its own.
    CONCURRENCY = 16

    def __init__(self, name: str, client: Client, timings: Timings):
        self.name = name
        self.client = client
        self.breaker = Breaker(timings.breaker_failures, timings.breaker_open)
        self.tasks = Supervisor()
        self._slots = asyncio.Semaphore(self.CONCURRENCY)
        self._timeout = timings.member_write

    async def call(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Make one request. Raises BreakerOpen without sending, TransportError or TimeoutError without an answer."""
        self.breaker.check()
        try:
            async with asyncio.timeout(self._timeout), self._slots:
                answer = await request(self.client)
        except (TransportError, TimeoutError):
            self.breaker.failed()
            raise
        except BaseException:
            # Any answer, an error too, shows that the member is there; a cancelled try must not stay "being tried".
            self.breaker.succeeded()
            raise
        self.breaker.succeeded()
        return answer

    async def close(self) -> None:
        await self.tasks.close()
        await self.client.close()


class Members:
    """All connected members by name."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._listeners: list[Callable[[str, Member | None], None]] = []

    def get(self, name: str) -> Member | None:
        return self._members.get(name)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def on_change(self, listener: Callable[[str, Member | None], None]) -> None:
        """Be told of each member that is connected (with the member) or disconnected (with None)."""
        self._listeners.append(listener)

    async def connect(self, member: Member) -> None:
        """Use this connection from now on, in place of an earlier one."""
        await self.disconnect(member.name)
        self._members[member.name] = member
        self._tell(member.name, member)

    async def disconnect(self, name: str) -> None:
        member = self._members.pop(name, None)
        if member is None:
            return
        self._tell(name, None)
        await member.close()

    async def close(self) -> None:
        for name in list(self._members):
            await self.disconnect(name)

    def _tell(self, name: str, member: Member | None) -> None:
        for listener in self._listeners:
            listener(name, member)
