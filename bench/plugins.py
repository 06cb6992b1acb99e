"""What it costs to ask a plugin of a Python package, which runs in a process of its own: a score that says 0 of every cluster."""

import asyncio
import sys
import tempfile
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np

from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings
from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import Ranked, Score
from argosy.plan.scheduling.package_plugins import PackagedQuestion
from argosy.plugins import Unit, cluster
from bench.report import Report, parser, percentile

MODULE = """
import numpy as np
from argosy.plugins import Score

PLUGIN = Score("Trivial", lambda unit, fleet: np.zeros(len(fleet), dtype=np.int64))
"""
APIS = [("example.com", "v1", f"Kind{number}") for number in range(100)]


def fleet_of(count: int) -> Fleet:
    amounts = {"cpu": "100", "memory": "100Gi", "pods": "1000"}
    return Fleet.of(
        cluster(f"c{number:04}", labels={"zone": f"z{number % 7}"}, allocatable=amounts, serves=APIS)
        for number in range(count)
    )


async def measure(report: Report, count: int, questions: int) -> None:
    workers = PluginWorkers(Timings(), [EntryPoint("trivial", "trivial:PLUGIN", "argosy.plugins")])
    try:
        started = time.perf_counter()
        await workers.load()
        report.add(f"{count} clusters: the package is loaded", time.perf_counter() - started, "s", "lower")
        remote, fleet = workers.registry.scores["Trivial"], fleet_of(count)
        assert not isinstance(remote, Score)
        rows = Ranked(np.arange(count), np.zeros(count, dtype=np.int64))
        question = PackagedQuestion(remote, Unit(kind="Deployment", name="web"), fleet, rows)
        taken = []
        used = time.process_time()
        for _ in range(questions):
            started = time.perf_counter()
            reply = await workers.answer(question)
            assert not reply.error, reply.error
            taken.append(1e3 * (time.perf_counter() - started))
        used = 1e3 * (time.process_time() - used) / questions
        report.add(f"{count} clusters: the first question, with all of them", taken[0], "ms", "lower")
        report.add(f"{count} clusters: a question, median", percentile(taken, 0.5), "ms", "lower")
        report.add(f"{count} clusters: a question, 99 of 100", percentile(taken, 0.99), "ms", "lower")
        report.add(f"{count} clusters: of a question, in the control plane", used, "ms CPU", "lower")
    finally:
        await workers.close()


def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    report = Report("plugins", {"quick": arguments.quick})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trivial.py").write_text(MODULE)
        sys.path.insert(0, folder)
        for count in (10, 100, 500):
            asyncio.run(measure(report, count, 200 if arguments.quick else 2000))
    report.finish(arguments)


if __name__ == "__main__":
    main()
