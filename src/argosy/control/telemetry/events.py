"""Events about federated objects, recorded where users look for them: on the federated object, and on its source."""

from typing import Any

from argosy.api import resources
from argosy.api.types import FederatedObject
from argosy.control.caches.views import FederatedView
from argosy.kube.events import EventRecorder
from argosy.kube.references import object_reference, reference_of

__all__ = ["ObjectRecorder", "itself", "source_of"]


class ObjectRecorder:
    def __init__(self, recorder: EventRecorder):
        self._recorder = recorder

    def event(self, federated: FederatedObject | FederatedView, kind: str, reason: str, message: str) -> None:
        """Record an event on both, as KubeAdmiral does."""
        source = source_of(federated)
        if source is not None:
            self._recorder.event(source, kind, reason, message)
        self._recorder.event(itself(federated), kind, reason, message)

    def for_user(self, federated: FederatedObject | FederatedView, kind: str, reason: str, message: str) -> None:
        """Record an event on the source only, or on the federated object if it has none: for what may be said of many at once."""
        self._recorder.event(source_of(federated) or itself(federated), kind, reason, message)

    def on(self, reference: dict[str, Any], kind: str, reason: str, message: str) -> None:
        """Record an event on this object only."""
        self._recorder.event(reference, kind, reason, message)


def source_of(federated: FederatedObject | FederatedView) -> dict[str, Any] | None:
    """Its source, as an object reference; None if it has none."""
    metadata = federated.metadata
    for owner in metadata.owner_references:
        if owner.controller:
            return object_reference(owner.api_version, owner.kind, owner.name, owner.uid, metadata.namespace)
    return None


def itself(federated: FederatedObject | FederatedView) -> dict[str, Any]:
    """The federated object itself, not its owner."""
    return reference_of(resources.federated_objects(bool(federated.metadata.namespace)), federated.metadata)
