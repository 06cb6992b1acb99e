"""Unattended: which shards nobody runs, as far as their leases tell somebody who reads them once.

Controllers know it better (`control.sharding.others`): they see whether a lease changes. Here its times are compared, with one
another if possible, since the reader's clock may be wrong.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from argosy.api.shards import WHOLE, Shard, lease_name, shard_of_lease
from argosy.kube import timestamps

__all__ = ["Unattended", "unattended"]

#: What a lease may be renewed late, and holders' clocks differ.
_LATE = timedelta(seconds=15)
#: The reader's clock may differ more.
_READER = timedelta(seconds=60)


class Unattended(msgspec.Struct, frozen=True):
    shard: Shard
    #: When its lease was renewed or released last; "" if it was never held.
    since: str = ""

    @property
    def text(self) -> str:
        renewed = f" (renewed last at {self.since})" if self.since else ""
        lease = f"nobody holds the lease {lease_name(self.shard)}{renewed}"
        if self.shard == WHOLE:
            return f"the controllers do not run: {lease}, unless they run with --no-leader-elect"
        return f"shard {self.shard} does not run: {lease}, so nobody works on its objects"


class _Lease(msgspec.Struct, frozen=True):
    held: bool
    renewed: datetime
    duration: timedelta
    text: str


def unattended(leases: Sequence[Mapping[str, Any]], now: datetime) -> tuple[Unattended, ...]:
    """Of the layout that was at work last. Nothing is known of controllers that never had a lease."""
    found: dict[Shard, _Lease] = {}
    for each in leases:
        shard, lease = shard_of_lease(each["metadata"]["name"]), _lease(each.get("spec") or {})
        if shard is not None and lease is not None:
            found[shard] = lease
    if not found:
        return ()
    last = max(found, key=lambda shard: (found[shard].held, found[shard].renewed))
    newest = found[last].renewed
    reference = now if now - newest > found[last].duration + _READER else newest
    layout = [Shard(index, last.count) for index in range(last.count)]
    return tuple(
        Unattended(shard, found[shard].text if shard in found else "")
        for shard in layout
        if shard not in found or _is_free(found[shard], reference)
    )


def _is_free(lease: _Lease, reference: datetime) -> bool:
    return not lease.held or reference - lease.renewed > lease.duration + _LATE


def _lease(spec: Mapping[str, Any]) -> _Lease | None:
    renewed, seconds = timestamps.parse(spec.get("renewTime")), spec.get("leaseDurationSeconds")
    if renewed is None:
        return None
    duration = timedelta(seconds=seconds if isinstance(seconds, int) else 0)
    return _Lease(bool(spec.get("holderIdentity")), renewed, duration, timestamps.timestamp(renewed))
