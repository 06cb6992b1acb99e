"""A mistake harms nothing: while it lasts, and while it is undone, no copy is written in a member, and each keeps its uid.

Two mistakes cannot be taken back without a write: sources that were pruned are released and taken over again, and clusters that
were deleted join again. Then no copy is deleted. What is applied again may be divided otherwise: rescued copies stay then.
"""

from collections.abc import Callable, Mapping

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, key_of, listed, managed, rescued
from tests.world.places import PLANE

__all__ = ["Untouched"]

_TABLES = ("apps/deployments", "core/configmaps")
_REWRITTEN = frozenset({"sources pruned", "clusters deleted"})
_DELETES = frozenset({"DELETE"})


class Untouched(Line):
    def __init__(self, broken: Callable[[str], None], members: Mapping[str, Disk]):
        super().__init__(broken)
        self._members = members
        self._what = ""
        self._before: dict[tuple[str, str], str] = {}

    def begin(self, what: str) -> None:
        self._what, self._before = what, self._copies()

    def end(self) -> None:
        """All is well again."""
        after = self._copies()
        for (cluster, key), uid in self._before.items():
            if after.get((cluster, key)) != uid:
                self.broken(f"{cluster} has another {key} after “{self._what}”, or none")

    def _copies(self) -> dict[tuple[str, str], str]:
        return {
            (cluster, f"{table}/{name}"): copy["metadata"]["uid"]
            for cluster, disk in self._members.items()
            for table in _TABLES
            for name, copy in listed(disk, table).items()
            if managed(copy) or rescued(copy)
        }

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if not self._what or server == PLANE or not client.startswith("controllers") or request.method in READS:
            return
        key = key_of(request) or ""
        done = isinstance(answer, Response) and answer.status in (200, 201)
        allowed = self._what in _REWRITTEN and request.method not in _DELETES
        if done and not allowed and (server, key) in self._before:
            self.broken(f"{client} sent {request.method} for {key} to {server} because of “{self._what}”")

    def stored(self, server: str, change: Change) -> None:
        if self._what and change.deleted and (server, change.key) in self._before:
            self.broken(f"{change.key} was deleted in {server} because of “{self._what}”")
