"""The scenarios on ground (b): an embedded control plane with stock members."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from argosy.testing.pytest_plugin import SharedClusters
from tests.harness.ground import Ground, embedded_ground
from tests.real.scenarios import MEMBERS, world  # noqa: F401
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(kubernetes_session: SharedClusters, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    members = await kubernetes_session.several(3, MEMBERS)
    async with embedded_ground(tmp_path_factory.mktemp("plane"), members) as made:
        yield made
        await made.leave()
