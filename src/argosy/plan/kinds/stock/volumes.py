"""PersistentVolume and PersistentVolumeClaim: each cluster binds its own; the phase shown is the worst of all members'."""

from collections.abc import Callable, Sequence
from typing import Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, agreed, everybody, merged, worst
from argosy.plan.kinds.observation import Aggregation

__all__ = ["PERSISTENT_VOLUME", "PERSISTENT_VOLUME_CLAIM", "keeping"]

_PENDING: Final = "Pending"
_PHASES: Final = ("Failed", _PENDING, "", "Available", "Released", "Bound")
_CLAIM_PHASES: Final = ("Lost", _PENDING, "", "Bound")
#: The API server sets it, to the time at which it was told of another phase.
_SINCE: Final = "lastPhaseTransitionTime"


def keeping(path: str) -> Callable[[Json, Json], Json]:
    """Keep the one field that a member binds or reports itself."""

    def retain(desired: Json, observed: Json) -> Json:
        value = fields.get(observed, path, None)
        return desired if value is None else fields.put(desired, path, value)

    return retain


_keep_volume, _keep_class = keeping("spec.volumeName"), keeping("spec.storageClassName")


def _keeping_binding(desired: Json, observed: Json) -> Json:
    """A claim that names no class gets the member's default one, and neither class nor volume can be taken back."""
    kept = _keep_volume(desired, observed)
    return kept if fields.get(desired, "spec.storageClassName", None) is not None else _keep_class(kept, observed)


def _merge_volume(members: Sequence[Member], aggregation: Aggregation) -> Json:
    phase = worst(everybody(members, aggregation), "phase", _PHASES) or _PENDING
    status: Json = {"phase": phase}
    concerned = [each for each in members if each.status.get("phase") == phase]
    for field in ("reason", "message"):
        told = [(each.cluster, text) for each in concerned if isinstance(text := each.status.get(field), str) and text]
        if told:
            cluster, text = told[0]
            status[field] = f"{cluster}: {text}" if field == "message" and len(aggregation.observations) > 1 else text
    before = aggregation.status
    if before.get("phase") == phase and before.get(_SINCE):
        status[_SINCE] = before[_SINCE]
    return status


def _merge_claim(members: Sequence[Member], aggregation: Aggregation) -> Json:
    status = agreed(members, "accessModes", "capacity", "currentVolumeAttributesClassName")
    return {"phase": worst(everybody(members, aggregation), "phase", _CLAIM_PHASES) or _PENDING, **status}


def _failed(desired: Json, copy: Json) -> list[str]:
    if fields.get(copy, "status.phase", None) != "Failed":
        return []
    return [f"the volume failed: {fields.get(copy, 'status.message', None) or fields.get(copy, 'status.reason', None)}"]


def _lost(desired: Json, copy: Json) -> list[str]:
    """A claim that is still pending may wait for its first pod, as its storage class says."""
    return ["its volume is lost"] if fields.get(copy, "status.phase", None) == "Lost" else []


PERSISTENT_VOLUME: Final = Kind(
    retain=keeping("spec.claimRef"),
    has_conditions=False,
    aggregate=merged(_merge_volume, has_conditions=False),
    unfinished=_failed,
)
PERSISTENT_VOLUME_CLAIM: Final = Kind(retain=_keeping_binding, aggregate=merged(_merge_claim), unfinished=_lost)
