"""A copy that is held is not written: it stays as it is until the overrides that are meant for it can be applied."""

from collections.abc import Callable

import orjson

from argosy.api import keys
from argosy.kube.transport import Request
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import federated_key, found, held, key_of, placed
from tests.world.places import PLANE

__all__ = ["HeldCopiesStay"]

#: Seconds after which controllers know that it is held: a former leader may still go by what it had read.
_KNOWN = 60.0
_FEDERATED = "core.kubeadmiral.io/federatedobjects/"
_DEPLOYMENTS = "apps/deployments/"
_WRITES = frozenset({"POST", "PUT", "PATCH"})


class HeldCopiesStay(Line):
    def __init__(
        self, broken: Callable[[str], None], plane: Disk, controllers: frozenset[str], time: Callable[[], float]
    ):
        super().__init__(broken)
        self._plane = plane
        self._controllers = controllers
        self._time = time
        #: By federated object, when its annotation came to be as it is.
        self._since: dict[str, float] = {}

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE or not change.key.startswith(_FEDERATED):
            return
        before = orjson.loads(change.previous.value) if change.previous is not None else {"metadata": {}}
        after = {"metadata": {}} if change.deleted else orjson.loads(change.value)
        texts = [(each["metadata"].get("annotations") or {}).get(keys.HELD_COPIES) for each in (before, after)]
        if texts[0] != texts[1]:
            self._since[change.key] = self._time()

    def sent(self, client: str, server: str, request: Request) -> None:
        if client not in self._controllers or server == PLANE or request.method not in _WRITES:
            return
        key = key_of(request) or _created(request)
        if not key.startswith(_DEPLOYMENTS):
            return
        federated = found(self._plane, federated_key(key))
        if federated is None or server not in placed(federated) or not held(federated, server):
            return
        if self._time() - self._since.get(federated_key(key), 0.0) > _KNOWN:
            self.broken(f"{request.method} of {key} in {server}, where its copy is held")


def _created(request: Request) -> str:
    """The key of an object that is to be created."""
    if request.method != "POST" or not request.path.endswith("/deployments"):
        return ""
    metadata = (orjson.loads(request.body) if request.body else {}).get("metadata") or {}
    return f"{_DEPLOYMENTS}{metadata.get('namespace')}/{metadata.get('name')}"
