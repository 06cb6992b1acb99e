"""The Deployment controller: one ReplicaSet per revision, rolled over within the bounds of the strategy.

Every reconcile looks at the whole Deployment, takes at most one step (scale, roll up, roll down) and writes the status if it
changed; the changes of that step wake it again. Arithmetic is in `rollout`, conditions in `deploystatus`.
"""

import msgspec

from argosy.kube import clock, timestamps
from argosy.kube.client import Client, Patch
from argosy.kube.conditions import find
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.events import EventRecorder
from argosy.kube.owners import is_controlled_by, owner_reference
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.server.trusted import StoreEvent
from argosy.sim import deploystatus, revisions, rollout
from argosy.sim.cluster import Cluster, Object
from argosy.sim.controller import Controller
from argosy.sim.podcontrol import parse_selector
from argosy.sim.pods import TERMINAL
from argosy.sim.replicasets import REPLICASETS
from argosy.sim.replicasets import TABLE as SETS

__all__ = ["DEPLOYMENTS", "Deployments"]

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
TABLE = "apps/deployments/"


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    generation: int = 0
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


_head = msgspec.json.Decoder(_Head).decode


def _wish(value: bytes) -> tuple[int, dict[str, str]]:
    """What a user may have changed: the generation, and annotations except the controller's own."""
    metadata = _head(value).metadata
    annotations = dict(metadata.annotations or {})
    annotations.pop(revisions.REVISION, None)
    return metadata.generation, annotations


class Deployments(Controller):
    name = "deployments"
    workers = 32

    def __init__(self, cluster: Cluster):
        super().__init__(cluster)
        self._client = cluster.client("deployment-controller")
        self._events = cluster.recorder("deployment-controller")
        #: ReplicaSets without a controller, which a Deployment may adopt.
        self._orphans: set[str] = set()

    def observe(self, event: StoreEvent) -> None:
        entry, before = event.entry, event.previous
        if entry.key.startswith(TABLE) and not event.deleted:
            # Its own status writes need no reconcile.
            if before is None or before.deleting != entry.deleting or _wish(before.value) != _wish(entry.value):
                self.queue.add(entry.key)
        elif entry.key.startswith(SETS):
            owners = _head(entry.value).metadata.owner_references or ()
            owner = next((one for one in owners if one.controller), None)
            self._orphans.discard(entry.key)
            settle = self.cluster.timings.settle
            if owner is not None and owner.kind == "Deployment":
                if before is None and not event.deleted:
                    return  # its creator knows
                self.queue.add(f"{TABLE}{entry.namespace}/{owner.name}", after=settle)
            elif owner is None and not event.deleted:
                self._orphans.add(entry.key)
                for deployment in self.cluster.access.entries(TABLE[:-1], entry.namespace):
                    self.queue.add(deployment.key, after=settle)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        if entry is None:
            return None
        deployment = entry.decode()
        if not entry.deleting and self._orphans:
            await self._adopt(deployment)
        sync = _Sync(self.cluster, self._client, self._events, deployment)
        return await sync.run()

    async def _adopt(self, deployment: Object) -> None:
        """Adopt the ReplicaSets without a controller that the selector matches."""
        selector = parse_selector(deployment["spec"])
        if selector is None:
            return
        namespace = deployment["metadata"]["namespace"]
        for key in [one for one in self._orphans if one.startswith(f"{SETS}{namespace}/")]:
            entry = self.cluster.access.get(key)
            if entry is not None and not entry.deleting and selector.matches(entry.labels):
                mine = owner_reference(deployment, controller=True, block_owner_deletion=True)
                body = {
                    "metadata": {"ownerReferences": [mine], "uid": entry.uid, "resourceVersion": str(entry.version)}
                }
                await self._client.patch(REPLICASETS, entry.name, body, namespace, kind=Patch.MERGE, into=bytes)


