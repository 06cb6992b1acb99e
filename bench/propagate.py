"""From `kubectl apply` to every member and back: many Deployments, each side of the federation in its own process.

Measures until a Deployment is present in every member it was placed in, as the members' own watches show it, and until its
aggregated status says that all replicas are ready. The load comes over HTTPS like a user's. `--ground sim` has ten simulated
members, `--ground stock` three of stock Kubernetes, on an embedded control plane and on a stock one.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from argosy.kube.client import Patch
from argosy.testing import BinariesMissing
from bench import ground as grounds
from bench import stock
from bench.ground import DEPLOYMENTS, Ground
from bench.phase import Phase, creation
from bench.processes import run
from bench.report import Report, parser


async def measure(ground: Ground, count: int, members: int, report: Report, bars: dict[str, float]) -> None:
    def ready(replicas: int) -> Callable[[str], bool]:
        return lambda name: ground.reported(name, replicas)

    names = [f"bench-{count}-{number}" for number in range(count)]

    def change(name: str, spec: dict[str, Any]) -> Any:
        return lambda: ground.client.patch(
            DEPLOYMENTS, name, {"spec": spec}, "default", kind=Patch.STRATEGIC, into=bytes
        )

    created = await Phase(ground).run({name: creation(ground, name) for name in names}, ground.everywhere)
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


async def steady(ground: Ground, count: int, report: Report) -> None:
    """Five a second, as users do."""

    work = {f"steady-{number}": creation(ground, f"steady-{number}") for number in range(count)}
    result = await Phase(ground).run(work, ground.everywhere, rate=5.0)
    report.add("5 a second: P50 to the last member", result["p50"], "ms", "lower")
    report.add("5 a second: P99 to the last member", result["p99"], "ms", "lower", 1000)
    report.add("5 a second: control-plane CPU", result["cpu"], "ms each", "lower")


async def writes(ground: Ground, report: Report) -> None:
    """One alone, with nothing else going on: writes until all members hold it, and over its whole start."""

    async def own() -> int:
        return await ground.version() - ground.events - ground.heartbeats

    before = await own()
    await creation(ground, "alone")()
    await ground.until(lambda: ground.everywhere("alone"))
    report.add("one alone: control-plane writes until all hold it", await own() - before - 1, "writes", "lower", 4)
    await asyncio.sleep(5)
    report.add("one alone: control-plane writes over its whole start", await own() - before - 1, "writes", "lower", 8)


async def on_simulated_members(quick: bool) -> Report:
    members = 10
    counts = [100] if quick else [200, 1000]
    report = Report("propagate", {"ground": "sim", "members": members, "deployments": counts, "replicas": members})
    async with grounds.simulated(members) as ground:
        idle = ground.resident()
        await writes(ground, report)
        for count in counts:
            await measure(ground, count, members, report, {"rate": 60.0})
        await steady(ground, 25 if quick else 150, report)
        report.add("control plane resident, idle", idle, "MiB", "lower")
        report.add("control plane resident, at the end", ground.resident(), "MiB", "lower")
    return report


async def on_stock_members(quick: bool, planes: list[str]) -> Report:
    members = 3
    count, single = (40, 10) if quick else (300, 50)
    report = Report("propagate", {"ground": "stock", "members": members, "deployments": count, "replicas": members})
    for plane in planes:
        async with grounds.stock(members, plane) as ground:
            report.versions["kubernetes"] = (await ground.members[ground.names[0]].version())["gitVersion"]
            await stock.measure(ground, f"{plane} plane", count, single, report)
    return report


async def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--ground", choices=["sim", "stock"], default="sim", help="what the members are")
    options.add_argument(
        "--plane", choices=["embedded", "stock"], help="with --ground stock: only this control plane, not both"
    )
    arguments = options.parse_args()
    if arguments.ground == "sim":
        report = await on_simulated_members(arguments.quick)
    else:
        planes = [arguments.plane] if arguments.plane else ["embedded", "stock"]
        try:
            report = await on_stock_members(arguments.quick, planes)
        except BinariesMissing as error:
            raise SystemExit(str(error)) from None
    report.parameters["cores"] = os.cpu_count()
    report.finish(arguments)


if __name__ == "__main__":
    run(main())
