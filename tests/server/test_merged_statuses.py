"""The API server takes merged statuses of every kind and stores them as they are: nothing is written twice."""

import pytest

from argosy.server.embedded import EmbeddedServer
from tests.harness.statuses import KINDS, accepted_and_stable


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_a_merged_status_is_stored_as_it_is(kind: str, memory_server: EmbeddedServer) -> None:
    client = memory_server.client()
    await accepted_and_stable(client, kind, "default")
    await client.close()
