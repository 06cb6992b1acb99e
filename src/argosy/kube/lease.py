"""Leader election on a coordination.k8s.io Lease: one holder at a time, which knows until when it holds the lease.

Clocks of different machines are never compared. A candidate takes a lease only after it was unchanged for its whole duration
on the candidate's own clock; a holder counts from before it sent its last successful renewal. `held` becomes false `duration -
renew` seconds before anybody else may take the lease, which is the time a write in progress has to arrive. A lease that was
uncertain for a moment is lost for good: writes refused meanwhile would never be retried.

`run` owns the renewals and the task it leads with; it ends when that task ends (the lease is released), is cancelled (same),
or the lease is lost (LeaseLost).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from argosy.kube import chance, clock
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, TransportError
from argosy.kube.resource import Resource
from argosy.kube.timestamps import micro_timestamp

__all__ = ["LEASES", "LeaderElector", "LeaseLost", "Sightings"]

log = logging.getLogger(__name__)

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
DURATION = 15.0
RETRY = 2.0


class LeaseLost(Exception):
    """The lease could not be renewed in time, or somebody else holds it. The led task has been stopped."""


class _Sighting(msgspec.Struct, frozen=True):
    """A lease as last seen, and since when it has looked like that, on our clock."""

    version: str
    since: float


class Sightings:
    """Which leases are held, by how long each of them has been unchanged."""

    def __init__(self, clock: Callable[[], float] = clock.elapsed) -> None:
        self._clock = clock
        self._seen: dict[str, _Sighting] = {}

    def free_in(self, lease: Mapping[str, Any]) -> float:
        """Seconds after which this lease may be taken if it does not change; 0 or less if it may be taken now."""
        spec, metadata = _spec(lease), lease.get("metadata") or {}
        name, version = str(metadata.get("name") or ""), str(metadata.get("resourceVersion") or "")
        known = self._seen.get(name)
        if known is None or known.version != version:
            known = self._seen[name] = _Sighting(version, self._clock())
        if not spec.get("holderIdentity"):
            return 0.0
        seconds = spec.get("leaseDurationSeconds")
        duration = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else DURATION
        return known.since + duration - self._clock()


class LeaderElector:
    """`duration`: how long a lease is valid without renewal; `renew`: how long the holder trusts it; `retry`: between tries."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = DURATION,
        renew: float = 10.0,
        retry: float = RETRY,
        clock: Callable[[], float] = clock.elapsed,
    ) -> None:
        if not 0 < retry < renew < duration:
            raise ValueError("a lease needs 0 < retry < renew < duration")
        if not identity:
            raise ValueError("a lease needs an identity")
        self.client = client
        self.namespace = namespace
        self.name = name
        self.identity = identity
        #: Who holds the lease, as last seen ("" when nobody does).
        self.holder = ""
        self._duration = duration
        self._renew = renew
        self._retry = retry
        self._clock = clock
        self._deadline = 0.0
        self._lease: dict[str, Any] | None = None
        self._sightings = Sightings(clock)
        #: Seconds until the lease somebody else holds may be taken, as last seen.
        self._free_in = 0.0
        #: Why the last attempt failed; "" if it did not.
        self._trouble = ""
        #: Attempts to take or renew it that failed, not because somebody else holds it.
        self.failures = 0

    def deadline(self) -> float:
        """Until when we certainly hold the lease, on our clock; in the past if we do not."""
        return self._deadline

    def held(self) -> bool:
        """Whether a write begun now is still covered by the lease. Check right before every fenced write."""
        return self._clock() < self._deadline

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run `lead` for as long as we hold it."""
        await self.acquire()
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._keep(), name=f"lease-{self.name}")
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
            ended = leading.done()
        finally:
            # A second cancellation while it ends must not leave the renewals running: the lease would never be free.
            try:
                await _stop(leading)
            finally:
                try:
                    await _stop(renewing)
                finally:
                    await self.release()
        if not ended:
            error = renewing.exception()
            why = f"its renewal failed: {error!r}" if error is not None else renewing.result()
            raise LeaseLost(f"{self.identity} lost the lease {self.namespace}/{self.name}: {why}")
        leading.result()

    async def acquire(self) -> None:
        """Return once the lease is ours."""
        while True:
            if await self._try():
                break
            wait = self._retry * chance.uniform(0.8, 1.2)
            # If the holder's time is over before the next retry, retry then.
            await asyncio.sleep(min(wait, self._free_in + 0.01) if self._free_in > 0 else wait)
        log.info("%s holds the lease %s/%s", self.identity, self.namespace, self.name)

    async def release(self) -> None:
        """Release the lease, so that the next holder need not wait; best effort, and harmless if it is not ours."""
        was_held, lease = self.held(), self._lease
        self._deadline = 0.0
        if not was_held or lease is None:
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            async with asyncio.timeout(self._renew):
                await self.client.update(LEASES, {**lease, "spec": spec}, self.namespace)
        except (ApiError, TransportError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            log.warning("the lease %s/%s was not released: %s", self.namespace, self.name, why)

    async def _keep(self) -> str:
        """Renew until that fails for good; returns why. A failed attempt is retried sooner."""
        while True:
            wait = self._retry if self._clock() + self._renew - self._deadline < self._retry else self._retry / 5
            await asyncio.sleep(min(wait, max(0.0, self._deadline - self._clock())))
            deadline = self._deadline
            if self._clock() >= deadline:
                # Without a failed attempt nothing ran: the process was stopped, or its event loop was held.
                return f"not renewed within {self._renew:g} s: {self._trouble or 'this process stood still'}"
            if not await self._try() and self.holder != self.identity:
                self._deadline = 0.0
                return f"{self.holder} holds it now" if self.holder else "somebody took its holder away"
            if self._clock() >= deadline:  # writes were refused meanwhile
                return f"not renewed within {self._renew:g} s: {self._trouble or 'the answer came too late'}"

    async def _try(self) -> bool:
        """One attempt to take or renew the lease."""
        started = self._clock()
        self._free_in = 0.0
        try:
            # Short enough that one lost request leaves time for others before the deadline.
            async with asyncio.timeout(max(1.0, self._renew / 4)):
                lease = await self._write()
        except (Conflict, AlreadyExists, NotFound) as error:
            # Somebody was faster (or deleted it): retry later.
            self._lease = None
            self._trouble = str(error)
            return False
        except (ApiError, TransportError, TimeoutError) as error:
            self._trouble = str(error) or "no answer in time"
            self.failures += 1
            log.warning("the lease %s/%s: %s", self.namespace, self.name, self._trouble)
            # An update without a response may have been done, and our copy's version may be old.
            self._lease = None
            return False
        self._trouble = ""
        if lease is None:
            return False
        self._lease = lease
        self.holder = self.identity
        self._deadline = started + self._renew
        return True

    async def _create(self) -> dict[str, Any]:
        try:
            return await self.client.create(LEASES, self._new(), self.namespace)
        except NotFound as error:
            # Not a race but a missing namespace: waiting for the lease would never end.
            raise TransportError(f"it cannot be created: {error}") from error

    async def _write(self) -> dict[str, Any] | None:
        if self._lease is None or not self.held():
            try:
                self._lease = await self.client.get(LEASES, self.name, self.namespace)
            except NotFound:
                return await self._create()
        spec = _spec(self._lease)
        self.holder = str(spec.get("holderIdentity") or "")
        self._free_in = self._sightings.free_in(self._lease)
        if self.holder not in ("", self.identity) and self._free_in > 0:
            self._lease = None
            return None
        return await self.client.update(LEASES, {**self._lease, "spec": self._taken(spec)}, self.namespace)

    def _taken(self, spec: dict[str, Any]) -> dict[str, Any]:
        now = _now()
        taken = {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": _seconds(self._duration),
            "renewTime": now,
        }
        if self.holder != self.identity or "acquireTime" not in spec:
            taken["acquireTime"] = now
            taken["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        return taken

    def _new(self) -> dict[str, Any]:
        now = _now()
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": _seconds(self._duration),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }


async def _stop(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _spec(lease: Mapping[str, Any]) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _seconds(duration: float) -> int:
    """Leases have whole seconds; rounded up, so that nobody takes ours for shorter than we do."""
    return max(1, -int(-duration // 1))


def _now() -> str:
    return micro_timestamp(clock.now())
