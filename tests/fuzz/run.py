"""One run: several clients that send what the seed says, the lying member, and two who watch: over /livez and over memory.

Memory is compared with what the process has after a warm-up of the same kind, cleaned up like the run itself: what Python and
the server load once stays loaded, and heaps have their holes. That takes a minute or two; what leaks grows on after it.
"""

import asyncio
import collections
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import orjson

from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.resource import Resource
from tests.fuzz.impatient import HISTORY
from tests.fuzz.member import lies
from tests.fuzz.plane import Plane, lying_member
from tests.fuzz.requests import GROUPS, NAMES, Sent, make
from tests.fuzz.seeds import NAMESPACES, PLANTED, seeds
from tests.fuzz.wire import Answer, Wire
from tests.harness.eventually import eventually
from tests.harness.liar import Liar

__all__ = ["Bars", "Outcome", "fuzz"]

CLIENTS = 4
#: A member that was not ready is trusted again after a while, and copies there go only then.
CLEANING = 240.0
#: Seconds, at least; twice that for longer runs.
WARM_UP = 60.0
_LIVEZ_EVERY = 0.05
_VERSIONLESS = b"Object 'apiVersion' is missing in 'object has no apiVersion field'"
_PLACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)


class Bars(msgspec.Struct, frozen=True):
    """What a run must not exceed."""

    #: The 99th percentile of /livez, in seconds.
    livez: float = 0.1
    #: Bytes beyond those before: at any time, and as a share when all is over.
    growth: int = 1024 * 1024 * 1024
    kept: float = 0.1
    #: Seconds it may take to give memory back.
    settling: float = 60.0


BARS = Bars()


class Outcome(msgspec.Struct):
    seed: int
    seconds: float = 0.0
    statuses: collections.Counter[str] = msgspec.field(default_factory=collections.Counter)
    lies: int = 0
    livez: list[float] = msgspec.field(default_factory=list)
    before: int = 0
    peak: int = 0
    after: int = 0
    failures: list[str] = msgspec.field(default_factory=list)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.livez)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


async def fuzz(
    seed: int, seconds: float, folder: Path, bars: Bars = BARS, tell: Callable[[str], None] = lambda text: None
) -> Outcome:
    """`tell` hears how far it is."""
    outcome = Outcome(seed)
    async with Plane(folder / "plane") as plane, lying_member(plane) as liar:
        numbers = itertools.count(1)
        tell("warming up")
        await _storm(plane, liar, seed, numbers, min(max(WARM_UP, seconds / 5), 2 * WARM_UP), outcome, tell)
        tell(await _clean(plane))
        outcome.before = await _settled(plane)
        outcome.peak, outcome.livez = 0, []
        tell(f"under way with {outcome.before >> 20} MiB")
        await _storm(plane, liar, seed, numbers, seconds, outcome, tell)
        outcome.seconds = seconds
        tell(await _clean(plane))
        outcome.after = await _settled(plane, outcome.before * (1 + bars.kept), bars.settling)
        tell(f"settled with {outcome.after >> 20} MiB")
        _judge(plane, outcome, bars)
    return outcome


async def _storm(
    plane: Plane,
    liar: Liar,
    seed: int,
    numbers: Iterator[int],
    seconds: float,
    outcome: Outcome,
    tell: Callable[[str], None],
) -> None:
    until = time.monotonic() + seconds
    watchers = [
        asyncio.create_task(_watch_livez(plane, outcome)),
        asyncio.create_task(_watch_memory(plane, outcome, tell)),
        asyncio.create_task(lies(liar, seed + next(numbers))),
    ]
    asked = len(liar.asked)
    try:
        await asyncio.gather(*(_client(plane, seed, numbers, until, outcome) for _ in range(CLIENTS)))
    finally:
        for task in watchers:
            task.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
    outcome.lies += len(liar.asked) - asked


async def _client(plane: Plane, seed: int, numbers: Iterator[int], until: float, outcome: Outcome) -> None:
    wire = Wire(plane.port, plane.context())
    try:
        while time.monotonic() < until and plane.alive:
            request = make(seed, next(numbers))
            try:
                answer = await wire.send(request)
            except TimeoutError:
                _fail(outcome, request, "no answer")
                continue
            except OSError as error:
                _fail(outcome, request, f"no connection: {error}")
                continue
            outcome.statuses[f"{answer.status // 100}xx" if answer.status else "none"] += 1
            if not answer.status and request.leaves is None:
                _fail(outcome, request, "the connection ended without an answer")
            if answer.status >= 500:
                outcome.statuses[str(answer.status)] += 1
            if _is_fault(request, answer):
                _fail(outcome, request, f"{answer.status} {answer.body[:300]!r}")
    finally:
        await wire.close()


def _is_fault(request: Sent, answer: Answer) -> bool:
    """A 500 that Kubernetes would not give. It gives some itself, without a reason, as for a resourceVersion that is no number,
    or for a custom object that a patch took its version from; and one to a HEAD says nothing at all: the log tells."""
    if answer.status not in (500, 502) or request.method == "HEAD" or _VERSIONLESS in answer.body:
        return False
    return b'"kind":"Status"' not in answer.body or b'"reason":"InternalError"' in answer.body


