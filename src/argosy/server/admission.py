"""Admission: what may look at, change or refuse a write after it was authorised and before it is validated.

Each plugin is a small class with the hooks it needs; they run in the order they were given. Pure apart from reading the store.
"""

from collections.abc import Callable, Sequence

from argosy.server import status
from argosy.server.entry import Entry
from argosy.server.registry import Object
from argosy.server.request import Call

__all__ = ["Admission", "AdmissionPlugin", "NamespaceGuard"]

IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class AdmissionPlugin:
    """Hooks raise the error to answer; `create` and `update` may change the object, which belongs to the request."""

    def create(self, call: Call, obj: Object) -> None: ...

    def update(self, call: Call, new: Object, old: Object) -> None: ...

    def delete(self, call: Call, entry: Entry) -> None: ...

    def abandon(self, call: Call, obj: Object) -> None:
        """The create or update that was admitted did not happen: give back what was taken for it."""


class Admission:
    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()):
        self.plugins = list(plugins)

    def create(self, call: Call, obj: Object) -> None:
        for plugin in self.plugins:
            plugin.create(call, obj)

    def update(self, call: Call, new: Object, old: Object) -> None:
        for plugin in self.plugins:
            plugin.update(call, new, old)

    def delete(self, call: Call, entry: Entry) -> None:
        for plugin in self.plugins:
            plugin.delete(call, entry)

    def abandon(self, call: Call, obj: Object) -> None:
        for plugin in self.plugins:
            plugin.abandon(call, obj)


class NamespaceGuard(AdmissionPlugin):
    """Nothing is created in a namespace that is absent or on its way out; the base namespaces are not deleted."""

    def __init__(self, get: Callable[[str], Entry | None]):
        self._get = get

    def create(self, call: Call, obj: Object) -> None:
        if not call.kind.namespaced or not call.namespace:
            return
        namespace = self._get(f"core/namespaces/{call.namespace}")
        if namespace is None:
            raise status.namespace_not_found(call.namespace)
        if not namespace.deleting:
            return
        # Access reviews store nothing and are answered to the end.
        if call.kind.group == "authorization.k8s.io":
            return
        raise status.forbidden(
            call.kind,
            obj["metadata"].get("name", ""),
            f"unable to create new content in namespace {call.namespace} because it is being terminated",
            [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {call.namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        )

    def delete(self, call: Call, entry: Entry) -> None:
        if call.kind.storage_key == "core/namespaces" and entry.name in IMMORTAL_NAMESPACES:
            raise status.forbidden(call.kind, entry.name, "this namespace may not be deleted")
