"""Who does not hold the lease of its shard writes nothing, and nobody writes in namespaces of another shard.

Not after a stop or a sleep, and not with a wrong clock. Members and the control plane alike.
"""

from collections.abc import Callable, Mapping

from argosy.api import keys
from argosy.api.shards import BUCKETS, Shard, bucket_of, lease_name
from argosy.kube.transport import Request
from argosy.server.http.request import parse_target
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import READS, found

__all__ = ["Leadership"]

_LEASES = f"coordination.k8s.io/leases/{keys.SYSTEM_NAMESPACE}"
#: Events of objects without a namespace are in the default one.
_ANYBODYS = frozenset({"events"})


class Leadership(Line):
    def __init__(self, broken: Callable[[str], None], plane: Disk, shards: Mapping[str, Shard]):
        """`shards` are those of the controllers, by name."""
        super().__init__(broken)
        self._plane = plane
        self._shards = shards

    def sent(self, client: str, server: str, request: Request) -> None:
        shard = self._shards.get(client)
        if shard is None or request.method in READS or "/leases" in request.path:
            return
        lease = found(self._plane, f"{_LEASES}/{lease_name(shard)}")
        holder = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        if holder.partition("/")[0] != client:
            self.broken(f"{client} sent {request.method} {request.path} to {server} while {holder} held the lease")
        target = parse_target(request)
        if target is None or target.namespace in ("", None, keys.SYSTEM_NAMESPACE) or target.plural in _ANYBODYS:
            return
        if bucket_of(target.namespace) * shard.count // BUCKETS != shard.index:
            self.broken(f"{client} of shard {shard} sent {request.method} {request.path} to {server}")
