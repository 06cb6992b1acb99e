"""The controllers of persistent volumes: claims get volumes, volumes go with their claims, and what is in use stays.

The provisioner stands in for that of any StorageClass. Volumes reach every node, so they do not bind their pods to one.
"""

import contextlib

from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim import volumes
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.pods import TERMINAL, Pod

__all__ = ["CLAIMS", "CLAIMS_TABLE", "Claims", "pod_standing", "settle_on"]

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CLAIMS_TABLE = "core/persistentvolumeclaims/"
_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
_VOLUMES_TABLE = "core/persistentvolumes/"
_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
_CLASSES_TABLE = "storage.k8s.io/storageclasses/"
_CLAIM_IN_USE = "kubernetes.io/pvc-protection"
_VOLUME_IN_USE = "kubernetes.io/pv-protection"
_COMPONENT = "persistentvolume-controller"


def pod_standing(cluster: Cluster, pod: Pod) -> volumes.Standing:
    """What a pod's claims mean for its scheduling."""
    found = {name: cluster.access.get(f"{CLAIMS_TABLE}{pod.namespace}/{name}") for name in pod.shape.claims}
    claims = {name: entry.decode() if entry is not None else None for name, entry in found.items()}
    classes = _classes(cluster)
    return volumes.standing(pod.shape.claims, claims, classes, volumes.default_class(classes.values()))


def _classes(cluster: Cluster) -> dict[str, Object]:
    return {entry.name: entry.decode() for entry in cluster.access.entries(_CLASSES_TABLE[:-1])}


