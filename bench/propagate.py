"""From `kubectl apply` to every member and back: many Deployments on simulated members over HTTPS, each side in its own process.

Measures until a Deployment is present in every member it was placed in, as the members' own watches show it, and until its
aggregated status says that all replicas are ready. The load comes over HTTPS like a user's.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from argosy.api import keys, resources
from argosy.cli.membership import register, wait_ready
from argosy.kube import config
from argosy.kube.client import Client, Patch
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource
from bench.report import Report, parser, percentile
from bench.usage import cpu_seconds, resident_mib

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
EVENTS = Resource("", "v1", "events", "Event")
#: Of each member, so that every pod of the largest run finds room.
NODES = 40


class _Spec(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class Deployment(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Ground:
    """A running federation and everything the benchmark sees of it."""

    def __init__(self, folder: Path, fleet: Path, members: int):
        self.names = [f"member-{number}" for number in range(1, members + 1)]
        kubeconfig = str(folder / "kubeconfig")
        self.client = Client(HttpTransport(config.load(kubeconfig, "argosy"), qps=1e6, burst=1_000_000))
        self.members = {name: Client(HttpTransport(config.load(str(fleet), name))) for name in self.names}
        #: Deployment -> members that hold it, as their watches tell.
        self.present: dict[str, dict[str, Deployment]] = {}
        self.sources: Informer[Deployment] = Informer(self.client, DEPLOYMENTS, Deployment, namespace="default")
        self.events = 0
        self.changed = asyncio.Event()
        self.plane = int((folder / "up.pid").read_text().split()[0])

    async def watch(self, tasks: asyncio.TaskGroup) -> None:
        self.sources.add_handler(lambda change: self.changed.set())
        running = [tasks.create_task(self.sources.run())]
        synced = [self.sources]
        for name, client in self.members.items():
            informer: Informer[Deployment] = Informer(client, DEPLOYMENTS, Deployment, namespace="default")
            informer.add_handler(self._seen_by(name))
            running.append(tasks.create_task(informer.run()))
            synced.append(informer)
        events: Informer[Any] = Informer(self.client, EVENTS, Deployment)
        events.add_handler(self._event)
        running.append(tasks.create_task(events.run()))
        for informer in (*synced, events):
            await informer.synced.wait()
        self.running = running

    def _seen_by(self, member: str) -> Callable[[Change[Deployment]], None]:
        def seen(change: Change[Deployment]) -> None:
            name = change.key.partition("/")[2]
            if change.new is None:
                self.present.get(name, {}).pop(member, None)
            else:
                self.present.setdefault(name, {})[member] = change.new
            self.changed.set()

        return seen

    def _event(self, change: Change[Any]) -> None:
        self.events += change.new is not None

    async def until(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def until_all(self, names: list[str], done: Callable[[str], bool], stalled: float = 60.0) -> None:
        """However long it takes, as long as it goes on: the members' own pods are what takes the time here."""
        waiting, told = set(names), time.perf_counter()
        while waiting:
            self.changed.clear()
            left = {name for name in waiting if not done(name)}
            now = time.perf_counter()
            if len(left) < len(waiting) and now - told > 10:
                print(f"  {len(names) - len(left)} of {len(names)}", file=sys.stderr)
                told = now
            waiting = left
            if waiting:
                try:
                    async with asyncio.timeout(stalled):
                        await self.changed.wait()
                except TimeoutError:
                    some = ", ".join(sorted(waiting)[:5])
                    raise SystemExit(f"nothing changes any more, and {len(waiting)} are not done: {some}") from None
                await asyncio.sleep(0.05)

    async def version(self) -> int:
        """The control plane's version counts its writes."""
        page = await self.client.list(resources.FEDERATED_TYPE_CONFIGS, into=bytes)
        return int(page.resource_version)


