"""The scenarios on ground (b): an embedded control plane with stock members."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from argosy.testing import clusters
from argosy.testing.pytest_plugin import SharedClusters
from tests.harness.ground import Ground, embedded_ground
from tests.real.scenarios import MEMBERS, world  # noqa: F401
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(kubernetes_session: SharedClusters, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    # Of the module's own: a cluster that waits for the end of the run costs the other tests a tenth of a core.
    async with (
        clusters(3, MEMBERS, binaries=kubernetes_session.of(MEMBERS)) as members,
        embedded_ground(tmp_path_factory.mktemp("plane"), members) as made,
    ):
        yield made
        await made.leave()
