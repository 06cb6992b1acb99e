"""Nothing acknowledged is lost: what a server said it stored is on its disk, and no version is given out twice."""

from collections.abc import Callable, Mapping

import msgspec

from argosy.kube.transport import Request, Response
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import key_of

__all__ = ["Durable"]

_WRITES = frozenset({"POST", "PUT", "PATCH"})


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class Durable(Line):
    def __init__(self, broken: Callable[[str], None], disks: Mapping[str, Disk]):
        super().__init__(broken)
        self._disks = disks
        self._newest: dict[str, int] = {}
        self._deleted: dict[tuple[str, str], int] = {}

    def stored(self, server: str, change: Change) -> None:
        if change.version <= self._newest.get(server, 0):
            self.broken(f"{server} gave out version {change.version} again, for {change.key}")
        self._newest[server] = change.version
        if change.deleted:
            self._deleted[server, change.key] = change.version

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        if request.method not in _WRITES or not isinstance(answer, Response) or answer.status not in (200, 201):
            return
        if any(name == "dryRun" for name, _ in request.query):
            return
        told = msgspec.json.decode(answer.body, type=_Answer).metadata
        if not told.resource_version:
            return
        key = key_of(request) if request.method != "POST" else _created(request, told.name)
        record = self._disks[server].records.get(key or "")
        version = max(record.version if record is not None else 0, self._deleted.get((server, key or ""), 0))
        if version < int(told.resource_version):
            self.broken(f"{server} acknowledged version {told.resource_version} of {key}, and has {version}")


def _created(request: Request, name: str) -> str | None:
    return key_of(msgspec.structs.replace(request, method="GET", path=f"{request.path}/{name}"))
