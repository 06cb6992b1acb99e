"""A package with a plugin, the process it runs in, and a federation that asks it."""

import msgspec
import pytest

from argosy.control.scheduling.plugin_workers import PluginWorkers
from tests.control.plugins.asking import TIMINGS, profile
from tests.harness.federation import Federation
from tests.harness.package import Package


@pytest.fixture
def package(tmp_path, monkeypatch):
    made = Package(tmp_path / "package", "wait")
    monkeypatch.syspath_prepend(made.folder)
    return made


@pytest.fixture
def timings(request):
    """With the seconds that an answer may take, where they matter."""
    return msgspec.structs.replace(TIMINGS, plugin_answer=getattr(request, "param", TIMINGS.plugin_answer))


@pytest.fixture
async def workers(package, timings):
    workers = PluginWorkers(timings)
    await workers.load()
    yield workers
    await workers.close()


@pytest.fixture
async def fed(workers, timings):
    async with Federation(2, timings=timings, workers=workers) as fed:
        await profile(fed, filter={"enabled": [{"name": "Theirs"}]})
        await fed.policy("asking", schedulingMode="Duplicate", schedulingProfile="profile")
        await fed.policy("free", schedulingMode="Duplicate")
        yield fed
