"""Claims of StatefulSets: made by name, bound to volumes that somebody made, kept or deleted as the set says."""

from collections.abc import Callable
from typing import Any

from argosy.kube.resource import Resource
from tests.real.simulation.build import gone, ready, stateful_set, template
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import STATEFULSETS

_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)


def _with_claims(replicas: int, storage_class: str, **spec: Any) -> Any:
    pods = template()
    pods["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": "data", "labels": {"kind": "data"}, "annotations": {"kept": "yes"}}
    return stateful_set(replicas, template=pods, volumeClaimTemplates=[{"metadata": metadata, "spec": claim}], **spec)


async def _volumes(pair: Pair, count: int) -> None:
    """For the claims of a class that is only of this scenario."""
    metadata: Any = {"name": pair.namespace}
    given = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    for side in pair.sides:
        body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, **given}
        await side.world.client.create(_CLASSES, body)
    for number in range(count):
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": pair.namespace,
            "hostPath": {"path": "/nowhere"},
        }
        metadata = {"name": f"{pair.namespace}-{number}"}
        for side in pair.sides:
            body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
            await side.world.client.create(_VOLUMES, body)


def _claims(*phases: str) -> Callable[[Side], bool]:
    def holds(side: Side) -> bool:
        found = sorted(side.all("PersistentVolumeClaim"), key=lambda one: one["metadata"]["name"])
        return [(one.get("status") or {}).get("phase") for one in found] == [*phases]

    return holds


async def claims_kept(pair: Pair) -> None:
    await _volumes(pair, 2)
    await pair.create(STATEFULSETS, _with_claims(2, pair.namespace))
    await pair.agree("started", lambda side: ready("StatefulSet", 2)(side) and _claims("Bound", "Bound")(side))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    await pair.agree("fewer", lambda side: ready("StatefulSet", 1)(side) and _claims("Bound", "Bound")(side))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 2}})
    await pair.agree("more", ready("StatefulSet", 2))
    await pair.delete(STATEFULSETS, "web")
    await pair.agree("deleted", lambda side: not side.all("Pod") and gone("StatefulSet")(side))


async def claims_deleted(pair: Pair) -> None:
    await _volumes(pair, 2)
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await pair.create(STATEFULSETS, _with_claims(2, pair.namespace, persistentVolumeClaimRetentionPolicy=policy))
    await pair.agree("started", lambda side: ready("StatefulSet", 2)(side) and _claims("Bound", "Bound")(side))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    await pair.agree("fewer", lambda side: ready("StatefulSet", 1)(side) and _claims("Bound")(side))
    await pair.delete(STATEFULSETS, "web")
    await pair.agree("deleted", lambda side: not side.all("Pod") and _claims()(side))


async def claims_nobody_serves(pair: Pair) -> None:
    await pair.create(STATEFULSETS, _with_claims(2, "nowhere"))
    await pair.agree("the first pod waits", lambda side: len(side.all("Pod")) == 1 and _claims("Pending")(side))


SCENARIOS = (claims_kept, claims_deleted, claims_nobody_serves)
