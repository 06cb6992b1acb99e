"""Expected kinds: what members should serve soon, so that they are asked soon, and again, what they serve.

Expected of a member that accepted a definition, and, if objects of the kind are federated, of those that lack what another
member was just seen to serve for the first time.
"""

from argosy.api.types import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.caches.projection import as_object
from argosy.control.collect import Collector, CopyChange
from argosy.control.timings import Timings
from argosy.fleet.member import ApiKey
from argosy.kube import clock
from argosy.kube.objects import HasMetadata
from argosy.plan.kinds.stock.definition import DEFINITION, established

__all__ = ["ExpectedKinds"]

#: Group and plural name.
_Kind = tuple[str, str]


class ExpectedKinds:
    def __init__(self, caches: Caches, collector: Collector, timings: Timings):
        self._caches = caches
        self._collector = collector
        self._patience = timings.kind_patience
        #: By cluster, until when it is asked again.
        self._expected: dict[str, dict[_Kind, float]] = {}

    def of_copy(self, copy: CopyChange) -> list[str]:
        """The cluster of a definition that it has just accepted, in this form."""
        config, old, new = self._caches.catalog.of_kind(*DEFINITION), copy.change.old, copy.change.new
        if (
            config is None
            or copy.type != config.name
            or new is None
            or not self._collector.synced(copy.cluster, copy.type)
        ):
            return []
        if not _established(new) or (old is not None and _same(old, new) and _established(old)):
            return []
        plural, _, group = copy.change.key.partition(".")
        return self._expect(copy.cluster, (group, plural))

    def of_arrival(self, api: ApiKey) -> list[str]:
        """The clusters that lack a kind that came to another one."""
        group, version, kind = api
        config = self._caches.catalog.of_kind(f"{group}/{version}" if group else version, kind)
        if config is None:
            return []
        expected = (group, config.spec.source_type.plural_name)
        lacking = [each for each in self._caches.clusters.values() if each.ready and expected not in _served(each)]
        return [name for each in lacking for name in self._expect(each.name, expected)]

    def _expect(self, cluster: str, kind: _Kind) -> list[str]:
        self._expected.setdefault(cluster, {})[kind] = clock.monotonic() + self._patience
        return [cluster]

    def awaited(self, cluster: str) -> bool:
        """Whether something is expected of the cluster."""
        return cluster in self._expected

    def left(self, cluster: FederatedCluster) -> bool:
        """Whether something is still expected of a cluster that serves what its status says."""
        expected = self._expected.pop(cluster.name, {})
        if not expected:
            return False
        now, served = clock.monotonic(), _served(cluster)
        open_ = {kind: until for kind, until in expected.items() if kind not in served and now < until}
        if open_:
            self._expected[cluster.name] = open_
        return bool(open_)

    def forget(self, cluster: str) -> None:
        self._expected.pop(cluster, None)


def _served(cluster: FederatedCluster) -> set[_Kind]:
    return {(api.group, api.plural_name) for api in cluster.status.api_resource_types}


def _same(old: HasMetadata, new: HasMetadata) -> bool:
    return (old.metadata.uid, old.metadata.generation) == (new.metadata.uid, new.metadata.generation)


def _established(definition: HasMetadata) -> bool:
    return established(as_object(definition))
