"""Protection: the system namespace and our CRDs are not deleted by accident. With either the whole federation would go.

Whoever means it says so first, by an annotation; `argosy uninstall` does. Implemented twice, as the guard is: as an admission
policy in CEL, for kube-apiserver, and as `refusal`, for Argosy's own API server.
"""

from collections.abc import Mapping
from typing import Any, Final

from argosy.api import keys

__all__ = ["NAME", "is_protected", "manifests", "refusal"]

NAME: Final = "argosy-protection"
_API_VERSION = "admissionregistration.k8s.io/v1"
_MESSAGE = (
    "the federation depends on it: `argosy unjoin` the members and `argosy uninstall`, or annotate it with"
    f" {keys.UNINSTALL}=true"
)


def is_protected(group: str, resource: str, name: str) -> bool:
    if (group, resource) == ("", "namespaces"):
        return name == keys.SYSTEM_NAMESPACE
    return (group, resource) == ("apiextensions.k8s.io", "customresourcedefinitions") and name.endswith(
        f".{keys.GROUP}"
    )


def refusal(annotations: Mapping[str, str]) -> str:
    """Why a protected object with these annotations is not deleted; empty if it may be."""
    return "" if annotations.get(keys.UNINSTALL) == "true" else _MESSAGE


def manifests() -> list[dict[str, Any]]:
    metadata = {"name": NAME, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [resource]}
        for group, resource in (("", "namespaces"), ("apiextensions.k8s.io", "customresourcedefinitions"))
    ]
    name = "oldObject.metadata.name"
    ours = f"request.resource.resource == 'namespaces' ? {name} == '{keys.SYSTEM_NAMESPACE}' : {name}.endsWith('.{keys.GROUP}')"
    allowed = f"oldObject.metadata.?annotations[?'{keys.UNINSTALL}'].orValue('') == 'true'"
    return [
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{"name": "ours", "expression": ours}],
                "validations": [{"expression": allowed, "message": _MESSAGE, "reason": "Forbidden"}],
            },
        },
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]