def _fail(outcome: Outcome, request: Sent, what: str) -> None:
    if len(outcome.failures) < 100:
        again = f"python -m tests.fuzz --seed {outcome.seed} --only {request.number}"
        outcome.failures.append(f"{what}\n    {request.shown()}\n    again: {again}")


async def _watch_livez(plane: Plane, outcome: Outcome) -> None:
    wire = Wire(plane.port, plane.context())
    probe = Sent(0, "GET", "/livez", (), b"")
    while True:
        try:
            answer = await wire.send(probe)
            outcome.livez.append(answer.seconds)
            if answer.status != 200:
                _fail(outcome, probe, f"/livez says {answer.status} {answer.body[:500]!r}")
        except (OSError, TimeoutError) as error:
            _fail(outcome, probe, f"/livez: {error!r}")
        await asyncio.sleep(_LIVEZ_EVERY)


async def _watch_memory(plane: Plane, outcome: Outcome, tell: Callable[[str], None]) -> None:
    for tick in itertools.count():
        if tick % 300 == 299:
            tell(f"{plane.resident() >> 20} MiB, {sum(outcome.statuses.values())} answers")
        with contextlib.suppress(OSError):
            outcome.peak = max(outcome.peak, plane.resident())
        await asyncio.sleep(0.1)


async def _clean(plane: Plane) -> str:
    """Everything that was made goes. What does not go, and how long it took."""
    client, started = plane.client, time.monotonic()
    left: set[str] = set()
    for group in GROUPS:
        for plural in ("widgets", "gadgets"):
            await _gone(plane, f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}")
    for namespace in NAMESPACES:
        await _gone(plane, f"/api/v1/namespaces/{namespace}")
    wide = {seed.collection for seed in seeds() if "{ns}" not in seed.collection}
    for collection in wide:
        if not any(plural in collection for plural in PLANTED):
            for name in NAMES:
                await _gone(plane, f"{collection}/{name}")

    async def gone() -> bool:
        nonlocal left
        left = {each["metadata"]["name"] for each in (await client.list(_PLACES)).items} & set(NAMESPACES)
        for namespace in left:
            await _let_go(plane, namespace)
        return not left

    with contextlib.suppress(AssertionError):
        await eventually(gone, CLEANING, why="the namespaces are gone")
    return f"cleaned up in {time.monotonic() - started:.0f} s; left are {sorted(left) or 'none'}"


async def _let_go(plane: Plane, namespace: str) -> None:
    """Nobody is there who would take the finalizers off that requests put on, nor a kubelet who ends pods."""
    with contextlib.suppress(ApiError, TransportError):
        grace = [("gracePeriodSeconds", "0")]
        await plane.client.request("DELETE", f"/api/v1/namespaces/{namespace}/pods", query=grace)
    custom = {f"/apis/{group}/v1/namespaces/{{ns}}/{plural}" for group in GROUPS for plural in ("widgets", "gadgets")}
    for collection in custom | {seed.collection for seed in seeds() if "{ns}" in seed.collection}:
        path = collection.replace("{ns}", namespace)
        with contextlib.suppress(ApiError, TransportError):
            for item in orjson.loads(await plane.client.request("GET", path)).get("items") or ():
                metadata = item["metadata"]
                kept = [name for name in metadata.get("finalizers") or () if "kubeadmiral.io" in name]
                if kept != (metadata.get("finalizers") or []):
                    await plane.client.request(
                        "PATCH",
                        f"{path}/{metadata['name']}",
                        headers={"content-type": "application/merge-patch+json"},
                        body={"metadata": {"finalizers": kept}},
                    )
    await asyncio.sleep(1)


async def _gone(plane: Plane, path: str) -> None:
    with contextlib.suppress(NotFound, ApiError, TransportError):
        await plane.client.request("DELETE", path)


async def _settled(plane: Plane, enough: float = 0.0, seconds: float = 2 * HISTORY) -> int:
    """The least memory seen until it was enough, or the time was over."""
    deadline = time.monotonic() + seconds
    least = plane.resident()
    while time.monotonic() < deadline and least > enough:
        await asyncio.sleep(0.5)
        least = min(least, plane.resident())
    return least


def _judge(plane: Plane, outcome: Outcome, bars: Bars) -> None:
    if not plane.alive:
        outcome.failures.append(f"the control plane ended with {plane.process.returncode}")
    for text in plane.exceptions()[:50]:
        outcome.failures.append(f"an exception in the log:\n{text}")
    worst = outcome.percentile(0.99)
    if worst > bars.livez:
        outcome.failures.append(f"/livez took {worst * 1000:.0f} ms (P99), more than {bars.livez * 1000:.0f}")
    if outcome.peak > outcome.before + bars.growth:
        outcome.failures.append(f"memory grew by {(outcome.peak - outcome.before) >> 20} MiB")
    if outcome.after > outcome.before * (1 + bars.kept):
        outcome.failures.append(
            f"memory is {outcome.after / outcome.before - 1:.0%} above what it was: {outcome.after >> 20} MiB"
            f" after {outcome.before >> 20}"
        )
