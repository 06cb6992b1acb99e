"""Who does not hold the lease writes nothing, to members or to the control plane: not after a stop, not with a wrong clock."""

from collections.abc import Callable

from argosy.api import keys
from argosy.api.shards import WHOLE, lease_name
from argosy.kube.transport import Request
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import found

__all__ = ["Leadership"]

_READS = frozenset({"GET", "HEAD"})
_LEASE = f"coordination.k8s.io/leases/{keys.SYSTEM_NAMESPACE}/{lease_name(WHOLE)}"


class Leadership(Line):
    def __init__(self, broken: Callable[[str], None], plane: Disk):
        super().__init__(broken)
        self._plane = plane

    def sent(self, client: str, server: str, request: Request) -> None:
        if not client.startswith("controllers") or request.method in _READS or "/leases" in request.path:
            return
        lease = found(self._plane, _LEASE)
        holder = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        if holder.partition("/")[0] != client:
            self.broken(f"{client} sent {request.method} {request.path} to {server} while {holder} held the lease")
