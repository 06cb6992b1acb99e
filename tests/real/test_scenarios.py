"""The scenarios on stock members, with an embedded and with a stock control plane.

The members are started once and serve both grounds, one after the other; each leaves them as it found them. With
ARGOSY_MEMBERS=oldest they are of the oldest Kubernetes minor that members may have (`make test-skew`).
"""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from argosy.testing import CONTROL_PLANE, OLDEST, VERSION, Options
from argosy.testing.pytest_plugin import SharedClusters
from tests.harness.ground import Ground, World, embedded_ground, stock_ground
from tests.scenarios.everything import *  # noqa: F403

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBERS = Options(nodes=2, version=OLDEST if os.environ.get("ARGOSY_MEMBERS") == "oldest" else VERSION)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["embedded", "stock"])
async def ground(
    request: Any, kubernetes_session: SharedClusters, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Ground]:
    members = await kubernetes_session.several(3, MEMBERS)
    if request.param == "embedded":
        made = embedded_ground(tmp_path_factory.mktemp("plane"), members)
    else:
        made = stock_ground(await kubernetes_session.get(CONTROL_PLANE), members)
    async with made as entered:
        yield entered
        await entered.leave()


@pytest_asyncio.fixture(loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        yield made
