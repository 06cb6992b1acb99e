"""RuntimeClasses: what a pod takes from its class, and refusal of pods whose class does not exist."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.server import status
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.fielderrors import FieldError
from argosy.server.http.request import Call
from argosy.server.kinds.shared.meta_rules import same
from argosy.server.registry import Object
from argosy.server.watchcache.store import Store

__all__ = ["RuntimeClasses", "merged_tolerations"]

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_OWN_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"

Toleration = Mapping[str, Any]


class RuntimeClasses(AdmissionPlugin):
    """A new pod gets the overhead, node selector and tolerations of its class; it cannot bring an overhead of its own."""

    def __init__(self, store: Store):
        self._store = store

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[FieldError]:
        if call.kind.storage_key != "core/pods" or old is not None:
            return []
        try:
            _take_over(new["spec"], self._class_of(new["spec"]))
        except _Rejected as rejected:
            raise status.forbidden(call.kind, new["metadata"]["name"], str(rejected)) from None
        return []

    def _class_of(self, spec: Object) -> Object:
        name = spec.get("runtimeClassName")
        if name is None:
            return {}
        found = self._store.get(f"node.k8s.io/runtimeclasses/{name}")
        if found is None:
            raise _Rejected(f'pod rejected: RuntimeClass "{name}" not found')
        return found.decode()


class _Rejected(Exception):
    pass


def _take_over(spec: Object, runtime_class: Object) -> None:
    overhead = (runtime_class.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") and not same(spec["overhead"], overhead):
            raise _Rejected(_OTHER_OVERHEAD)
        spec["overhead"] = overhead
    elif spec.get("overhead"):
        raise _Rejected(_OWN_OVERHEAD)
    scheduling = runtime_class.get("scheduling") or {}
    wanted, selector = scheduling.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        if selector.get(key, value) != value:
            shown = (
                f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise _Rejected(f"conflict: {shown}")
    if wanted:
        spec["nodeSelector"] = {**selector, **wanted}
    if scheduling.get("tolerations"):
        spec["tolerations"] = merged_tolerations([*(spec.get("tolerations") or ()), *scheduling["tolerations"]])


def merged_tolerations(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Without tolerations that others cover; of equal ones the first stays."""
    kept: list[Toleration] = []
    for i, toleration in enumerate(tolerations):
        later = (other for other in tolerations[i + 1 :] if other != toleration)
        if not any(_covers(other, toleration) for other in (*kept, *later)):
            kept.append(toleration)
    return kept


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether `wide` tolerates whatever `narrow` tolerates, and at least as long."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if wide.get("key") != narrow.get("key") and not (exists and not wide.get("key")):
        return False
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if exists:
        return True
    return (
        wide.get("operator") in (None, "", "Equal")
        and narrow.get("operator") == "Equal"
        and (narrow.get("value") or "") == (wide.get("value") or "")
    )
