"""Watch clients of Python on one recorded stream of Pods: how many objects a second reach the cache, and what one costs to hold.

One server process replays the same bytes over loopback HTTP to each client in turn, each in a fresh process. At first all Pods
come by the watch, then all by the list.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.clients import OURS, THEIRS
from bench.processes import child, run
from bench.recording import Recording, recording
from bench.report import Report, parser

CACHE = Path(os.environ.get("ARGOSY_CACHE") or Path(__file__).resolve().parent.parent / ".cache") / "bench"
PACKAGES = ("kubernetes", "kubernetes_asyncio", "kr8s")
#: Bars: as many times the objects a second, and as small a part of the memory, as the best of the others.
FASTER, SMALLER = 10.0, 10.0
#: On a shared machine one run says little: those that end soon run so often, ours and theirs alike, and the fastest counts.
ROUNDS, SOON = 3, 30.0


@asynccontextmanager
async def replay(recorded: Recording) -> AsyncIterator[dict[str, str]]:
    """The addresses of a running replay."""
    process = await child("bench.replay", str(recorded.events), str(recorded.offsets))
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.stdin.close()
        await process.wait()


async def best(name: str, url: str, count: int, warm_up: str) -> dict[str, float]:
    found = await measured(name, url, count, warm_up)
    for _ in range(ROUNDS - 1):
        if found["seconds"] > SOON:
            break
        found = min(found, await measured(name, url, count, warm_up), key=lambda one: one["seconds"])
    return found


async def measured(name: str, url: str, count: int, warm_up: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as home:
        # kr8s keeps what it discovers in files; a kubeconfig of the user's is none of our business.
        environ = os.environ | {"HOME": home, "KUBECACHEDIR": home, "KUBECONFIG": os.devnull}
        process = await child("bench.clients", name, url, str(count), warm_up, environ=environ)
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode != 0:
        raise SystemExit(f"{name} failed")
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


async def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--pods", type=int, help="how many (50,000; 1,000 with --quick)")
    arguments = options.parse_args()
    count = arguments.pods or (1_000 if arguments.quick else 50_000)
    report = Report("client", {"pods": count})
    for package in PACKAGES:
        try:
            report.versions[package] = version(package)
        except PackageNotFoundError:
            raise SystemExit(f"{package} is not installed: `make bench NAME=client` installs what this needs") from None
    print("recording ...", file=sys.stderr)
    recorded = await asyncio.to_thread(recording, count, CACHE)
    report.parameters["bytes each"] = round(recorded.mean_size)
    async with replay(recorded) as urls:
        for way in ("watch", "list"):
            await compare(way, urls, count, report)
    report.finish(arguments)


async def compare(way: str, urls: dict[str, str], count: int, report: Report) -> None:
    results = {}
    for name in OURS | THEIRS:
        results[name] = result = await best(name, urls[way], count, urls["watch"])
        report.add(f"{way}: {name}", count / result["seconds"], "objects/s")
        report.add(f"{way}: {name}, CPU", result["cpu"] / count * 1e6, "µs each", "lower")
        report.add(f"{way}: {name}, held", result["bytes"] / count / 1024, "KiB each", "lower")
    ours, others = results["argosy, projection"], [results[name] for name in THEIRS]
    judged = way == "watch"
    faster = min(other["seconds"] for other in others) / ours["seconds"]
    report.add(f"{way}: projection, times the fastest other", faster, "×", "higher", FASTER if judged else None)
    cheaper = min(other["cpu"] for other in others) / max(ours["cpu"], 0.01)
    report.add(f"{way}: projection, times the fastest other by CPU", cheaper, "×", "higher")
    smaller = min(other["bytes"] for other in others) / ours["bytes"]
    report.add(f"{way}: projection, smallest other in its memory", smaller, "×", "higher", SMALLER if judged else None)


if __name__ == "__main__":
    run(main())
