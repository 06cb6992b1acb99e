"""What is paused is left alone: nothing is written to members for a paused object, to a paused cluster, or by a paused fleet."""

from collections.abc import Callable

import orjson

from argosy.api import keys
from argosy.kube.transport import Request
from argosy.server.storage.base import Change
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, key_of
from tests.world.places import PLANE

__all__ = ["Paused"]

#: Seconds until everybody has heard of it: a watch may have to be opened anew, more than once.
_HEARD = 20.0
_FLEET = f"core/namespaces/{keys.SYSTEM_NAMESPACE}"
_CLUSTERS = "core.kubeadmiral.io/federatedclusters/"
_COPIES = ("apps/deployments/", "core/configmaps/")


class Paused(Line):
    def __init__(self, broken: Callable[[str], None], time: Callable[[], float]):
        super().__init__(broken)
        self._time = time
        #: By the store's key, since when.
        self._since: dict[str, float] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE or not (change.key == _FLEET or change.key.startswith((_CLUSTERS, *_COPIES))):
            return
        annotations = orjson.loads(change.value)["metadata"].get("annotations") or {}
        if annotations.get(keys.PAUSED) == "true" and not change.deleted:
            self._since.setdefault(change.key, self._time())
        else:
            self._since.pop(change.key, None)

    def sent(self, client: str, server: str, request: Request) -> None:
        if server == PLANE or not client.startswith("controllers") or request.method in READS:
            return
        key = key_of(request) or ""
        if not key.startswith(_COPIES):
            return
        # A copy has its source's key.
        for each in (_FLEET, f"{_CLUSTERS}{server}", key):
            since = self._since.get(each)
            if since is not None and self._time() - since > _HEARD:
                self.broken(f"{client} sent {request.method} {request.path} to {server}, and {each} is paused")
