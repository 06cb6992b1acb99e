"""Admission: plugins that check, change or refuse a write after it was authorised and before it is validated.

Each plugin is a small class with the hooks it needs; they run in the order they were given. Pure apart from reading the store.
"""

from collections.abc import Callable, Sequence

from argosy.server import status
from argosy.server.auth.identity import Authorizer
from argosy.server.fielderrors import FieldError
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.store import Store

__all__ = ["Admission", "AdmissionPlugin", "MakePlugin", "NamespaceGuard"]

IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class AdmissionPlugin:
    """Hooks raise the error to return; the objects they get belong to the request and may be changed."""

    def create(self, call: Call, obj: Object) -> None:
        """Before anything was prepared; a generated name is not set yet.

        For a large object called again right before the commit, since others write while it is processed.
        """

    def authorize_update(self, call: Call, new: Object, old: Object) -> None:
        """Called for an update of the object itself, as sent and defaulted, before its version is compared."""

    def update(self, call: Call, new: Object, old: Object) -> None:
        """Called for an update of the object, or through a subresource, after its fields were prepared."""

    def delete(self, call: Call, entry: Entry) -> None:
        """Called before anything was marked or removed."""

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[FieldError]:
        """Called for a create (`old` is None) or update with prepared fields, right before it is validated.

        If it returns errors, only those are reported.
        """
        return []

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        """Called for a valid create or update, right before the commit; for a large one perhaps twice.

        Replaces fields at the top level of `new` and changes nothing inside them: they may be encoded already.
        """

    def abandon(self, call: Call, new: Object, old: Object | None) -> None:
        """The create or update did not happen: release what was taken for it."""


#: Makes an external plugin from the store it reads and the authorizer it may ask.
MakePlugin = Callable[[Store, Authorizer], AdmissionPlugin]


class Admission:
    def __init__(self, plugins: Sequence[AdmissionPlugin]):
        self.plugins = tuple(plugins)

    def create(self, call: Call, obj: Object) -> None:
        for plugin in self.plugins:
            plugin.create(call, obj)

    def authorize_update(self, call: Call, new: Object, old: Object) -> None:
        for plugin in self.plugins:
            plugin.authorize_update(call, new, old)

    def update(self, call: Call, new: Object, old: Object) -> None:
        for plugin in self.plugins:
            plugin.update(call, new, old)

    def delete(self, call: Call, entry: Entry) -> None:
        for plugin in self.plugins:
            plugin.delete(call, entry)

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[FieldError]:
        return [error for plugin in self.plugins for error in plugin.prepare(call, new, old)]

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        for plugin in self.plugins:
            plugin.settle(call, new, old)

    def abandon(self, call: Call, new: Object, old: Object | None) -> None:
        for plugin in self.plugins:
            plugin.abandon(call, new, old)


class NamespaceGuard(AdmissionPlugin):
    """Nothing is created in a namespace that is absent or terminating; the base namespaces cannot be deleted."""

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
