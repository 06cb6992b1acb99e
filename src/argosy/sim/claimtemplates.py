"""The claims of a StatefulSet: made for each pod from its templates, and kept unless the set says otherwise."""

from collections.abc import Iterable

from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, ApiError, Conflict
from argosy.kube.events import EventRecorder
from argosy.kube.owners import owner_reference
from argosy.kube.references import reference_to
from argosy.sim.claims import CLAIMS, CLAIMS_TABLE
from argosy.sim.cluster import Cluster, Object
from argosy.sim.pods import Pod

__all__ = ["ClaimTemplates"]


class ClaimTemplates:
    def __init__(self, cluster: Cluster, client: Client, events: EventRecorder):
        self._cluster = cluster
        self._client = client
        self._events = events

    def mounted(self, owner: Object, ordinal: int, spec: Object) -> Object:
        """A pod's spec with its claims; a volume of the template with the name of one gives way."""
        templates = _templates(owner)
        if not templates:
            return spec
        claimed = {each["metadata"]["name"]: _name(owner, each, ordinal) for each in templates}
        made = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claimed.items()]
        return {**spec, "volumes": made + [each for each in spec.get("volumes") or () if each["name"] not in claimed]}

    async def ensure(self, owner: Object, ordinal: int) -> ApiError | None:
        """Make the claims of a pod that do not exist. Returns why that is impossible now."""
        for template in _templates(owner):
            name, namespace = _name(owner, template, ordinal), owner["metadata"]["namespace"]
            found = self._cluster.access.get(f"{CLAIMS_TABLE}{namespace}/{name}")
            if found is not None and found.deleting:
                return Conflict(409, "Conflict", f"pvc {name} is to be deleted", {})
            if found is not None:
                continue
            pod = f"{owner['metadata']['name']}-{ordinal}"
            story = f"Claim {name} Pod {pod} in StatefulSet {owner['metadata']['name']}"
            try:
                await self._client.create(CLAIMS, _claim(owner, template, name), namespace, into=bytes)
            except AlreadyExists:
                continue
            except ApiError as error:
                text = f"create {story} failed error: {error.message}"
                self._events.event(reference_to(owner), "Warning", "FailedCreate", text)
                return error
            self._events.event(reference_to(owner), "Normal", "SuccessfulCreate", f"create {story} success")
        return None

    async def hand_over(self, owner: Object, pods: Iterable[Pod]) -> None:
        """Before pods go because there are too many: their claims go with them, if the set says so."""
        if (owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") != "Delete":
            return
        for pod in pods:
            reference = {**pod.reference, "controller": True, "blockOwnerDeletion": True}
            reference.pop("namespace")
            await self._own(owner, int(pod.name.rpartition("-")[2]), reference)

    async def take_back(self, owner: Object, ordinal: int) -> None:
        """The claims of a pod that stays are the set's own, or nobody's."""
        await self._own(owner, ordinal, _set_reference(owner))

    async def _own(self, owner: Object, ordinal: int, reference: Object | None) -> None:
        namespace = owner["metadata"]["namespace"]
        wanted = [reference] if reference is not None else []

        def change(claim: Object) -> bool:
            metadata = claim["metadata"]
            others = [each for each in metadata.get("ownerReferences") or () if not each.get("controller")]
            if (metadata.get("ownerReferences") or []) == [*others, *wanted]:
                return False
            metadata["ownerReferences"] = [*others, *wanted]
            return True

        for template in _templates(owner):
            found = self._cluster.access.get(f"{CLAIMS_TABLE}{namespace}/{_name(owner, template, ordinal)}")
            if found is not None and found.owners != tuple(each["uid"] for each in wanted):
                await self._cluster.access.change(CLAIMS, found.key, found.uid, change)


def _templates(owner: Object) -> list[Object]:
    return owner["spec"].get("volumeClaimTemplates") or []


def _name(owner: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{owner['metadata']['name']}-{ordinal}"


def _claim(owner: Object, template: Object, name: str) -> Object:
    given = template["metadata"]
    labels = {**(given.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
    metadata: Object = {"name": name, "namespace": owner["metadata"]["namespace"], "labels": labels}
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    if (reference := _set_reference(owner)) is not None:
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}


def _set_reference(owner: Object) -> Object | None:
    """The set as owner of its claims, if they go with it."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenDeleted") != "Delete":
        return None
    return owner_reference(owner, controller=True, block_owner_deletion=True)
