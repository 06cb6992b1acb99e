"""Columns of control plane kinds: RBAC, leases, priorities, admission, certificates, flow control, devices, API services."""

from typing import Any

from argosy.server.printers.base import (
    NONE,
    UNSET,
    Object,
    Printer,
    age,
    at,
    columns,
    condition,
    human_duration,
    labels,
    name,
    printer,
)

__all__ = [
    "ADMISSION", "API_REGISTRATION", "CERTIFICATES", "COORDINATION", "DEVICES", "FLOW_CONTROL", "NODE", "RBAC",
    "SCHEDULING",
]  # fmt: skip


def _binding(obj: Object) -> list[Any]:
    role = obj.get("roleRef") or {}
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        text = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            text = f"{subject.get('namespace', '')}/{text}"
        if subject.get("kind") in named:
            named[subject["kind"]].append(text)
    return [f"{role.get('kind', '')}/{role.get('name', '')}", *(", ".join(names) for names in named.values())]


def _request(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    lifetime = spec.get("expirationSeconds")
    state = "Denied" if condition(obj, "Denied") else "Approved" if condition(obj, "Approved") else "Pending"
    state += ",Failed" if condition(obj, "Failed") else ""
    state += ",Issued" if at(obj, "status", "certificate") else ""
    return [
        name(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if lifetime is None else human_duration(lifetime),
        state,
    ]


def _parameters(obj: Object) -> str:
    reference = at(obj, "spec", "paramRef")
    if not reference:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return labels(at(reference, "selector", "matchLabels")) if reference.get("selector") else UNSET


def _parameter_kind(obj: Object) -> str:
    kind = at(obj, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _policy(rules: str) -> Printer:
    return printer(
        ("Name", f"{rules.capitalize()}:integer", "ParamKind", "Age"),
        lambda obj: [len(at(obj, "spec", rules) or ()), _parameter_kind(obj)],
    )


def _flow_schema(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        at(spec, "priorityLevelConfiguration", "name") or "",
        spec.get("matchingPrecedence", 0),
        at(spec, "distinguisherMethod", "type") or NONE,
        (condition(obj, "Dangling") or {}).get("status", "?"),
    ]


def _priority_level(obj: Object) -> list[Any]:
    limited = at(obj, "spec", "limited") or {}
    queuing = at(limited, "limitResponse", "queuing") or {}
    return [
        at(obj, "spec", "type") or "",
        limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")),
    ]


def _claim_state(obj: Object) -> str:
    states = ["deleted"] if at(obj, "metadata", "deletionTimestamp") else []
    if at(obj, "status", "allocation") is None:
        return ",".join(states or ["pending"])
    reserved = ["reserved"] if at(obj, "status", "reservedFor") else []
    return ",".join([*states, "allocated", *reserved])


def _resource_slice(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [spec.get("nodeName", ""), spec.get("driver", ""), at(spec, "pool", "name") or ""]


def _api_service(obj: Object) -> list[Any]:
    service = at(obj, "spec", "service")
    available = condition(obj, "Available") or {}
    status = available.get("status", "Unknown")
    if status == "False":
        status = f"False ({available.get('reason', '')})"
    return [f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local", status]


def _priority_class(obj: Object) -> list[Any]:
    return [obj.get("value", 0), bool(obj.get("globalDefault")), obj.get("preemptionPolicy") or ""]


_BINDING = printer(("Name", "Role", "Age"), _binding, wide=("Users", "Groups", "ServiceAccounts"))
_WEBHOOKS = printer(("Name", "Webhooks:integer", "Age"), lambda obj: [len(obj.get("webhooks") or ())])
_POLICY_BINDING = printer(
    ("Name", "PolicyName", "ParamRef", "Age"), lambda obj: [at(obj, "spec", "policyName") or "", _parameters(obj)]
)
_NAME_AND_AGE = printer(("Name", "Age"), lambda obj: [])

RBAC: dict[str, Printer] = {"ClusterRoleBinding": _BINDING, "RoleBinding": _BINDING}

ADMISSION: dict[str, Printer] = {
    "MutatingAdmissionPolicy": _policy("mutations"),
    "MutatingAdmissionPolicyBinding": _POLICY_BINDING,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": _policy("validations"),
    "ValidatingAdmissionPolicyBinding": _POLICY_BINDING,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
}

CERTIFICATES: dict[str, Printer] = {
    "CertificateSigningRequest": Printer(
        columns("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), _request
    ),
}

COORDINATION: dict[str, Printer] = {
    "Lease": printer(("Name", "Holder", "Age"), lambda obj: [at(obj, "spec", "holderIdentity") or ""]),
}

SCHEDULING: dict[str, Printer] = {
    "PriorityClass": printer(
        ("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"), _priority_class
    ),
}

NODE: dict[str, Printer] = {
    "RuntimeClass": printer(("Name", "Handler", "Age"), lambda obj: [obj.get("handler", "")]),
}

FLOW_CONTROL: dict[str, Printer] = {
    "FlowSchema": printer(
        ("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"), _flow_schema
    ),
    "PriorityLevelConfiguration": printer(
        ("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"), _priority_level
    ),
}

DEVICES: dict[str, Printer] = {
    "DeviceClass": _NAME_AND_AGE,
    "ResourceClaim": printer(("Name", "State", "Age"), lambda obj: [_claim_state(obj)]),
    "ResourceClaimTemplate": _NAME_AND_AGE,
    "ResourceSlice": printer(("Name", "Node", "Driver", "Pool", "Age"), _resource_slice),
}

API_REGISTRATION: dict[str, Printer] = {
    "APIService": printer(("Name", "Service", "Available", "Age"), _api_service),
}