@contextlib.asynccontextmanager
async def federation(members: int) -> AsyncIterator[Ground]:
    """`argosy up` and, in a process of their own, members with room for everything; joined and ready."""
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as name:
        folder = Path(name)
        argosy = [sys.executable, "-m", "argosy.cli"]
        await _finished(*argosy, "up", "--detach", "--data", name)
        fleet = [*argosy, "sim", "--members", str(members), "--nodes", str(NODES), "--data", str(folder / "fleet")]
        process = await asyncio.create_subprocess_exec(*fleet, stdout=subprocess.DEVNULL)
        try:
            kubeconfig = folder / "fleet" / "kubeconfig"
            while not kubeconfig.exists():
                if process.returncode is not None:
                    raise SystemExit("argosy sim failed")
                await asyncio.sleep(0.05)
            ground = Ground(folder, kubeconfig, members)
            for member in ground.names:
                await register(ground.client, member, config.load(str(kubeconfig), member), {})
            for member in ground.names:
                await wait_ready(ground.client, member, 60.0, lambda text: None)
            yield ground
        finally:
            await _finished(*argosy, "down", "--data", name)
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _finished(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if await process.wait() != 0:
        raise SystemExit(f"{' '.join(command[2:])} failed")


def manifest(name: str, replicas: int, image: str = "nginx:1.29") -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {keys.PROPAGATION_POLICY_LABEL: "bench"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "main", "image": image, "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
                    ]
                },
            },
        },
    }


class Phase:
    """One change of many Deployments: when each was asked for, and when it had arrived everywhere."""

    def __init__(self, ground: Ground):
        self.ground = ground
        self.asked: dict[str, float] = {}
        self.arrived: dict[str, float] = {}

    async def run(
        self, work: dict[str, Any], done: Callable[[str], bool], rate: float | None = None
    ) -> dict[str, float]:
        """`work` maps a Deployment to the coroutine function that asks for its change."""
        ground = self.ground
        version, events = await ground.version(), ground.events
        cpu, started = cpu_seconds(ground.plane), time.perf_counter()
        watcher = asyncio.create_task(self._watch(set(work), done))
        async with asyncio.TaskGroup() as tasks:
            for number, (name, ask) in enumerate(work.items()):
                if rate is not None:
                    await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
                self.asked[name] = time.perf_counter()
                tasks.create_task(ask())
        await watcher
        seconds = time.perf_counter() - started
        written = await ground.version() - version
        latencies = [self.arrived[name] - self.asked[name] for name in work]
        return {
            "seconds": seconds,
            "rate": len(work) / seconds,
            "p50": percentile(latencies, 0.50) * 1000,
            "p99": percentile(latencies, 0.99) * 1000,
            "cpu": (cpu_seconds(ground.plane) - cpu) * 1000 / len(work),
            "writes": (written - (ground.events - events)) / len(work),
        }

    async def _watch(self, waiting: set[str], done: Callable[[str], bool]) -> None:
        async with asyncio.timeout(600):
            while waiting:
                self.ground.changed.clear()
                now = time.perf_counter()
                for name in [name for name in waiting if done(name)]:
                    waiting.discard(name)
                    self.arrived[name] = now
                if waiting:
                    await self.ground.changed.wait()
                    await asyncio.sleep(0.002)


