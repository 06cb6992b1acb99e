"""PodDisruptionBudget: goes where the workloads go whose pods it protects."""

from typing import Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.about import About, PodSelector
from argosy.plan.kinds.kind import Kind

__all__ = ["KIND"]


def _about(obj: Json) -> About | None:
    """An empty selector selects all pods of the namespace, an absent one none."""
    selector = fields.get(obj, "spec.selector", None)
    return PodSelector(selector) if isinstance(selector, dict) else None


KIND: Final = Kind(about=_about)
