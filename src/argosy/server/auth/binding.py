"""Bound service-account tokens: bound to the account, and perhaps to a pod, secret or node. A token expires with its
objects."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from argosy.kube import clock
from argosy.server import status
from argosy.server.registry import Object, Registry
from argosy.server.watchcache.entry import Entry

__all__ = ["BoundObjects"]

#: Kind -> its plural; the kind in lower case is the name of the claim.
_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
#: An object that is being deleted keeps its tokens so many seconds longer.
_LEEWAY = 60.0


class BoundObjects:
    """Reads the store through `get`, by key."""

    def __init__(self, get: Callable[[str], Entry | None], registry: Registry, clock: Callable[[], float] = clock.time):
        self._get = get
        self._registry = registry
        self._clock = clock

    def claims(self, namespace: str, account: str, reference: Mapping[str, Any] | None) -> Object:
        """The claims about the object a token should be bound to. Raises 400, 404 and 409 as kube-apiserver does."""
        if reference is None:
            return {}
        version, kind, name = (reference.get(field) or "" for field in ("apiVersion", "kind", "name"))
        group, _, bare = version.rpartition("/")
        served = self._registry.find("", "v1", _KINDS.get(kind, "")) if not group else None
        if served is None:
            raise status.bad_request(f"cannot bind token to object of type {group}/{bare}, Kind={kind}")
        if not name:
            raise status.bad_request("Name parameter required.")
        entry = self._entry(kind, namespace, name)
        if entry is None:
            raise status.not_found(served, name)
        claims: Object = {kind.lower(): {"name": name, "uid": entry.uid}}
        if kind == "Pod":
            spec = entry.decode()["spec"]
            if spec.get("serviceAccountName") != account:
                text = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
                raise status.bad_request(text)
            if node := spec.get("nodeName"):
                found = self._entry("Node", "", node)
                claims["node"] = {"name": node} | ({"uid": found.uid} if found is not None else {})
        uid = reference.get("uid")
        if uid and uid != entry.uid:
            text = f"the UID in the bound object reference ({uid}) does not match the UID in record."
            shown = msgspec.structs.replace(served, plural=kind)
            raise status.conflict(shown, name, f"{text} The object might have been deleted and then recreated")
        return claims

    def refusal(self, claims: Mapping[str, Any]) -> str:
        """Why a token with these claims is no longer valid, or nothing: each named object must still be the same."""
        namespace, account = claims["namespace"], claims["serviceaccount"]
        name, uid = account["name"], account["uid"]
        entry = self._get(f"core/serviceaccounts/{namespace}/{name}")
        if entry is None:
            return f'serviceaccounts "{name}" not found'
        if entry.uid != uid:
            return f"service account UID ({entry.uid}) does not match claim ({uid})"
        if self._deleted(entry):
            return f"service account {namespace}/{name} has been deleted"
        # The node of a pod is informational: the token is bound to the pod.
        kinds = ("Secret", "Pod") if "pod" in claims else ("Secret", "Node")
        for kind in kinds:
            claim = claims.get(kind.lower())
            if claim is None:
                continue
            entry = self._entry(kind, namespace, claim["name"])
            if entry is None or entry.uid != claim["uid"] or self._deleted(entry):
                return "service account token has been invalidated"
        return ""

    def _deleted(self, entry: Entry) -> bool:
        """Whether the object should have been gone for a while."""
        if not entry.deleting:
            return False
        until = datetime.datetime.fromisoformat(entry.decode()["metadata"]["deletionTimestamp"])
        return until.timestamp() < self._clock() - _LEEWAY

    def _entry(self, kind: str, namespace: str, name: str) -> Entry | None:
        place = "" if kind == "Node" else f"{namespace}/"
        return self._get(f"core/{_KINDS[kind]}/{place}{name}")
