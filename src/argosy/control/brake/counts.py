"""Counts: how many copies are in each cluster, by federated objects' placements; and what was taken away lately."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.kube.informer import Change

__all__ = ["Counts", "Lately", "tally"]


class Counts:
    """Kept by changes alone. Another controller may hold all objects; ours are those of the shard."""

    def __init__(self) -> None:
        #: Of copies, by cluster.
        self.there: Counter[str] = Counter()
        self.objects = 0

    def observe(self, change: Change[FederatedView]) -> None:
        old, new = change.old, change.new
        self.objects += (new is not None) - (old is not None)
        if old is not None and new is not None and old.spec.placements == new.spec.placements:
            return
        self.there.subtract(old.placed if old is not None else ())
        self.there.update(new.placed if new is not None else ())
        for cluster in [name for name in (old.placed if old is not None else ()) if not self.there[name]]:
            del self.there[cluster]


class Lately:
    """Copies that were let go within a window of time."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._gone: deque[tuple[float, SourceKey, tuple[str, ...]]] = deque()

    def add(self, now: float, key: SourceKey, clusters: Iterable[str]) -> None:
        self._gone.append((now, key, tuple(clusters)))

    def since(self, now: float) -> Iterator[tuple[SourceKey, tuple[str, ...]]]:
        while self._gone and self._gone[0][0] <= now - self._window:
            self._gone.popleft()
        return ((key, clusters) for _, key, clusters in self._gone)


def tally(leaving: Iterable[tuple[SourceKey, tuple[str, ...]]]) -> tuple[Mapping[str, int], int]:
    """How many copies leave each cluster, and of how many objects."""
    clusters: Counter[str] = Counter()
    objects = set()
    for key, names in leaving:
        clusters.update(names)
        objects.add(key)
    return clusters, len(objects)
