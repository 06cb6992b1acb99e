"""Events about federated objects, recorded where users look: on the source object, or on the federated one if it has none."""

from typing import Any

from argosy.api import resources
from argosy.api.types import FederatedObject
from argosy.control.caches.views import FederatedView
from argosy.kube.events import EventRecorder
from argosy.kube.references import object_reference, reference_of

__all__ = ["ObjectRecorder", "itself", "regarding"]


class ObjectRecorder:
    def __init__(self, recorder: EventRecorder):
        self._recorder = recorder

    def event(self, federated: FederatedObject | FederatedView, kind: str, reason: str, message: str) -> None:
        self._recorder.event(regarding(federated), kind, reason, message)

    def on(self, reference: dict[str, Any], kind: str, reason: str, message: str) -> None:
        """Record an event on this object only."""
        self._recorder.event(reference, kind, reason, message)


def regarding(federated: FederatedObject | FederatedView) -> dict[str, Any]:
    """The object an event is about, as an object reference."""
    metadata = federated.metadata
    for owner in metadata.owner_references:
        if owner.controller:
            return object_reference(owner.api_version, owner.kind, owner.name, owner.uid, metadata.namespace)
    return itself(federated)


def itself(federated: FederatedObject | FederatedView) -> dict[str, Any]:
    """The federated object itself, not its owner."""
    return reference_of(resources.federated_objects(bool(federated.metadata.namespace)), federated.metadata)
