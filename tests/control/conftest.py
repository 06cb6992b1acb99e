"""What several files of this folder start with."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.membership import Party
from tests.harness.virtual import loop_factories

#: Virtual time, unless a test says why not.
pytest_asyncio_loop_factories = loop_factories


@pytest.fixture
async def party() -> AsyncIterator[Party]:
    """A member with a service account, and a policy."""
    async with Party() as fed:
        await fed.policy()
        yield fed
