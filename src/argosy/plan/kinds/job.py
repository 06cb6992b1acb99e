"""Job: each cluster's job controller makes the selector and the labels that tie its pods to it."""

from typing import Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind

__all__ = ["KIND"]

#: The label was renamed in Kubernetes 1.27; controllers write both.
_GENERATED: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_LABELS: Final = ("spec", "template", "metadata", "labels")


def _strip(desired: Json) -> Json:
    if fields.get(desired, "spec.manualSelector", None) is True:
        return desired
    for label in _GENERATED:
        desired = fields.without(desired, (*_LABELS, label))
        desired = fields.without(desired, ("spec", "selector", "matchLabels", label))
    return desired


def _retain(desired: Json, observed: Json) -> Json:
    if fields.get(desired, "spec.manualSelector", None) is True:
        return desired
    for path in (("spec", "selector"), _LABELS):
        value = fields.get(observed, path, None)
        if value is not None:
            desired = fields.put(desired, path, value)
    return desired


KIND: Final = Kind(pod_spec=("spec", "template", "spec"), strip=_strip, retain=_retain)
