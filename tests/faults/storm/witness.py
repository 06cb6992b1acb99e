"""Witness: what the control plane wanted when, and who led it: all versions of federated objects and of the lease, by watch.

Times are when we were told. Of what was written in the last moment before an API server was killed only the result may be
seen: kube-apiserver does not remember versions from before its start, and has it listed again.
"""

import asyncio
import time
from datetime import datetime
from typing import NamedTuple

import msgspec

from argosy.api import keys, resources
from argosy.api.types import FederatedObject
from argosy.kube.client import Client
from argosy.kube.informer import Change, Informer
from argosy.kube.lease import LEASES
from argosy.kube.objects import Metadata
from tests.faults.processes import EAGER
from tests.faults.storm.tenants import NAMESPACE

__all__ = ["Term", "Wanted", "Witness"]


class Wanted(NamedTuple):
    """Where an object was to be from then on; None for one that is to go, or gone."""

    since: float
    clusters: frozenset[str] | None


class Term(NamedTuple):
    """A holder of the lease, by the time in the lease itself; one machine has one clock."""

    since: datetime
    holder: str


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    acquire_time: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _LeaseSpec = _LeaseSpec()


class Witness:
    def __init__(self, client: Client):
        #: By the name in members: plural and name.
        self.wanted: dict[str, list[Wanted]] = {}
        self.terms: list[Term] = []
        self.objects = Informer(
            client, resources.FEDERATED_OBJECTS, FederatedObject, namespace=NAMESPACE, liveness=30.0, backoff=EAGER
        )
        self._leases = Informer(client, LEASES, _Lease, namespace=keys.SYSTEM_NAMESPACE, liveness=30.0, backoff=EAGER)
        self.objects.add_handler(self._object)
        self._leases.add_handler(self._lease)

    async def run(self) -> None:
        await asyncio.gather(self.objects.run(), self._leases.run())

    def _object(self, change: Change[FederatedObject]) -> None:
        seen = change.new or change.old
        assert seen is not None
        template = seen.spec.template
        name = f"{template['kind'].lower()}s/{template['metadata']['name']}"
        gone = change.new is None or change.new.metadata.deletion_timestamp
        clusters = None if gone else frozenset(seen.placed)
        states = self.wanted.setdefault(name, [])
        if not states or states[-1].clusters != clusters:
            states.append(Wanted(time.time(), clusters))

    def _lease(self, change: Change[_Lease]) -> None:
        lease = change.new
        if lease is None or lease.metadata.name != "argosy-controllers":
            return
        holder, since = lease.spec.holder_identity, lease.spec.acquire_time
        if holder and since and (not self.terms or self.terms[-1] != (datetime.fromisoformat(since), holder)):
            self.terms.append(Term(datetime.fromisoformat(since), holder))
