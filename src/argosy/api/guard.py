"""Guard: an admission policy by which only the controllers write federated objects.

RBAC alone cannot say this: who was given every right has these as well. The policy looks at who asks. Besides the controllers
it lets through the API server's administrators (the group system:masters) and those parts of Kubernetes that delete and
migrate objects of every kind. Who has the right to by RBAC may do one thing: confirm a deletion that is held.

kube-apiserver evaluates it; Argosy's own API server keeps it and does not, so that there RBAC holds alone.
"""

from collections.abc import Sequence
from typing import Any, Final

from argosy.api import keys, rights

__all__ = ["NAME", "manifests"]

NAME: Final = "argosy-federated-objects"
_API_VERSION = "admissionregistration.k8s.io/v1"
#: With credentials of their own, and (the last one) without.
_KUBERNETES = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:storage-version-migrator-controller",
    "system:kube-controller-manager",
]
_MESSAGE = (
    "federated objects are written by Argosy's controllers alone: change the object they were made from, or its policy"
)
_OLD, _NEW = "oldObject.metadata.?annotations.orValue({})", "object.metadata.?annotations.orValue({})"
_KEY = f"k == '{keys.CONFIRM_DELETION}'"
#: Nothing changes but that annotation.
_CONFIRMS = " && ".join(
    [
        "request.operation == 'UPDATE' && request.?subResource.orValue('') == '' && object.spec == oldObject.spec",
        *(
            f"object.metadata.?{field} == oldObject.metadata.?{field}"
            for field in ("labels", "finalizers", "ownerReferences")
        ),
        f"{_NEW}.all(k, {_KEY} || (k in {_OLD} && {_OLD}[k] == {_NEW}[k]))",
        f"{_OLD}.all(k, {_KEY} || k in {_NEW})",
    ]
)


def manifests(subjects: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The policy and its binding; `subjects` are those the controllers' roles are bound to."""
    metadata = {"name": NAME, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
    return [
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [keys.GROUP],
                            "apiVersions": ["*"],
                            "operations": ["CREATE", "UPDATE", "DELETE"],
                            "resources": [
                                "federatedobjects",
                                "federatedobjects/status",
                                "clusterfederatedobjects",
                                "clusterfederatedobjects/status",
                            ],
                        }
                    ]
                },
                "variables": [
                    {"name": "known", "expression": _known(subjects)},
                    {"name": "confirms", "expression": _CONFIRMS},
                ],
                "validations": [
                    {"expression": "variables.known || variables.confirms", "message": _MESSAGE, "reason": "Forbidden"}
                ],
            },
        },
        {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]


def _known(subjects: Sequence[dict[str, str]]) -> str:
    groups = ["system:masters", *(each["name"] for each in subjects if each["kind"] == "Group")]
    users = [rights.username(each) for each in subjects if each["kind"] != "Group"] + _KUBERNETES
    return f"request.userInfo.username in {_list(users)} || request.userInfo.groups.exists(g, g in {_list(groups)})"


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(_text(name) for name in names) + "]"


def _text(name: str) -> str:
    """A CEL string literal; names of users may hold anything."""
    escaped = "".join(c if c.isascii() and c.isprintable() and c not in "\\'\"" else f"\\U{ord(c):08x}" for c in name)
    return f"'{escaped}'"