class _Sync:
    """One reconcile of one Deployment."""

    def __init__(self, cluster: Cluster, client: Client, events: EventRecorder, deployment: Object):
        self.cluster = cluster
        self.client = client
        self.events = events
        self.deployment = deployment
        self.spec: Object = deployment["spec"]
        self.wanted: int = self.spec["replicas"]
        self.bounds = rollout.bounds(self.spec["strategy"], self.wanted)
        self.now = timestamps.now()
        self.before: Object = dict(deployment.get("status") or {})
        self.annotations: dict[str, str] = dict(deployment["metadata"].get("annotations") or {})
        self.sets: list[Object] = []
        self.new: Object | None = None
        self._load()

    def _load(self) -> None:
        uid = self.deployment["metadata"]["uid"]
        entries = [one for one in self.cluster.access.dependents(uid) if one.key.startswith(SETS)]
        found = [entry.decode() for entry in entries]
        self.sets = [one for one in found if is_controlled_by(one, uid)]
        self.new = revisions.current_of(self.deployment, self.sets)

    @property
    def old(self) -> list[Object]:
        return [one for one in self.sets if one is not self.new]

    @property
    def max_replicas(self) -> int:
        return self.wanted + self.bounds.surge

    async def run(self) -> Result | None:
        if "deletionTimestamp" in self.deployment["metadata"]:
            return await self._report(progress=False)
        deploystatus.paused_or_resumed(self.deployment, self.now)
        if self.spec.get("paused") or self._was_scaled():
            await self._align_new()
            await self._scale()
            if self.spec.get("paused"):
                await self._clean_up()
            return await self._report(progress=False)
        if self.spec["strategy"]["type"] == "Recreate":
            await self._recreate()
        else:
            await self._roll()
        return await self._report(progress=True)

    def _was_scaled(self) -> bool:
        """Whether some active ReplicaSet was sized for another number of replicas."""
        for one in self.sets:
            desired = (one["metadata"].get("annotations") or {}).get(revisions.DESIRED)
            if one["spec"]["replicas"] > 0 and desired is not None and desired != str(self.wanted):
                return True
        return False

    async def _scale(self) -> None:
        active = [one for one in self.sets if one["spec"]["replicas"] > 0]
        if len(active) <= 1:
            # The only active one, else the current one, else the newest.
            latest = max(self.sets, key=lambda one: one["metadata"]["creationTimestamp"], default=None)
            target = active[0] if active else self.new or latest
            if target is not None:
                await self._resize(target, self.wanted)
            return
        if self.new is not None and self._saturated(self.new):
            for one in self.old:
                await self._resize(one, 0)
        elif self.spec["strategy"]["type"] == "RollingUpdate":
            current = self.before.get("replicas") or 0
            numbers = [self._numbers(one) for one in active]
            sizes = rollout.proportional(self.wanted, self.bounds, current, numbers)
            by_name = {one["metadata"]["name"]: one for one in active}
            for name, size in sizes.items():
                await self._resize(by_name[name], size, annotate=True)

    def _saturated(self, one: Object) -> bool:
        available = (one.get("status") or {}).get("availableReplicas") or 0
        desired = (one["metadata"].get("annotations") or {}).get(revisions.DESIRED)
        return one["spec"]["replicas"] == self.wanted == available and desired == str(self.wanted)

    async def _roll(self) -> None:
        new = await self._current()
        if new is None:
            return
        numbers, old = self._numbers(new), [self._numbers(one) for one in self.old]
        grown = rollout.grown_new(self.wanted, self.bounds, numbers, old)
        if grown != numbers.replicas:
            await self._resize(new, grown)
            return
        shrunk = rollout.shrunk_old(self.wanted, self.bounds, numbers, old)
        for one in self.old:
            if one["metadata"]["name"] in shrunk:
                await self._resize(one, shrunk[one["metadata"]["name"]])
        if not shrunk and deploystatus.complete(self.deployment, self.before):
            await self._clean_up()

    async def _recreate(self) -> None:
        active = [one for one in self.old if one["spec"]["replicas"] > 0]
        if active:
            for one in active:
                await self._resize(one, 0)
            return
        for one in self.old:
            # Those that are being deleted still run.
            if any(pod.phase not in TERMINAL for pod in self.cluster.pods.of_owner(one["metadata"]["uid"])):
                return
        new = await self._current()
        if new is not None:
            await self._resize(new, self.wanted)
            if deploystatus.complete(self.deployment, self.before):
                await self._clean_up()

    async def _current(self) -> Object | None:
        """The ReplicaSet of the current template, made if there is none; None when its name is taken by another."""
        if self.new is not None:
            await self._align_new()
            return self.new
        status: Object = self.deployment.setdefault("status", {})
        revision = revisions.next_revision(self.sets)
        empty = rollout.Revision("", 0)
        recreates = self.spec["strategy"]["type"] == "Recreate"
        old = [self._numbers(one) for one in self.old]
        size = self.wanted if recreates else rollout.grown_new(self.wanted, self.bounds, empty, old)
        manifest = revisions.replica_set_for(self.deployment, size, self.max_replicas, revision)
        name = manifest["metadata"]["name"]
        try:
            made = await self.client.create(REPLICASETS, manifest)
        except AlreadyExists:
            self._load()
            if self.new is None:
                status["collisionCount"] = (status.get("collisionCount") or 0) + 1
            return self.new
        self.new = made
        self.sets.append(made)
        self.annotations[revisions.REVISION] = str(revision)
        if size:
            self._scaled_event(name, 0, size)
        if deploystatus.has_deadline(self.deployment):
            text = f'Created new replica set "{name}"'
            deploystatus.put(status, "Progressing", "True", "NewReplicaSetCreated", text, self.now)
        return self.new

    async def _align_new(self) -> None:
        """Annotations, revision and minReadySeconds of the current ReplicaSet follow the Deployment."""
        new = self.new
        if new is None:
            return
        found = new["metadata"].get("annotations") or {}
        wanted = revisions.annotations_for(self.deployment, found, revisions.next_revision(self.old))
        min_ready = self.spec.get("minReadySeconds") or 0
        if wanted != found or (new["spec"].get("minReadySeconds") or 0) != min_ready:
            new["metadata"]["annotations"] = wanted
            new["spec"].pop("minReadySeconds", None)
            if min_ready:
                new["spec"]["minReadySeconds"] = min_ready
            await self._save(new)
        assert self.new is not None
        self.annotations[revisions.REVISION] = self.new["metadata"]["annotations"][revisions.REVISION]
        status: Object = self.deployment.setdefault("status", {})
        if deploystatus.has_deadline(self.deployment) and find(status.get("conditions"), "Progressing") is None:
            text = f'Found new replica set "{new["metadata"]["name"]}"'
            deploystatus.put(status, "Progressing", "True", "FoundNewReplicaSet", text, self.now)

    async def _resize(self, one: Object, size: int, *, annotate: bool = False) -> None:
        before = one["spec"]["replicas"]
        annotations = one["metadata"].get("annotations") or {}
        marks = {revisions.DESIRED: str(self.wanted), revisions.MAX_REPLICAS: str(self.max_replicas)}
        marked = all(annotations.get(key) == value for key, value in marks.items())
        if before == size and (marked or not annotate):
            return
        one["spec"]["replicas"] = size
        one["metadata"]["annotations"] = {**annotations, **marks}
        await self._save(one)
        if before != size:
            self._scaled_event(one["metadata"]["name"], before, size)

    async def _save(self, one: Object) -> None:
        """Write a ReplicaSet and continue with the stored one; a conflict ends this reconcile."""
        stored = await self.client.update(REPLICASETS, one)
        one.clear()
        one.update(stored)

    def _beyond_limit(self) -> list[Object]:
        """The oldest revisions that need not be kept."""
        limit = self.spec.get("revisionHistoryLimit")
        if limit is None:
            return []
        done = [one for one in self.old if "deletionTimestamp" not in one["metadata"]]
        done.sort(key=lambda one: (revisions.revision_of(one), one["metadata"]["creationTimestamp"]))
        return done[: max(0, len(done) - limit)]

    async def _clean_up(self) -> None:
        for one in self._beyond_limit():
            status, metadata = one.get("status") or {}, one["metadata"]
            if one["spec"]["replicas"] or status.get("replicas"):
                continue
            if metadata["generation"] > status.get("observedGeneration", 0):
                continue
            try:
                await self.client.delete(REPLICASETS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
            except NotFound:
                continue
            self.sets.remove(one)

    async def _report(self, *, progress: bool) -> Result | None:
        """Write status and revision if they changed, in one write; requeue at the deadline."""
        metadata = self.deployment["metadata"]
        status = deploystatus.counted(self.deployment, self.sets, self.new, self.bounds.unavailable, self.now)
        speed = self.cluster.timings.speed
        if progress:
            # Progress is relative to what was last written, not to this reconcile's own changes.
            seen = {**self.deployment, "status": {**self.before, "conditions": status["conditions"]}}
            failures = self._failures()
            deploystatus.progressed(seen, status, self.new, failures, self.now, speed)
        if status != self.before or self.annotations != (metadata.get("annotations") or {}):
            self.deployment["status"] = status
            if self.annotations:
                metadata["annotations"] = self.annotations
            await self.cluster.access.update(DEPLOYMENTS, self.deployment)
            if self._beyond_limit() and deploystatus.complete(self.deployment, status):
                return Result(requeue_after=self.cluster.timings.settle)  # no event may come that lets it clean up
        left = deploystatus.seconds_to_deadline(self.deployment, status, clock.time(), speed)
        if self.spec.get("paused") or abs(left) == float("inf"):
            return None
        # A second more, as the times in conditions are whole seconds.
        return Result(requeue_after=max(left, 0.0) + 1.0)

    def _failures(self) -> list[Object]:
        ordered = [self.new, *self.old] if self.new else self.old
        found = [find((one.get("status") or {}).get("conditions"), "ReplicaFailure") for one in ordered if one]
        return [one for one in found if one is not None]

    def _numbers(self, one: Object) -> rollout.Revision:
        metadata, status = one["metadata"], one.get("status") or {}
        ready = sum(pod.active and pod.ready for pod in self.cluster.pods.of_owner(metadata["uid"]))
        before = (metadata.get("annotations") or {}).get(revisions.MAX_REPLICAS, "")
        return rollout.Revision(
            name=metadata["name"],
            replicas=one["spec"]["replicas"],
            # The status may lag behind a pod that is no longer ready.
            available=min(status.get("availableReplicas") or 0, ready),
            created=metadata["creationTimestamp"],
            max_before=int(before) if before.isascii() and before.isdigit() else None,
        )

    def _scaled_event(self, name: str, before: int, size: int) -> None:
        direction = "up" if size > before else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {size}"
        self.events.event(reference_to(self.deployment), "Normal", "ScalingReplicaSet", text)
