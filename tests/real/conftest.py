"""Everything in this folder runs against stock Kubernetes: `make test-real`."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.kube.client import Client
from argosy.testing import API_SERVER, find
from argosy.testing.pytest_plugin import Kubernetes, SharedClusters, kubernetes, kubernetes_session  # noqa: F401
from tests.harness.user import new_namespace
from tests.real.helm import Helm
from tests.real.hub import MEMBER, Hub

#: The files that take longest: workers begin with these, so that none is left alone with one at the end.
LONGEST = (
    "test_scenarios_stock.py",
    "test_scenarios_embedded.py",
    "test_faults.py",
    "test_join_access.py",
    "test_kube_informer.py",
    "test_join.py",
    "test_install.py",
    "test_leader.py",
    "test_simulation.py",
    "test_shards.py",
    "test_identity.py",
    "test_deploy.py",
    "test_harness.py",
    "test_requests.py",
    "test_sequences.py",
    "test_controllers.py",
    "test_bad_input.py",
    "test_merge.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture
async def client(kubernetes: Kubernetes) -> AsyncIterator[Client]:  # noqa: F811
    """An administrator's, of a kube-apiserver nobody but the tests writes to."""
    made = (await kubernetes.shared(API_SERVER)).client()
    yield made
    await made.close()


@pytest.fixture
async def namespace(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The test's own."""
    prefix = request.path.stem.removeprefix("test_").replace("_", "-")
    async with new_namespace(client, f"{prefix}-") as name:
        yield name


@pytest.fixture
async def hub(kubernetes: Kubernetes) -> AsyncIterator[Hub]:  # noqa: F811
    async with Hub(await kubernetes.shared(MEMBER)) as entered:
        yield entered


@pytest.fixture
def helm(kubernetes_session: SharedClusters, tmp_path: Path) -> Helm:  # noqa: F811
    return _helm("helm", tmp_path)


@pytest.fixture
def helm4(kubernetes_session: SharedClusters, tmp_path: Path) -> Helm:  # noqa: F811
    return _helm("helm4", tmp_path)


def _helm(name: str, home: Path) -> Helm:
    binary = find().path(name)
    if not binary.exists():
        why = f"no {name} in {binary.parent}: run `make kubernetes`"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    return Helm(binary, home)
