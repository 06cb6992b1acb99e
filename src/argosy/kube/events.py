"""Events: report to users what happened to their object, without flooding the server.

`event` never waits and never fails: it correlates, and puts the rest on a bounded queue that `run` writes from. The same event
again only increases the count of the written one; many different messages of one reason on one object are combined; and each
object has a budget. Correlation is in `Correlator`, without I/O.
"""

import asyncio
import logging
import os
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from argosy.kube import chance, clock, timestamps
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.names import dns_subdomain_errors
from argosy.kube.ratelimit import TokenBucket
from argosy.kube.resource import Resource

__all__ = ["EVENTS", "Correlator", "EventRecorder", "Occurrence"]

log = logging.getLogger(__name__)

EVENTS = Resource("", "v1", "events", "Event")
COMBINED = "(combined from similar events): "
#: More different messages than this of one reason on one object within the window are folded into one event.
SIMILAR = 10
WINDOW = 600.0
BURST = 25
REFILL = 1 / 300.0
#: Objects and events remembered; the least recently used go first.
REMEMBERED = 4096
#: Bytes of a message Kubernetes accepts.
MAX_MESSAGE = 1024

REFERENCE = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath")


class Occurrence(msgspec.Struct, frozen=True):
    """One thing that happened to one object."""

    regarding: tuple[tuple[str, str], ...]
    type: str
    reason: str
    message: str

    @property
    def subject(self) -> tuple[tuple[str, str], ...]:
        """The object itself, whatever its version."""
        return tuple(pair for pair in self.regarding if pair[0] != "resourceVersion")


class _Similar(msgspec.Struct):
    messages: set[str]
    last: float


class _Written(msgspec.Struct):
    """An event that exists on the server, or is about to."""

    name: str
    namespace: str
    first: str
    count: int = 0
    created: bool = False


Key = tuple[Any, ...]


class Correlator:
    """Decides what happens to an occurrence: dropped (None), combined, or passed on."""

    def __init__(self, clock: Callable[[], float] = clock.monotonic) -> None:
        self._clock = clock
        self._budgets: OrderedDict[Key, TokenBucket] = OrderedDict()
        self._similar: OrderedDict[Key, _Similar] = OrderedDict()

    def correlate(self, occurrence: Occurrence) -> Occurrence | None:
        subject = occurrence.subject
        budget = _recall(self._budgets, subject, lambda: TokenBucket(REFILL, BURST, self._clock))
        if not budget.try_take():
            return None
        now = self._clock()
        key = (subject, occurrence.type, occurrence.reason)
        similar = _recall(self._similar, key, lambda: _Similar(set(), now))
        if now - similar.last > WINDOW:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(occurrence.message)
        if len(similar.messages) <= SIMILAR:
            return occurrence
        # Beyond this the set is only a count; it must not keep every message.
        while len(similar.messages) > SIMILAR + 1:
            similar.messages.pop()
        return msgspec.structs.replace(occurrence, message=COMBINED + occurrence.message)


class EventRecorder:
    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        capacity: int = 1000,
        clock: Callable[[], float] = clock.monotonic,
    ) -> None:
        self.client = client
        self.component = component
        self.instance = instance or f"{socket.gethostname()}-{os.getpid()}"
        #: Occurrences that were not written: over the budget, the queue full, or refused by the server.
        self.dropped = 0
        self._correlator = Correlator(clock)
        self._written: OrderedDict[Key, _Written] = OrderedDict()
        self._queue: asyncio.Queue[Occurrence] = asyncio.Queue(capacity)

    def event(self, regarding: Mapping[str, str], type: str, reason: str, message: str) -> None:
        """Record that something happened to the object `regarding` refers to (apiVersion, kind, namespace, name, uid)."""
        reference = tuple((field, str(regarding[field])) for field in REFERENCE if regarding.get(field))
        occurrence = self._correlator.correlate(Occurrence(reference, type, reason, message))
        if occurrence is None:
            self.dropped += 1
            return
        try:
            self._queue.put_nowait(occurrence)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            occurrence = await self._queue.get()
            try:
                await self._write(occurrence)
            except (ApiError, TransportError) as error:
                self.dropped += 1
                log.warning("the event %s was not written: %s", occurrence.reason, error)
            except Exception:
                self.dropped += 1
                log.exception("the event %s was not written", occurrence.reason)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far was written or dropped; `run` must be running."""
        await self._queue.join()

    async def _write(self, occurrence: Occurrence) -> None:
        now = timestamps.now()
        folded = occurrence.message.startswith(COMBINED)
        key = (occurrence.subject, occurrence.type, occurrence.reason, COMBINED if folded else occurrence.message)
        written = _recall(self._written, key, lambda: _new(occurrence, now))
        written.count += 1
        if written.created:
            change = {"count": written.count, "lastTimestamp": now, "message": _cut(occurrence.message)}
            try:
                await self.client.patch(EVENTS, written.name, change, written.namespace, kind=Patch.MERGE, into=bytes)
                return
            except NotFound:
                # The server deletes events after an hour; this one starts over.
                written = self._written[key] = _new(occurrence, now)
                written.count = 1
        try:
            await self.client.create(EVENTS, self._body(occurrence, written, now), written.namespace, into=bytes)
        except (ApiError, TransportError):
            self._written.pop(key, None)
            raise
        written.created = True

    def _body(self, occurrence: Occurrence, written: _Written, now: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": written.name, "namespace": written.namespace},
            "involvedObject": dict(occurrence.regarding),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": _cut(occurrence.message),
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": self.instance,
            "firstTimestamp": written.first,
            "lastTimestamp": now,
            "count": written.count,
        }


def _new(occurrence: Occurrence, now: str) -> _Written:
    reference = dict(occurrence.regarding)
    # Events of objects without a namespace live in `default`.
    return _Written(_name(reference.get("name", "unknown")), reference.get("namespace") or "default", now)


def _name(subject: str) -> str:
    """An event is named after its object if that gives a valid name, and randomly if not, as with client-go.

    Some kinds' names have characters that an event's may not have: `system:node`, a ClusterRole.
    """
    name = f"{subject}.{chance.token(8).hex()}"
    return chance.uid() if dns_subdomain_errors(name) else name


def _recall(memory: "OrderedDict[Key, Any]", key: Key, make: Callable[[], Any]) -> Any:
    """The cached value, made if it is new; the least recently used one is dropped."""
    if key in memory:
        memory.move_to_end(key)
        return memory[key]
    value = memory[key] = make()
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
    return value


def _cut(message: str) -> str:
    encoded = message.encode()
    return message if len(encoded) <= MAX_MESSAGE else encoded[: MAX_MESSAGE - 3].decode("utf-8", "ignore") + "..."
