"""What the scenarios on stock members share: the members, and the world a scenario gets.

With ARGOSY_MEMBERS=oldest they are of the oldest Kubernetes minor that members may have (`make test-skew`).
"""

import os
from collections.abc import AsyncIterator

import pytest_asyncio

from argosy.testing import OLDEST, VERSION, Options
from tests.harness.ground import Ground, World

__all__ = ["MEMBERS", "world"]

MEMBERS = Options(nodes=2, version=OLDEST if os.environ.get("ARGOSY_MEMBERS") == "oldest" else VERSION)


@pytest_asyncio.fixture(loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        yield made