async def measure(ground: Ground, count: int, members: int, report: Report, bars: dict[str, float]) -> None:
    def everywhere(name: str) -> bool:
        return len(ground.present.get(name, {})) == members

    def ready(replicas: int) -> Callable[[str], bool]:
        def probe(name: str) -> bool:
            source = ground.sources.get(f"default/{name}")
            return (
                source is not None
                and source.status.ready_replicas == replicas
                and source.status.updated_replicas == replicas
                and source.status.observed_generation == source.metadata.generation
            )

        return probe

    names = [f"bench-{count}-{number}" for number in range(count)]

    def create(name: str) -> Any:
        return lambda: ground.client.create(DEPLOYMENTS, manifest(name, members), into=bytes)

    def change(name: str, spec: dict[str, Any]) -> Any:
        return lambda: ground.client.patch(
            DEPLOYMENTS, name, {"spec": spec}, "default", kind=Patch.STRATEGIC, into=bytes
        )

    created = await Phase(ground).run({name: create(name) for name in names}, everywhere)
    tag = f"{count} at once"
    report.add(f"{tag}: present everywhere", created["rate"], "Deployments/s", "higher", bars.get("rate"))
    report.add(f"{tag}: P50 to the last member", created["p50"], "ms", "lower")
    report.add(f"{tag}: P99 to the last member", created["p99"], "ms", "lower")
    report.add(f"{tag}: control-plane CPU", created["cpu"], "ms each", "lower")
    started = time.perf_counter()
    done = ready(members)
    await ground.until_all(names, done)
    report.add(f"{tag}: all statuses back, after presence", time.perf_counter() - started, "s", "lower")

    image = {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.30"}]}}}
    generation = {name: {m: d.metadata.generation for m, d in ground.present[name].items()} for name in names}

    def changed(name: str) -> bool:
        found = ground.present.get(name, {})
        return all(found[member].metadata.generation > old for member, old in generation[name].items())

    imaged = await Phase(ground).run({name: change(name, image) for name in names}, changed)
    report.add(f"{tag}: image change everywhere", imaged["rate"], "Deployments/s", "higher")
    scaled = await Phase(ground).run(
        {name: change(name, {"replicas": 2 * members}) for name in names},
        lambda name: sum(d.spec.replicas for d in ground.present[name].values()) == 2 * members,
    )
    report.add(f"{tag}: scaled everywhere", scaled["rate"], "Deployments/s", "higher")
    await ground.until_all(names, ready(2 * members))
    deleted = await Phase(ground).run(
        {name: (lambda name=name: ground.client.delete(DEPLOYMENTS, name, "default")) for name in names},
        lambda name: not ground.present.get(name) and ground.sources.get(f"default/{name}") is None,
    )
    report.add(f"{tag}: deleted everywhere", deleted["rate"], "Deployments/s", "higher")


async def steady(ground: Ground, count: int, members: int, report: Report) -> None:
    """Five a second, as users do."""

    def everywhere(name: str) -> bool:
        return len(ground.present.get(name, {})) == members

    names = [f"steady-{number}" for number in range(count)]
    work = {
        name: (lambda name=name: ground.client.create(DEPLOYMENTS, manifest(name, members), into=bytes))
        for name in names
    }
    result = await Phase(ground).run(work, everywhere, rate=5.0)
    report.add("5 a second: P50 to the last member", result["p50"], "ms", "lower")
    report.add("5 a second: P99 to the last member", result["p99"], "ms", "lower", 1000)
    report.add("5 a second: control-plane CPU", result["cpu"], "ms each", "lower")


async def writes(ground: Ground, members: int, report: Report) -> None:
    """One alone, with nothing else going on: writes until all members hold it, and over its whole start."""
    version, events = await ground.version(), ground.events
    await ground.client.create(DEPLOYMENTS, manifest("alone", members), into=bytes)
    await ground.until(lambda: len(ground.present.get("alone", {})) == members)
    own = await ground.version() - version - 1 - (ground.events - events)
    report.add("one alone: control-plane writes until all hold it", own, "writes", "lower", 4)
    await asyncio.sleep(5)
    own = await ground.version() - version - 1 - (ground.events - events)
    report.add("one alone: control-plane writes over its whole start", own, "writes", "lower", 8)


async def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    members = 10
    counts = [100] if arguments.quick else [200, 1000]
    report = Report("propagate", {"members": members, "deployments": counts, "replicas": members})
    async with federation(members) as ground:
        async with asyncio.TaskGroup() as tasks:
            await ground.watch(tasks)
            placement = [{"cluster": name, "preferences": {"weight": 1}} for name in ground.names]
            policy = {
                "apiVersion": keys.API_VERSION,
                "kind": "PropagationPolicy",
                "metadata": {"name": "bench", "namespace": "default"},
                "spec": {"schedulingMode": "Divide", "placement": placement},
            }
            await ground.client.create(resources.PROPAGATION_POLICIES, policy)
            idle = resident_mib(ground.plane)
            await writes(ground, members, report)
            for count in counts:
                await measure(ground, count, members, report, {"rate": 60.0})
            await steady(ground, 25 if arguments.quick else 150, members, report)
            report.add("control plane resident, idle", idle, "MiB", "lower")
            report.add("control plane resident, at the end", resident_mib(ground.plane), "MiB", "lower")
            for task in ground.running:
                task.cancel()
        await ground.client.close()
        for client in ground.members.values():
            await client.close()
    report.parameters["cores"] = os.cpu_count()
    report.finish(arguments)


if __name__ == "__main__":
    uvloop.run(main())
