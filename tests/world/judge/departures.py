"""Which clusters have left: what they hold is nobody's business then."""

from collections.abc import Callable

from argosy.server.storage.base import Change
from tests.world.judge.line import Line
from tests.world.places import PLANE

__all__ = ["Departures"]

_CLUSTERS = "core.kubeadmiral.io/federatedclusters/"


class Departures(Line):
    """Finds nothing broken; other lines ask it."""

    def __init__(self, broken: Callable[[str], None], time: Callable[[], float]):
        super().__init__(broken)
        self._time = time
        #: When each of them was last told to leave, or had left.
        self._left: dict[str, float] = {}
        self._leaving: set[str] = set()

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE or not change.key.startswith(_CLUSTERS):
            return
        name, leaves = change.key.removeprefix(_CLUSTERS), b'"deletionTimestamp"' in change.value
        if change.deleted or not leaves:
            self._leaving.discard(name)
        else:
            self._leaving.add(name)
        if change.deleted or leaves:
            self._left[name] = self._time()

    def since(self, moment: float = 0.0) -> list[str]:
        """Clusters that have left since, or are about to."""
        return [cluster for cluster, at in self._left.items() if at >= moment or cluster in self._leaving]
