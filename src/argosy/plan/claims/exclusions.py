"""Exclusions: what no selector carries to members, however wide it is. A label still claims any of it.

An object is left out if it belongs to a control plane itself, if something else makes it in every cluster, or if its owner asks
for that. Kinds that are rarely an application's are only selected where their kind is named; what is named like Kubernetes' own,
only where the object is.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from argosy.api import keys
from argosy.kube.objects import Metadata

__all__ = ["WITH_ITS_KIND_ONLY", "Subject", "excluded", "excluded_kind", "like_the_systems_own", "subject_of"]

_RBAC: Final = "rbac.authorization.k8s.io"
_CORE: Final = ""
#: What every namespace has of its own, by group and kind.
_EVERY_NAMESPACES: Final = {
    (_CORE, "ServiceAccount"): frozenset({"default"}),
    (_CORE, "ConfigMap"): frozenset({"kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"}),
}
#: The API server's own address.
_API_SERVER: Final = frozenset({(_CORE, "Service"), (_CORE, "Endpoints"), ("discovery.k8s.io", "EndpointSlice")})
#: Marks of what an API server, or a component beside it, keeps for itself.
_BOOTSTRAPPING: Final = "kubernetes.io/bootstrapping"
_AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_FLOWCONTROL: Final = "apf.kubernetes.io/autoupdate-spec"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_TOKEN_OF: Final = "kubernetes.io/service-account.name"
_HELM_RELEASE: Final = "sh.helm.release.v1."
_SYSTEM: Final = ("system:", "system-")

#: Kinds that a wildcard leaves out: made by controllers in each cluster, of one cluster's machines, or in the way of every
#: request of a cluster.
WITH_ITS_KIND_ONLY: Final = frozenset(
    {
        (_CORE, "Endpoints"),
        (_CORE, "Event"),
        (_CORE, "Node"),
        (_CORE, "PersistentVolume"),
        (_CORE, "Pod"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiregistration.k8s.io", "APIService"),
        ("apps", "ControllerRevision"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("coordination.k8s.io", "Lease"),
        ("coordination.k8s.io", "LeaseCandidate"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("events.k8s.io", "Event"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("metrics.k8s.io", "NodeMetrics"),
        ("metrics.k8s.io", "PodMetrics"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("resource.k8s.io", "ResourceSlice"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    }
)


class Subject(msgspec.Struct, frozen=True):
    """An object that a policy may select."""

    group: str
    kind: str
    metadata: Metadata


def subject_of(group: str, kind: str, metadata: Mapping[str, object]) -> Subject:
    """Of an object as it is stored."""
    return Subject(group, kind, msgspec.convert(metadata, Metadata))


def excluded_kind(group: str, kind: str) -> str:
    """Why no object of a kind is ever selected; empty if some may be."""
    if group == keys.GROUP:
        return "the federation's own objects are never selected"
    if (group, kind) == (_CORE, "Namespace"):
        return "namespaces are never selected: they go to every cluster by themselves"
    return ""


def excluded(subject: Subject) -> str:
    """Why no policy selects this object; empty if one may."""
    metadata, kind = subject.metadata, (subject.group, subject.kind)
    name, namespace, labels, annotations = metadata.name, metadata.namespace, metadata.labels, metadata.annotations
    if why := excluded_kind(*kind):
        return why
    if namespace == keys.SYSTEM_NAMESPACE:
        return f"nothing in the namespace {keys.SYSTEM_NAMESPACE} is selected"
    if annotations.get(keys.NO_SELECTION) == "true":
        return f"the annotation {keys.NO_SELECTION} says so"
    if annotations.get(keys.NO_FEDERATED_RESOURCE):
        return f"the annotation {keys.NO_FEDERATED_RESOURCE} says so"
    owner = next((each for each in metadata.owner_references if each.controller), None)
    if owner is not None:
        return f"it belongs to {owner.kind} {owner.name}"
    if name in _EVERY_NAMESPACES.get(kind, ()):
        return "every namespace has its own"
    if kind in _API_SERVER and (namespace, name) == ("default", "kubernetes"):
        return "every cluster has its own"
    if kind == (_CORE, "Secret") and _TOKEN_OF in annotations:
        return "the token of a service account means nothing to another cluster"
    if kind == (_CORE, "Secret") and name.startswith(_HELM_RELEASE):
        return "it is Helm's record of a release in this control plane"
    if _LEADER in annotations:
        return "it is the lock of a leader in this control plane"
    if subject.group == _RBAC and _BOOTSTRAPPING in labels:
        return "every API server has its own"
    if _AUTOMANAGED in labels or _FLOWCONTROL in annotations:
        return "every API server has its own"
    if kind == ("scheduling.k8s.io", "PriorityClass") and name.startswith(_SYSTEM):
        return "every API server has its own"
    if subject.kind == "CustomResourceDefinition" and name.endswith(f".{keys.GROUP}"):
        return "the federation's own objects are never selected"
    return ""


def like_the_systems_own(subject: Subject) -> bool:
    """Whether an object has a place or a name that Kubernetes keeps for itself. Some applications put a few of theirs there."""
    metadata = subject.metadata
    return metadata.namespace.startswith("kube-") or (subject.group == _RBAC and metadata.name.startswith("system:"))
