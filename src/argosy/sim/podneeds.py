"""What a pod needs before its containers can start: the ConfigMaps and Secrets of its volumes and environments, and its account.

Optional ones are not waited for. Claims are the scheduler's matter: it places no pod before they have volumes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from argosy.kube.errors import Forbidden
from argosy.kube.podreferences import Reference, container_references, volume_references

__all__ = ["CONFIG", "Need", "account_refusal", "needs_of"]

Object = dict[str, Any]

#: Tables of the store.
_TABLES = {"ConfigMap": "core/configmaps", "Secret": "core/secrets"}
CONFIG = tuple(f"{table}/" for table in _TABLES.values())


class Need(NamedTuple):
    """One of `volume` and `container` is set."""

    kind: str
    name: str
    volume: str = ""
    container: str = ""

    def key(self, namespace: str) -> str:
        """In the store."""
        return f"{_TABLES[self.kind]}/{namespace}/{self.name}"

    @property
    def text(self) -> str:
        """What a kubelet says when it is not there."""
        return f'{self.kind.lower()} "{self.name}" not found'


def needs_of(spec: Object) -> tuple[Need, ...]:
    return tuple(_needs(spec))


def _needs(spec: Object) -> Iterator[Need]:
    for volume in spec.get("volumes") or ():
        for each in _required(volume_references(volume)):
            yield Need(each.kind, each.name, volume=volume.get("name", ""))
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            for each in _required(container_references(container)):
                yield Need(each.kind, each.name, container=container.get("name", ""))


def _required(references: Iterator[Reference]) -> Iterator[Reference]:
    return (each for each in references if each.kind in _TABLES and not each.optional)


def account_refusal(pod: Object, exists: Callable[[str], Any]) -> Forbidden | None:
    """Admission refuses a pod whose service account does not exist; `exists` looks a key up in the store.

    Each namespace gets the account `default` of its own, but perhaps a moment later.
    """
    metadata, name = pod["metadata"], pod["spec"].get("serviceAccountName") or "default"
    namespace = metadata["namespace"]
    if name == "default" or exists(f"core/serviceaccounts/{namespace}/{name}"):
        return None
    named = metadata.get("name") or metadata.get("generateName", "")
    message = (
        f'pods "{named}" is forbidden: error looking up service account {namespace}/{name}:'
        f' serviceaccount "{name}" not found'
    )
    return Forbidden(403, "Forbidden", message, {})
