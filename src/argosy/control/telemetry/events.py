"""Events about federated objects, recorded where users look: on the source object, or on the federated one if it has none."""

from typing import Any

from argosy.api import keys, resources
from argosy.api.types import FederatedObject
from argosy.control.caches.views import FederatedView
from argosy.kube.events import EventRecorder

__all__ = ["ObjectRecorder", "itself", "reference_of", "regarding"]


class ObjectRecorder:
    def __init__(self, recorder: EventRecorder):
        self._recorder = recorder

    def event(self, federated: FederatedObject | FederatedView, kind: str, reason: str, message: str) -> None:
        self._recorder.event(regarding(federated), kind, reason, message)

    def on(self, reference: dict[str, Any], kind: str, reason: str, message: str) -> None:
        """An event on this object and no other."""
        self._recorder.event(reference, kind, reason, message)


def regarding(federated: FederatedObject | FederatedView) -> dict[str, Any]:
    """The object an event is about, as an object reference."""
    metadata = federated.metadata
    for owner in metadata.owner_references:
        if owner.controller:
            reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
            return {**reference, "namespace": metadata.namespace} if metadata.namespace else reference
    return itself(federated)


def itself(federated: FederatedObject | FederatedView) -> dict[str, Any]:
    """The federated object, whoever owns it."""
    metadata = federated.metadata
    kind = resources.federated_objects(bool(metadata.namespace)).kind
    reference = {"apiVersion": keys.API_VERSION, "kind": kind, "name": metadata.name, "uid": metadata.uid}
    return {**reference, "namespace": metadata.namespace} if metadata.namespace else reference


def reference_of(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as an object reference."""
    metadata = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
    return reference | {field: metadata[field] for field in ("uid", "namespace") if metadata.get(field)}
