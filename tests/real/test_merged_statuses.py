"""kube-apiserver takes merged statuses of every kind and stores them as they are: nothing is written twice."""

import pytest

from argosy.kube.client import Client
from tests.harness.statuses import KINDS, accepted_and_stable


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_a_merged_status_is_stored_as_it_is(kind: str, client: Client, namespace: str) -> None:
    await accepted_and_stable(client, kind, namespace)
