"""Members: the connected clusters, each with its client, its limits and its own tasks.

`control/clusters` connects and disconnects them; all others only look them up. The informers of a member end with its
connection.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from argosy.control.fence import Withheld
from argosy.control.members.breaker import Breaker, BreakerOpen
from argosy.control.timings import Timings
from argosy.control.wake import Signal
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.informer import Informer
from argosy.kube.supervise import Supervisor

__all__ = ["Connected", "Member", "Members"]

T = TypeVar("T")
_MOST_DOUBTS = 100


class Member:
    """One connected member. Requests go through `call`, so that a silent member does not block the others."""

    #: Concurrent requests to one member; more would only queue up in the member, each on a connection of its own.
    CONCURRENCY = 16

    def __init__(
        self,
        name: str,
        client: Client,
        timings: Timings,
        confirm: Callable[[], Awaitable[None]],
        recovered: Callable[[str], None],
        faltered: Callable[[str], None],
    ):
        """`faltered` is called with the name when the first call fails, `recovered` when the member answers again."""
        self.name = name
        self.client = client
        self._confirm = confirm
        self.breaker = Breaker(timings.breaker_failures, timings.breaker_open)
        self.tasks = Supervisor()
        self._recovered = recovered
        self._faltered = faltered
        self._slots = asyncio.Semaphore(self.CONCURRENCY)
        self._timeout = timings.member_write
        self._silence = timings.member_silence
        #: When the requests in progress were sent, oldest first, and when the last answer came.
        self._sent: dict[int, float] = {}
        self._numbers = itertools.count()
        self._answered = 0.0
        self._in_trouble = False
        self._informers: dict[str, Informer[Any]] = {}
        #: Objects that turned out to be invalid, and why.
        self._doubts: dict[str, str] = {}

    def follow(self, task: str, informer: Informer[Any]) -> None:
        """Run an informer among the member's tasks, under this name.

        It is restarted if it fails: a dead watch would look like one without changes.
        """
        self._informers[task] = informer
        self.tasks.start(task, informer.run, restart=True)

    def unfollow(self, task: str) -> None:
        self._informers.pop(task, None)
        self.tasks.cancel(task)

    def doubt(self, what: str, why: str) -> None:
        """Record that an object of the member is invalid; an empty reason removes the record."""
        self._doubts.pop(what, None)
        if why and len(self._doubts) < _MOST_DOUBTS:
            self._doubts[what] = why

    def troubles(self) -> list[str]:
        """The member's answers that cannot be understood."""
        heard = [f"{each.resource}: {each.trouble}" for each in self._informers.values() if each.trouble is not None]
        return sorted({*heard, *(f"{what}: {why}" for what, why in self._doubts.items())})

    def answers(self, *, again: bool, retry: bool = True) -> None:
        """The member answered a probe: `again` its callers try again now, and `retry` its watches that could not reach it."""
        for informer in self._informers.values() if retry else ():
            informer.retry()
        if again:
            self._is_there()

    def unwatched(self) -> float:
        """For how many seconds a watch has been failing without an answer; 0 if none is."""
        return max((each.unreachable_for for each in self._informers.values()), default=0.0)

    @property
    def silent(self) -> bool:
        """Whether requests are in progress and the member has not answered for long."""
        oldest = next(iter(self._sent.values()), None)
        return oldest is not None and clock.monotonic() - max(oldest, self._answered) > self._silence

    async def call(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Make one request. Raises BreakerOpen without sending, TransportError or TimeoutError without an answer."""
        if self.silent:
            self._falter()
            raise BreakerOpen(self._silence)
        self.breaker.check()
        try:
            async with asyncio.timeout(self._timeout), self._slots:
                answer = await self._send(request)
        except (TransportError, TimeoutError):
            self.breaker.failed()
            self._falter()
            raise
        except (asyncio.CancelledError, Withheld):  # unknown result, or none, but the breaker's trial call is over
            self.breaker.abandoned()
            raise
        except BaseException:  # any answer, even an error, shows that the member is there
            self._is_there()
            raise
        self._is_there()
        return answer

    async def confirm(self) -> None:
        """Return when the member has proven, after this call, to be the one that joined: its earlier answers are its own then.

        Raises as `call` does, and for an error answer.
        """
        await self.call(lambda client: self._confirm())

    async def _send(self, request: Callable[[Client], Awaitable[T]]) -> T:
        number = next(self._numbers)
        self._sent[number] = clock.monotonic()
        try:
            return await request(self.client)
        finally:
            del self._sent[number]

    def _falter(self) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            self._faltered(self.name)

    def _is_there(self) -> None:
        self._answered = clock.monotonic()
        self.breaker.succeeded()
        if self._in_trouble:
            self._in_trouble = False
            self._recovered(self.name)

    async def close(self) -> None:
        await self.tasks.close()
        await self.client.close()


class Connected(NamedTuple):
    """A member that was connected, or (None) disconnected."""

    name: str
    member: Member | None


class Members:
    """All connected members by name."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.changes: Signal[Connected] = Signal("connections to members")
        #: The name of a member that answers again after a failure.
        self.recovered: Signal[str] = Signal("members that answer again")

    def get(self, name: str) -> Member | None:
        return self._members.get(name)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    async def connect(self, member: Member) -> None:
        """Use this connection from now on, instead of an earlier one."""
        await self.disconnect(member.name)
        self._members[member.name] = member
        self.changes.tell(Connected(member.name, member))

    async def disconnect(self, name: str) -> None:
        member = self._members.pop(name, None)
        if member is None:
            return
        self.changes.tell(Connected(name, None))
        await member.close()

    async def close(self) -> None:
        for name in list(self._members):
            await self.disconnect(name)
