"""ResourceQuotas: pods beyond a namespace's quota are refused, as by kube-apiserver.

As there, the limits are those in a quota's status, where a controller puts them: without one, nothing is enforced. Only pods are
counted, and quotas with scopes are not enforced.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.podresources import add, container_total, pod_requests
from argosy.kube.quantity import Quantity, parse_or_zero
from argosy.server import status
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["QUOTAS", "ResourceQuotas", "usage"]

PODS = "core/pods"
QUOTAS = "core/resourcequotas"
_FINISHED = ("Succeeded", "Failed")
_ONE = Quantity.from_value(1)

Amounts = dict[str, Quantity]


class ResourceQuotas(AdmissionPlugin):
    def __init__(self, store: Store):
        self._store = store
        #: Pods whose creation is under way, and what they use (by identity: a generated name may change again).
        self._under_way: dict[int, tuple[Object, Amounts]] = {}

    def start(self) -> None:
        """Call once the store is open."""
        self._store.follow(self._observe, PODS)

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        if call.kind.storage_key != PODS or old is not None or call.subresource:
            return
        limited = [(name, hard) for name, hard in self._limits(call.namespace) if hard]
        if not limited:
            return
        name, asked = new["metadata"]["name"], usage(new)
        self._under_way.pop(id(new), None)
        used = self._used(call.namespace)
        for quota, hard in limited:
            unset = sorted(resource for resource in hard if resource not in asked)
            if unset:
                why = f"failed quota: {quota}: must specify {','.join(unset)}"
                raise status.forbidden(call.kind, name, why)
            zero = Quantity.from_value(0)
            over = [each for each in sorted(hard) if asked[each] and used.get(each, zero) + asked[each] > hard[each]]
            if over:
                raise status.forbidden(call.kind, name, _exceeded(quota, over, asked, used, hard))
        self._under_way[id(new)] = (new, asked)

    def abandon(self, call: Call, new: Object, old: Object | None) -> None:
        self._under_way.pop(id(new), None)

    def _observe(self, event: StoreEvent) -> None:
        for each, (pod, _) in list(self._under_way.items()):
            if _key(pod) == event.entry.key:
                del self._under_way[each]

    def _limits(self, namespace: str) -> Iterable[tuple[str, Amounts]]:
        for entry in self._store.table(QUOTAS).under(f"{QUOTAS}/{namespace}/"):
            quota = entry.decode()
            spec = quota.get("spec") or {}
            if spec.get("scopes") or spec.get("scopeSelector"):
                continue
            hard = (quota.get("status") or {}).get("hard") or {}
            yield entry.name, {name: parse_or_zero(each) for name, each in hard.items() if _is_of_pods(name)}

    def _used(self, namespace: str) -> Amounts:
        used: Amounts = {}
        for entry in self._store.table(PODS).under(f"{PODS}/{namespace}/"):
            add(used, usage(entry.decode()))
        for pod, amounts in self._under_way.values():
            if pod["metadata"]["namespace"] == namespace:
                add(used, amounts)
        return used


def usage(pod: Mapping[str, Any]) -> Amounts:
    """What a pod counts for in a quota; nothing once it has ended."""
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return {}
    requests, limits = pod_requests(pod["spec"]), container_total(pod["spec"], "limits")
    found = {"pods": _ONE, "count/pods": _ONE}
    found |= {name: amount for name, amount in requests.items() if name in ("cpu", "memory", "ephemeral-storage")}
    found |= {f"requests.{name}": amount for name, amount in requests.items()}
    return found | {f"limits.{name}": amount for name, amount in limits.items()}


def _is_of_pods(resource: str) -> bool:
    plain = resource in ("pods", "count/pods", "cpu", "memory", "ephemeral-storage")
    storage = resource.endswith("requests.storage")
    return plain or (resource.startswith(("requests.", "limits.")) and not storage)


def _key(pod: Object) -> str:
    return f"{PODS}/{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _exceeded(quota: str, over: list[str], asked: Amounts, used: Amounts, hard: Amounts) -> str:
    def listed(amounts: Amounts) -> str:
        return ",".join(f"{name}={amounts.get(name, Quantity.from_value(0))}" for name in over)

    return f"exceeded quota: {quota}, requested: {listed(asked)}, used: {listed(used)}, limited: {listed(hard)}"