class Claims(Controller):
    name = "claims and volumes"
    workers = 1

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._client = cluster.client(_COMPONENT)
        self._events = cluster.recorder(_COMPONENT)
        #: Pods that mount a claim, by its key.
        self._users: dict[str, set[str]] = {}
        #: Claims without a volume.
        self._unbound: set[str] = set()

    async def open(self) -> None:
        """A cluster has a default class from its first start on; users may remove it."""
        if self.cluster.access.entries(_CLASSES_TABLE[:-1]):
            return
        with contextlib.suppress(AlreadyExists):
            await self._client.create(_CLASSES, volumes.standard_class(), into=bytes)

    def observe(self, event: StoreEvent) -> None:
        key = event.entry.key
        if key.startswith(CLAIMS_TABLE):
            if not event.deleted:
                self.queue.add(key)
                return
            self._unbound.discard(key)
            if volume := event.entry.decode()["spec"].get("volumeName"):
                self.queue.add(_VOLUMES_TABLE + volume)
        elif key.startswith(_VOLUMES_TABLE):
            if not event.deleted:
                self.queue.add(key)
            if claim := event.entry.decode()["spec"].get("claimRef"):
                self.queue.add(f"{CLAIMS_TABLE}{claim.get('namespace')}/{claim.get('name')}")
            elif not event.deleted:
                self._wake_unbound()
        elif key.startswith(_CLASSES_TABLE) and not event.deleted:
            self._wake_unbound()

    def _wake_unbound(self) -> None:
        for key in self._unbound:
            self.queue.add(key)

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        for name in pod.shape.claims:
            key = f"{CLAIMS_TABLE}{pod.namespace}/{name}"
            if not event.deleted and pod.phase not in TERMINAL:
                self._users.setdefault(key, set()).add(pod.key)
                continue
            users = self._users.get(key, set())
            users.discard(pod.key)
            if not users:
                self._users.pop(key, None)
                self.queue.add(key)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        if entry is None:
            return None
        if key.startswith(_VOLUMES_TABLE):
            await self._volume(entry)
        elif entry.deleting:
            if key not in self._users:
                await self._let_go(CLAIMS, entry, _CLAIM_IN_USE)
        else:
            await self._claim(entry)
        return None

    # Claims.

    async def _claim(self, entry: Entry) -> None:
        obj = entry.decode()
        _protect(obj, _CLAIM_IN_USE)
        classes = _classes(self.cluster)
        if volumes.class_of(obj) is None and (default := volumes.default_class(classes.values())) is not None:
            obj["spec"]["storageClassName"] = default
        if obj["spec"].get("volumeName"):
            await self._bind_chosen(obj)
        else:
            await self._bind_any(obj, classes.get(volumes.class_of(obj) or ""))
        if (obj.get("status") or {}).get("phase") == "Bound":
            self._unbound.discard(entry.key)
        else:
            self._unbound.add(entry.key)
        if obj != entry.decode():
            await self.cluster.access.update(CLAIMS, obj)

    async def _bind_chosen(self, obj: Object) -> None:
        """It names its volume already."""
        was_bound = (obj.get("status") or {}).get("phase") == "Bound"
        found = self.cluster.access.get(_VOLUMES_TABLE + obj["spec"]["volumeName"])
        volume = found.decode() if found is not None else None
        if volume is not None and (not volume["spec"].get("claimRef") or volumes.is_reserved_for(volume, obj)):
            await self._bind(obj, volume)
        elif was_bound:
            obj["status"]["phase"] = "Lost"
            self._tell(
                obj, "Warning", "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            )

    async def _bind_any(self, obj: Object, storage_class: Object | None) -> None:
        decided = volumes.SELECTED_NODE in (obj["metadata"].get("annotations") or {})
        waits = volumes.waits_for_pod(storage_class) and not decided
        there = (entry.decode() for entry in self.cluster.access.entries(_VOLUMES_TABLE[:-1]))
        # While it waits for a pod, it gets only what is reserved for it.
        volume = volumes.best_volume(obj, (one for one in there if not waits or volumes.is_reserved_for(one, obj)))
        if volume is not None:
            await self._bind(obj, volume)
        elif waits:
            text = "waiting for first consumer to be created before binding"
            self._tell(obj, "Normal", "WaitForFirstConsumer", text)
        elif wanted := volumes.class_of(obj):
            await self._provision(obj, wanted, storage_class)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._tell(obj, "Normal", "FailedBinding", text)

    async def _provision(self, obj: Object, wanted: str, storage_class: Object | None) -> None:
        if storage_class is None:
            text = f'storageclass.storage.k8s.io "{wanted}" not found'
            self._tell(obj, "Warning", "ProvisioningFailed", text)
            return
        if storage_class["provisioner"] == volumes.NO_PROVISIONER:
            text = f"storageclass {wanted} does not provision volumes"
            self._tell(obj, "Normal", "FailedBinding", text)
            return
        volume = volumes.provisioned(obj, storage_class)
        _protect(volume, _VOLUME_IN_USE)
        with contextlib.suppress(AlreadyExists):  # it is there if this was interrupted
            await self._client.create(_VOLUMES, volume, into=bytes)
        text = f"Successfully provisioned volume {volume['metadata']['name']}"
        self._tell(obj, "Normal", "ProvisioningSucceeded", text)
        volumes.take(obj, volume)

    async def _bind(self, obj: Object, volume: Object) -> None:
        """The volume first: of two claims only one gets it."""
        if (volume["spec"].get("claimRef") or {}).get("uid") != obj["metadata"]["uid"]:
            volumes.reserve(volume, obj)
            volume.setdefault("status", {})["phase"] = "Bound"
            await self.cluster.access.update(_VOLUMES, volume)
        volumes.take(obj, volume)

    def _tell(self, obj: Object, kind: str, reason: str, text: str) -> None:
        self._events.event(reference_to(obj), kind, reason, text)

    # Volumes.

    async def _volume(self, entry: Entry) -> None:
        obj = entry.decode()
        reference = obj["spec"].get("claimRef") or {}
        claim = self.cluster.access.get(f"{CLAIMS_TABLE}{reference.get('namespace')}/{reference.get('name')}")
        held = claim is not None and claim.uid == reference.get("uid")
        if entry.deleting:
            if not held:
                await self._let_go(_VOLUMES, entry, _VOLUME_IN_USE)
            return
        if not reference.get("uid"):
            phase = "Available"
        else:
            phase = "Bound" if held else "Released"
        _protect(obj, _VOLUME_IN_USE)
        obj.setdefault("status", {})["phase"] = phase
        if obj != entry.decode():
            await self.cluster.access.update(_VOLUMES, obj)
        if phase == "Released" and volumes.is_provisioned(obj):
            await self._client.delete(_VOLUMES, entry.name, uid=entry.uid)

    async def _let_go(self, resource: Resource, entry: Entry, finalizer: str) -> None:
        """Without its last finalizer the server must remove it, so this takes the full path."""
        if finalizer not in entry.finalizers:
            return
        left = [one for one in entry.finalizers if one != finalizer]
        body = {"metadata": {"finalizers": left, "uid": entry.uid, "resourceVersion": str(entry.version)}}
        await self._client.patch(resource, entry.name, body, entry.namespace or None, kind=Patch.MERGE, into=bytes)


def _protect(obj: Object, finalizer: str) -> None:
    held = obj["metadata"].get("finalizers") or []
    if finalizer not in held:
        obj["metadata"]["finalizers"] = [*held, finalizer]


async def settle_on(cluster: Cluster, key: str, node: str) -> None:
    """The scheduler's decision, for a claim that waits for it: a volume that suits it is taken, or one is made for the node."""
    entry = cluster.access.get(key)
    if entry is None:
        return
    there = (each.decode() for each in cluster.access.entries(_VOLUMES_TABLE[:-1]))
    volume = volumes.best_volume(entry.decode(), there)
    if volume is None:
        await cluster.access.change(CLAIMS, key, entry.uid, lambda claim: volumes.select_node(claim, node))
    elif not volume["spec"].get("claimRef"):
        volumes.reserve(volume, entry.decode())
        await cluster.access.update(_VOLUMES, volume)
