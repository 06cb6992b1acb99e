"""The scenarios on ground (c): a stock control plane with stock members."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from argosy.testing import CONTROL_PLANE
from argosy.testing.pytest_plugin import SharedClusters
from tests.harness.ground import Ground, stock_ground
from tests.real.scenarios import MEMBERS, world  # noqa: F401
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(kubernetes_session: SharedClusters) -> AsyncIterator[Ground]:
    members = await kubernetes_session.several(3, MEMBERS)
    async with stock_ground(await kubernetes_session.get(CONTROL_PLANE), members) as made:
        yield made
        await made.leave()
