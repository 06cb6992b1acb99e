"""The pytest fixture `kubernetes`: stock clusters for a test.

    async def test_it(kubernetes: Kubernetes) -> None:
        east, west = await kubernetes(2)             # its own, gone when the test is over
        cluster = await kubernetes.shared()          # one for all tests of the run that ask for the same options

Enabled with `-p argosy.testing.pytest_plugin`, or by importing the two fixtures in a conftest. If the binaries are missing,
tests that use it are skipped with the reason; with CI=true they fail.
"""

import os
from collections.abc import Iterator

import msgspec
import pytest

from argosy.testing.binaries import VERSION, Binaries, BinariesMissing, find
from argosy.testing.cluster import DEFAULT, Cluster, Clusters
from argosy.testing.options import Options

__all__ = ["Kubernetes", "SharedClusters", "kubernetes", "kubernetes_session"]


class SharedClusters:
    """Clusters that outlive a test: one for each set of options, started on first use."""

    def __init__(self, binaries: Binaries):
        self.binaries = binaries
        self._started: dict[bytes, Clusters] = {}

    async def get(self, options: Options) -> Cluster:
        key = msgspec.json.encode(options, order="deterministic")
        known = self._started.get(key)
        if known is None:
            known = Clusters(1, options, self.of(options))
            try:
                await known.start()
            except BaseException:
                known.stop()
                raise
            self._started[key] = known
        return known.all[0]

    def of(self, options: Options) -> Binaries | None:
        """The binaries for clusters with these options; None means to look for them by version."""
        return self.binaries if options.version == VERSION else None

    def stop(self) -> None:
        for clusters in self._started.values():
            clusters.stop()


class Kubernetes:
    """The fixture's value."""

    def __init__(self, session: SharedClusters):
        self._session = session
        self._own: list[Clusters] = []

    async def __call__(self, count: int = 1, options: Options = DEFAULT) -> list[Cluster]:
        """Clusters of the test's own: for tests that break them, or need them empty."""
        own = Clusters(count, options, self._session.of(options))
        self._own.append(own)
        return await own.start()

    async def shared(self, options: Options = DEFAULT) -> Cluster:
        """A cluster that other tests use as well, one after another: use a namespace of your own, and break nothing."""
        return await self._session.get(options)

    def stop(self) -> None:
        for clusters in self._own:
            clusters.stop()


@pytest.fixture(scope="session")
def kubernetes_session() -> Iterator[SharedClusters]:
    try:
        binaries = find()
    except BinariesMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    shared = SharedClusters(binaries)
    yield shared
    shared.stop()


@pytest.fixture
def kubernetes(kubernetes_session: SharedClusters) -> Iterator[Kubernetes]:
    given = Kubernetes(kubernetes_session)
    yield given
    given.stop()
