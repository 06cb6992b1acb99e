"""The admission plugins a Kubernetes API server runs by default, as far as this one needs them."""

from argosy.server import status
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.crd import DEFINITIONS, CustomResources, accept_names
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.fielderrors import FieldError, too_many
from argosy.server.http.request import Call
from argosy.server.kinds.pods.pods import apply_priority_class, missing_priority_class
from argosy.server.kinds.services.ips import Exhausted, Refused, ServiceAllocator, held_by
from argosy.server.registry import Object
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["Definitions", "Priorities", "Requesters", "ServiceAddresses"]

#: Ports of a service: more than there are node ports, and all of them are checked with each change.
MAX_PORTS = 5000


class Priorities(AdmissionPlugin):
    """A pod gets the value of the PriorityClass it names, or of the default one."""

    def __init__(self, store: Store):
        self._store = store

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[FieldError]:
        if call.kind.storage_key != "core/pods" or old is not None:
            return []
        name = missing_priority_class(new)
        if name is not None:
            found = self._store.get(f"scheduling.k8s.io/priorityclasses/{name}")
            if found is None:
                why = f"no PriorityClass with name {name} was found"
                raise status.forbidden(call.kind, new["metadata"]["name"], why)
            apply_priority_class(new, found.decode())
        elif not new["spec"].get("priorityClassName"):
            default = self._default()
            if default is not None:
                apply_priority_class(new, default)
        return []

    def _default(self) -> Object | None:
        """Of several default classes the one with the lowest value counts, as in Kubernetes."""
        entries = self._store.table("scheduling.k8s.io/priorityclasses").entries.values()
        found = [entry.decode() for entry in entries if b'"globalDefault":true' in entry.value]
        return min(found, key=lambda obj: int(obj.get("value", 0)), default=None)


class ServiceAddresses(AdmissionPlugin):
    """Cluster IPs and node ports: allocated before a service is validated, released when it is deleted or was not written."""

    def __init__(self, store: Store, allocator: ServiceAllocator):
        self._store = store
        self._allocator = allocator
        #: Allocations for writes in progress (by identity: the objects are not stored yet).
        self._holding: dict[int, list[str | int]] = {}

    def start(self) -> None:
        """Call once the store is open."""
        self._store.follow(self._observe, "core/services")

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[FieldError]:
        # As in Kubernetes, a PUT to /status that creates a service allocates no address.
        if call.kind.storage_key != "core/services" or call.subresource:
            return []
        ports = len(new["spec"].get("ports") or ())
        if ports > MAX_PORTS:
            return [too_many("spec.ports", ports, MAX_PORTS)]
        try:
            taken = self._allocator.allocate(new, old, dry_run=bool(call.dry_run))
        except Refused as refused:
            return refused.errors
        except Exhausted as error:
            raise status.internal(str(error)) from None
        if taken:
            self._holding[id(new)] = taken
        return []

    def abandon(self, call: Call, new: Object, old: Object | None) -> None:
        self._allocator.give_back(self._holding.pop(id(new), ()))

    def _observe(self, event: StoreEvent) -> None:
        kept = None if event.deleted else event.entry.decode()
        if kept is not None:
            # The same allocation exists only once, so this is the write it was made for.
            held = set(held_by(kept))
            self._holding = {key: taken for key, taken in self._holding.items() if not held.issuperset(taken)}
            # A write that is cancelled during its commit has released what is stored now.
            self._allocator.take(kept)
        if event.previous is not None:
            self._allocator.release(event.previous.decode(), kept)


class Definitions(AdmissionPlugin):
    """A CustomResourceDefinition is stored with its names accepted, so it is served once its write is acknowledged.

    Objects of a definition that was deleted, or created anew since the request came, are not created.
    """

    def __init__(self, store: Store, resources: CustomResources):
        self._store = store
        self._resources = resources
        #: Names of definitions -> when they were deleted last.
        self._deleted: dict[str, int] = {}

    def start(self) -> None:
        """Call once the store is open."""
        self._store.follow(self._observe, DEFINITIONS)

    def create(self, call: Call, obj: Object) -> None:
        if not isinstance(call.kind.strategy, CustomResourceStrategy):
            return
        name = call.kind.resource
        definition = self._store.get(f"{DEFINITIONS}/{name}")
        # The kind of a deleted definition is not the one that is served now.
        if definition is None or self._deleted.get(name, 0) > call.kind.rules_since:
            raise status.not_served()
        if definition.deleting:
            why = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(call.kind, obj["metadata"].get("name", ""), why)

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        if call.kind.storage_key != DEFINITIONS:
            return
        new["status"] = accept_names(new, self._resources.names())

    def _observe(self, event: StoreEvent) -> None:
        if event.deleted:
            self._deleted[event.entry.name] = event.version


class Requesters(AdmissionPlugin):
    """Records the requester of a certificate signing request."""

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        if call.kind.plural != "certificatesigningrequests" or old is not None:
            return
        user = call.user
        spec = {**new["spec"], "username": user.name, "groups": list(user.groups)}
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        new["spec"] = spec
