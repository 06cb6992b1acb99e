"""The scenarios on an embedded control plane with simulated members; `tests/real/test_scenarios_*` have the stock ones."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.harness.ground import Ground, World, simulated_ground
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    async with simulated_ground(tmp_path_factory.mktemp("plane")) as made:
        yield made
        await made.leave()


@pytest_asyncio.fixture(loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        yield made
