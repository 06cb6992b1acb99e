"""Informer: a cache of one resource, kept current by list and watch.

`run` is the one task: list, then watch from the list's version. When a stream ends for any reason, watch again from the last
version seen. When that version is gone (410), list again and diff. It ends only by cancellation. Errors are retried with
back-off while the cache keeps its objects: not knowing is no deletion.

A stream that died silently is noticed: the server is asked to end it well before `liveness` seconds, so silence for that long
means that the server is gone. (Bookmarks are not reliable: kube-apiserver sends none while a resource does not change.) After a
restore from a backup, an informer could wait for a version that never comes: after watches without events, one item is listed
to check whether the server is behind.

Invalid answers (BadAnswer, DecodeError) are followed by a list, since the same version would bring the same again, and by a
back-off of their own, which a valid answer in between does not end. `trouble` reports them while they are recent.

An outage is two lines in the log, its start with the reason and its end, however often it fails in between.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

from argosy.kube import chance, clock
from argosy.kube.backoff import Backoff
from argosy.kube.cache import Cache, Change, Indexer, Relist
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, BadAnswer, Gone, NotFound, TransportError
from argosy.kube.objects import DecodeError, Identified, Identity, Partial, decode, version_number
from argosy.kube.paging import MOST_BYTES, MOST_OBJECTS, PAGE
from argosy.kube.query import Selection
from argosy.kube.resource import Resource
from argosy.kube.selectors import parse_label_selector
from argosy.kube.shards import Shard
from argosy.kube.transport import Event

__all__ = ["Change", "Informer"]

T = TypeVar("T", bound=Identified)
log = logging.getLogger(__name__)

BACKOFF = Backoff(base=0.5, cap=30.0, jitter=0.4)
#: A stream that ends sooner, without an event, counts as a failure, so that it is not reopened in a busy loop.
SHORTEST_WATCH = 1.0
#: How long the informer may block the event loop while it applies what has already arrived.
SLICE = 0.005
SILENT_WATCHES = 2
#: A stream that has been open for so long ends the back-off.
STEADY = 2.0
#: After so long without an invalid answer, the next one counts as the first.
FORGIVEN = 300.0
#: Unreadable objects are listed again at least this often.
RARELY = 3600.0
_UNSERVED = "the server does not serve this kind (yet)"


class Informer(Cache[T]):
    """The cluster's objects as of `version`; `synced` is set after the first list."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        into: type[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        keep_raw: bool = False,
        indexers: Mapping[str, Indexer[T]] | None = None,
        keep: Callable[[Identity], bool] | None = None,
        shard: Shard | None = None,
        liveness: float = 60.0,
        page: int = PAGE,
        backoff: Backoff = BACKOFF,
        most_bytes: int = 0,
        on_change: Callable[[Change[T]], None] | None = None,
        on_sync: Callable[[], None] = lambda: None,
    ) -> None:
        """With a `shard`, only that part is requested; objects of others are not kept. `on_sync` hears of the first list.

        `most_bytes` limits the weight of all projections; while a list replaces the cache, twice that is held. The default is
        MOST_BYTES; informers that also keep the objects' bytes have no limit.
        """
        super().__init__(
            into,
            keep_raw=keep_raw,
            indexers=indexers,
            keep=_kept(shard, keep),
            namespaced=resource.namespaced,
            selector=parse_label_selector(label_selector),
            on_change=on_change,
        )
        self.client = client
        self.resource = resource
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.shard = shard
        #: Whether the server itself restricted the last list to the shard.
        self.shard_served = False
        self.synced = asyncio.Event()
        self._on_sync = on_sync
        #: Set once the first list has returned or failed.
        self.tried = asyncio.Event()
        #: Monotonic time of the last sign of life: a list, an event, a bookmark, a stream opened or ended normally.
        self.last_event = 0.0
        self._made_at = clock.monotonic()
        #: Lists read so far, the first included.
        self.lists = 0
        #: Why the last list or watch failed; None while all is well.
        self.last_error: str | None = None
        self._liveness = liveness
        self._page = page
        self._most_bytes = most_bytes or (sys.maxsize if keep_raw else MOST_BYTES)
        self._backoff = backoff
        self._list_wanted = True
        self._silent = 0
        self._failures = 0
        self._told_to_wait = 0.0
        #: Since when there is an outage, once that was logged.
        self._outage: float | None = None
        #: The last invalid answer's error, whether it was a list, its time, and how many there were.
        self._bad_answer = ""
        self._bad_list = False
        self._bad_at = 0.0
        self._bad_answers = 0
        #: When the last list was applied, and how often it was repeated only because of unreadable objects.
        self._listed_at = 0.0
        self._rechecks = 0
        #: Since when the current stream is open.
        self._open_since: float | None = None
        #: Since when the server does not answer, and whether it is known to do so again.
        self._unreachable_since: float | None = None
        self._answers_again = asyncio.Event()

    @property
    def name(self) -> str:
        return str(self.resource)

    @property
    def trouble(self) -> str | None:
        """The server's answers that cannot be understood; None if there are none."""
        if self._bad_answer and not self._is_steady:
            return self._bad_answer
        for key, why in self.unreadable.items():
            more = f" (and {len(self.unreadable) - 1} more)" if len(self.unreadable) > 1 else ""
            return f"{key} cannot be read: {why}{more}"
        return None

    @property
    def unreachable_for(self) -> float:
        """For how many seconds lists and watches have been failing without an answer; 0 if they are not."""
        if self._unreachable_since is None or self._is_steady:
            return 0.0
        return clock.monotonic() - self._unreachable_since

    @property
    def silent_for(self) -> float:
        """For how many seconds nothing was heard, all its life at the most."""
        return clock.monotonic() - max(self.last_event, self._made_at)

    @property
    def is_unserved(self) -> bool:
        """Whether the server said last that it does not serve the kind."""
        return self.last_error == _UNSERVED

    @property
    def is_followed(self) -> bool:
        """Whether the cache is filled, and has been followed by a watch since the last failure."""
        return self.has_synced and self._open_since is not None

    def retry(self) -> None:
        """End the back-off after a failure without an answer: the server answers others. Its errors keep their back-off."""
        self._answers_again.set()

    @property
    def _is_steady(self) -> bool:
        return self._open_since is not None and clock.monotonic() - self._open_since >= STEADY

    @property
    def has_synced(self) -> bool:
        return self.synced.is_set()

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        while True:
            try:
                if self._silent >= SILENT_WATCHES:
                    await self._compare_history()
                self._list_wanted |= self._is_doubtful()
                if self._list_wanted:
                    await self._list()
                    self._list_wanted = False
                await self._watch()
                continue
            except Gone as error:
                self._list_wanted = True
                self._failed(error)
                # The first 410 is normal; only a server that answers every list with one needs a back-off.
                if self._failures <= 1:
                    continue
            except ApiError as error:
                # For any other error of this watch (such as a version it cannot read), a list may help.
                self._list_wanted |= error.code in (400, 422)
                self._failed(error)
            except (BadAnswer, DecodeError) as error:
                # An invalid event would come again from the version before it; a list gets past it.
                self._bad_list, self._list_wanted = self._list_wanted, True
                self._failed(error)
                await asyncio.sleep(self._backoff.delay(self._distrust(error)))
                continue
            except TransportError as error:
                self._failed(error)
                await self._until_it_answers(self._backoff.delay(self._failures))
                continue
            await asyncio.sleep(max(self._backoff.delay(self._failures), self._told_to_wait))

    async def _until_it_answers(self, longest: float) -> None:
        self._answers_again.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest):
                await self._answers_again.wait()

    def _is_doubtful(self) -> bool:
        """Whether unreadable objects should be listed again, less and less often: they may stay unreadable."""
        if not self.unreadable:
            self._rechecks = 0
            return False
        if clock.monotonic() - self._listed_at < min(self._backoff.base * 2**self._rechecks, RARELY):
            return False
        self._rechecks += 1
        return True

    def _distrust(self, error: Exception) -> int:
        """The number of invalid answers, this one included."""
        now = clock.monotonic()
        self._bad_answers = self._bad_answers + 1 if now - self._bad_at < FORGIVEN else 1
        self._bad_answer, self._bad_at = str(error), now
        return self._bad_answers

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self.tried.set()
        message = _UNSERVED if isinstance(error, NotFound) else str(error) or type(error).__name__
        asked = error.retry_after if isinstance(error, ApiError) else None
        self._told_to_wait = min(asked or 0.0, self._backoff.cap)
        self.last_error = message
        if not isinstance(error, TransportError) or isinstance(error, BadAnswer):
            if self._unreachable_since is not None:
                # It is there again, and perhaps not yet itself: the back-off of the outage is not for this.
                self._failures = 1
            self._unreachable_since = None
        elif self._unreachable_since is None:
            self._unreachable_since = clock.monotonic()
        # A 410 is normal and resolved by a list. Whether a missing kind is a problem is for the caller to judge.
        if self._outage is not None or (isinstance(error, Gone) and self._failures <= 1):
            log.debug("watching %s of %s: %s", self.resource, self.client.name, message)
            return
        self._outage = clock.monotonic()
        level = logging.INFO if message == _UNSERVED else logging.WARNING
        log.log(level, "watching %s of %s: %s", self.resource, self.client.name, message)

    def _alive(self) -> None:
        self.last_event = clock.monotonic()
        self._failures = 0
        self._unreachable_since = None
        self.last_error = None
        if self._outage is not None:
            seconds = self.last_event - self._outage
            log.info("watching %s of %s: recovered after %.1f s", self.resource, self.client.name, seconds)
            self._outage = None

    async def _list(self) -> None:
        try:
            await self._list_pages(self._page)
        except Gone:
            # Its version was compacted between two pages; in one piece that cannot happen.
            await self._list_pages(0)
        self.lists += 1
        self._silent = 0
        self.last_event = self._listed_at = clock.monotonic()
        if self._bad_list:
            self._bad_answer, self._bad_list = "", False
        if not self.has_synced:
            self.synced.set()
            self._on_sync()
        self.tried.set()

    async def _compare_history(self) -> None:
        self._silent = 0
        async with aclosing(self.client.pages(self.resource, self.namespace, limit=1, **self._selection())) as pages:
            self._list_wanted |= self._is_behind((await anext(pages)).resource_version)

    def _is_behind(self, version: str) -> bool:
        there, here = version_number(version), version_number(self.version)
        return there is not None and here is not None and there < here

    def _take(self, event: Event) -> None:
        if event.type == "BOOKMARK" and self._is_behind(decode(event.object, Partial).metadata.resource_version):
            raise Gone(410, "Expired", "the server is behind what it had sent before", {})
        self.apply(event.type, event.object)
        if len(self) > MOST_OBJECTS:
            raise BadAnswer(f"there are more than {MOST_OBJECTS} objects")
        if self.held > self._most_bytes:
            raise BadAnswer(f"the objects take more than {self._most_bytes} bytes")

    async def _list_pages(self, limit: int) -> None:
        relist: Relist[T] | None = None
        pages = self.client.pages(self.resource, self.namespace, limit=limit, **self._selection())
        async for page in pages:
            self._unreachable_since = None  # it answers
            if relist is None:
                if not page.resource_version:
                    raise BadAnswer("the list has no version")
                relist = self.relist(page.resource_version)
                self.shard_served = bool(page.shard_selector)
            pause = clock.monotonic() + SLICE
            for raw in page.items:
                relist.offer(raw)
                if relist.size > self._most_bytes or self.held > 2 * self._most_bytes:
                    self.give_up()
                    raise BadAnswer(f"the objects take more than {self._most_bytes} bytes")
                if clock.monotonic() >= pause:
                    await asyncio.sleep(0)
                    pause = clock.monotonic() + SLICE
        if relist is not None:
            relist.finish()

    async def _watch(self) -> None:
        started = clock.monotonic()
        heard = False
        try:
            async with asyncio.timeout(self._liveness) as silence, self._stream() as events:
                moved = self.last_event = self._open_since = clock.monotonic()
                pause = moved + SLICE
                loop = asyncio.get_running_loop()
                async for event in events:
                    self._take(event)
                    if not heard:
                        heard = True
                        self._alive()
                    now = self.last_event = clock.monotonic()
                    # Moving the deadline with every event of a burst would cost more than the events.
                    if now - moved > self._liveness / 20:
                        silence.reschedule(loop.time() + self._liveness)
                        moved = now
                    if now >= pause:
                        await asyncio.sleep(0)
                        pause = clock.monotonic() + SLICE
        except TimeoutError:
            raise TransportError(f"nothing was heard for {self._liveness:g} s") from None
        finally:
            if self._is_steady:  # what went before is over, whatever ended the stream
                self._bad_answer, self._unreachable_since = "", None
            self._open_since = None
            self._silent = 0 if heard else self._silent + 1
        if not heard and clock.monotonic() - started < SHORTEST_WATCH:
            raise TransportError("the server ended the watch at once")
        self._alive()

    def _stream(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self.client.watch(
            self.resource,
            self.namespace,
            resource_version=self.version,
            timeout_seconds=max(1, int(self._liveness * chance.uniform(0.6, 0.8))),
            **self._selection(),
        )

    def _selection(self) -> Selection:
        return {"label_selector": self.label_selector, "field_selector": self.field_selector, "shard": self.shard}


def _kept(shard: Shard | None, keep: Callable[[Identity], bool] | None) -> Callable[[Identity], bool] | None:
    if shard is None:
        return keep
    covers = shard.covers
    if keep is None:
        return lambda metadata: covers(metadata.uid)
    return lambda metadata: keep(metadata) and covers(metadata.uid)
