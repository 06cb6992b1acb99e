"""Schemas of what a propagation policy has to say which objects it is for."""

from typing import Any

from argosy.api.crds.schema import array, integer, mapping, obj, string

__all__ = ["selectors"]

_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_LABEL_VALUE = {"type": "string", "pattern": r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", "maxLength": 63}
#: A group other than the core one is never without its version.
_API_VERSION = r"^(\*|v1|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/([a-z]([-a-z0-9]*[a-z0-9])?|\*))$"


def _label_selector(whose: str) -> dict[str, Any]:
    expression = obj(
        "One condition.",
        {
            "key": string("Label key.", pattern=_LABEL_KEY, maxLength=317),
            "operator": string("How key and values compare.", enum=["In", "NotIn", "Exists", "DoesNotExist"]),
            "values": array("Values to compare with; none for Exists and DoesNotExist.", _LABEL_VALUE),
        },
        ("key", "operator"),
        anyOf=[
            {"properties": {"operator": {"enum": ["In", "NotIn"]}, "values": {"minItems": 1}}, "required": ["values"]},
            {"properties": {"operator": {"enum": ["Exists", "DoesNotExist"]}, "values": {"maxItems": 0}}},
        ],
    )
    return obj(
        f"Labels of {whose}. An empty selector means all.",
        {
            "matchLabels": mapping("Labels they must have.", _LABEL_VALUE),
            "matchExpressions": array("Conditions on their labels.", expression),
        },
    )


def selectors(*, cluster_wide: bool) -> dict[str, Any]:
    """The fields of a policy's spec."""
    fields = {
        "apiVersion": string(
            "API group and version, such as apps/v1. The version does not matter; * or none means any group.",
            pattern=_API_VERSION,
        ),
        "kind": string(
            "Kind, such as Deployment; * or none means any.", pattern=r"^(\*|[A-Z][A-Za-z0-9]*)$", maxLength=63
        ),
        "name": string("Name of the one object meant.", minLength=1, maxLength=253),
        "labelSelector": _label_selector("the objects"),
    }
    if cluster_wide:
        fields["namespaceSelector"] = _label_selector("the namespaces the objects are in")
    where = "anywhere" if cluster_wide else "in the policy's namespace"
    return {
        "resourceSelectors": array(
            f"Objects {where} that the policy is for although they name none: those that match at least one item.",
            obj("All that is stated must match.", fields),
            maxItems=256,
        ),
        "priority": integer(
            "Of several policies that select the same object, the one with the highest priority gets it; 0 if absent."
        ),
    }
