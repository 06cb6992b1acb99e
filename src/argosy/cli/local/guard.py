"""The guard on Argosy's own API server: the rule that an admission policy states on others (`api.admission.guard`), asked of
every write.

Where no federation was installed nobody runs controllers, and there is no object to guard.
"""

from argosy.api import keys
from argosy.api.admission import guard, protection
from argosy.cli.local.bound import BoundControllers
from argosy.kube.objects import decode
from argosy.plan.metadata import annotations_of
from argosy.server import status
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.auth.identity import Attributes, Authorizer
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.store import Store

__all__ = ["Guard"]


class Guard(AdmissionPlugin):
    def __init__(self, store: Store, authorizer: Authorizer):
        self._controllers = BoundControllers(store)
        self._authorizer = authorizer

    def create(self, call: Call, obj: Object) -> None:
        self._check(call, obj["metadata"].get("name") or "", obj, None)

    def update(self, call: Call, new: Object, old: Object) -> None:
        self._check(call, call.name, new, old)

    def delete(self, call: Call, entry: Entry) -> None:
        self._protect(call, entry)
        self._check(call, entry.name, None, None)

    def _protect(self, call: Call, entry: Entry) -> None:
        kind = call.kind
        if call.subresource or not protection.is_protected(kind.group, kind.plural, entry.name):
            return
        if why := protection.refusal(annotations_of(decode(entry.value, dict))):
            told = (
                f"ValidatingAdmissionPolicy '{protection.NAME}' with binding '{protection.NAME}' denied request: {why}"
            )
            raise status.forbidden(kind, entry.name, told)

    def _check(self, call: Call, name: str, new: Object | None, old: Object | None) -> None:
        kind, user = call.kind, call.user
        if not guard.is_guarded(kind.group, kind.plural, call.subresource):
            return
        write = guard.Write(user.name, user.groups, kind.plural, call.subresource, new, old)
        placing = Attributes(
            user, "update", keys.GROUP, kind.version, kind.plural, guard.PLACEMENTS, call.namespace, name
        )
        why = guard.refusal(write, self._controllers.subjects(), lambda: self._authorizer.authorize(placing).allowed)
        if why:
            told = f"ValidatingAdmissionPolicy '{guard.NAME}' with binding '{guard.NAME}' denied request: {why}"
            raise status.forbidden(kind, name, told)
