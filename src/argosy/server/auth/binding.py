"""The pods, secrets and nodes that service-account tokens are bound to: a token dies with its object."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from argosy.server import status
from argosy.server.entry import Entry
from argosy.server.registry import Object, Registry

__all__ = ["BoundObjects"]

#: Kind -> its plural; the kind in lower case is the name of the claim.
_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class BoundObjects:
    """Reads the store through `get`, by key."""

    def __init__(self, get: Callable[[str], Entry | None], registry: Registry):
        self._get = get
        self._registry = registry

    def claims(self, namespace: str, account: str, reference: Mapping[str, Any] | None) -> Object:
        """What a token says about the object it is to be bound to. Raises 400, 404 and 409 as kube-apiserver does."""
        if not reference:
            return {}
        version, kind, name = (reference.get(field) or "" for field in ("apiVersion", "kind", "name"))
        group, _, bare = version.rpartition("/")
        served = self._registry.find("", "v1", _KINDS.get(kind, "")) if not group else None
        if served is None:
            raise status.bad_request(f"cannot bind token to object of type {group}/{bare}, Kind={kind}")
        entry = self._entry(kind, namespace, name)
        if entry is None:
            raise status.not_found(served, name)
        if kind == "Pod" and entry.decode()["spec"].get("serviceAccountName") != account:
            text = (
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
            raise status.bad_request(text)
        uid = reference.get("uid")
        if uid and uid != entry.uid:
            text = f"the UID in the bound object reference ({uid}) does not match the UID in record."
            shown = msgspec.structs.replace(served, plural=kind)
            raise status.conflict(shown, name, f"{text} The object might have been deleted and then recreated")
        return {kind.lower(): {"name": name, "uid": entry.uid}}

    def live(self, namespace: str, claims: Mapping[str, Any]) -> bool:
        """Whether every object the claims name is still the one it was."""
        for kind in _KINDS:
            claim = claims.get(kind.lower())
            if claim is None:
                continue
            entry = self._entry(kind, namespace, claim["name"])
            if entry is None or entry.uid != claim["uid"]:
                return False
        return True

    def _entry(self, kind: str, namespace: str, name: str) -> Entry | None:
        place = "" if kind == "Node" else f"{namespace}/"
        return self._get(f"core/{_KINDS[kind]}/{place}{name}")
