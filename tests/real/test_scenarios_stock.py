"""The scenarios on ground (c): a stock control plane with stock members."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from argosy.testing import CONTROL_PLANE, clusters
from argosy.testing.pytest_plugin import SharedClusters
from tests.harness.ground import Ground, stock_ground
from tests.real.scenarios import MEMBERS, world  # noqa: F401
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(kubernetes_session: SharedClusters) -> AsyncIterator[Ground]:
    # Of the module's own: see test_scenarios_embedded.
    async with (
        clusters(3, MEMBERS, binaries=kubernetes_session.of(MEMBERS)) as members,
        clusters(1, CONTROL_PLANE, binaries=kubernetes_session.binaries) as (plane,),
        stock_ground(plane, members) as made,
    ):
        yield made
        await made.leave()
