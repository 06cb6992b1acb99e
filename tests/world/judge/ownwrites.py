"""Who has written reads it: no write is based on an older version than the one that the same process was told of its last."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from argosy.kube.transport import Request, Response
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, Versioned, key_of

__all__ = ["OwnWrites"]

#: Seconds that a pass may take from its reading, or from an answer that it waited for, to its sending.
_UNDER_WAY = 0.1


class _Told(NamedTuple):
    version: int
    at: float


class OwnWrites(Line):
    def __init__(
        self,
        broken: Callable[[str], None],
        disks: Mapping[str, Disk],
        time: Callable[[], float],
        process: Callable[[str], str],
    ):
        """`process` is the one that runs at a place now."""
        super().__init__(broken)
        self._disks = disks
        self._time = time
        self._process = process
        self._told: dict[tuple[str, str, str], _Told] = {}
        #: When requests that are not answered yet were sent.
        self._asked: dict[int, float] = {}
        #: By process, when an answer came and when it was asked for.
        self._answers: defaultdict[str, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=100))

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        asked = self._asked.pop(id(request), None)
        if asked is not None and client.startswith("controllers"):
            self._answers[self._process(client)].append((self._time(), asked))
        if not _counts(client, request) or not isinstance(answer, Response) or answer.status not in (200, 201):
            return
        version, key = msgspec.json.decode(answer.body, type=Versioned).metadata.resource_version, key_of(request)
        if version and key is not None:
            self._told[self._process(client), server, key] = _Told(int(version), self._time())

    def sent(self, client: str, server: str, request: Request) -> None:
        if client.startswith("controllers") and "/leases/" not in request.path:
            self._asked[id(request)] = self._time()
        key = key_of(request) if _counts(client, request) else None
        told = self._told.get((self._process(client), server, key)) if key is not None else None
        if told is None or self._since_read(client, told.at) < _UNDER_WAY or not (request.body or b"").startswith(b"{"):
            return
        stored = self._disks[server].records.get(key or "")
        if stored is not None and stored.version < told.version:
            return  # it was restored from a backup
        body = msgspec.json.decode(request.body or b"", type=Versioned)
        version = body.metadata.resource_version or body.preconditions.resource_version
        if version and int(version) < told.version:
            self.broken(f"{client} sent {request.method} for version {version} of {key} and had written {told.version}")

    def _since_read(self, client: str, written: float) -> float:
        """Seconds since a pass that read before that write may have gone on."""
        now = self._time()
        waited = (heard for heard, asked in self._answers[self._process(client)] if asked <= written)
        return now - max([written, *waited])


def _counts(client: str, request: Request) -> bool:
    return client.startswith("controllers") and request.method not in READS and "/leases/" not in request.path
