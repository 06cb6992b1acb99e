"""The simulated member held to the truth: the same scenarios on it and on a stock cluster, and nothing that differs.

All scenarios run side by side, once, on one stock cluster, each in its own namespace and with a simulated member of its own.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from argosy.testing import clusters
from argosy.testing.pytest_plugin import SharedClusters
from tests.real.simulation.pair import Disagreement, Pair, Side
from tests.real.simulation.record import Watcher, watching
from tests.real.simulation.scenarios import SCENARIOS
from tests.real.simulation.worlds import OPTIONS, Stock, prepare, simulated

_AT_A_TIME = 10


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, kubernetes_session: SharedClusters, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, BaseException | None]:
    """What became of each scenario that was asked for."""
    asked = {item.callspec.params.get("scenario") for item in request.session.items if hasattr(item, "callspec")}
    names = [name for name in SCENARIOS if name in asked]
    return asyncio.run(_play(names, kubernetes_session, tmp_path_factory.mktemp("simulation")))


async def _play(names: list[str], shared: SharedClusters, folder: Path) -> dict[str, BaseException | None]:
    places = asyncio.Semaphore(_AT_A_TIME)
    async with clusters(1, OPTIONS, binaries=shared.binaries) as (cluster,):
        await prepare(cluster, folder)
        client = cluster.client()
        try:
            stock = Stock(cluster, client)
            async with watching(client, stock.observe_pod) as watcher:
                results = await asyncio.gather(
                    *(_one(name, stock, watcher, folder, places) for name in names), return_exceptions=True
                )
        finally:
            await client.close()
    return dict(zip(names, results, strict=True))


async def _one(name: str, stock: Stock, watcher: Watcher, folder: Path, places: asyncio.Semaphore) -> None:
    async with places, AsyncExitStack() as stack:
        twin = await stack.enter_async_context(simulated(folder, name))
        own = await stack.enter_async_context(watching(twin.client))
        pair = Pair(name, (Side(twin, own.record(name)), Side(stock, watcher.record(name))))
        await pair.open()
        await SCENARIOS[name](pair)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_simulated_member_does_as_the_stock_one(scenario: str, outcomes: dict[str, BaseException | None]) -> None:
    outcome = outcomes[scenario]
    if isinstance(outcome, Disagreement):
        pytest.fail(str(outcome), pytrace=False)
    if outcome is not None:
        raise outcome
