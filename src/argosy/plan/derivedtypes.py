"""Derived type configs: what a CustomResourceDefinition says of how objects of its kind are to be federated.

Its scope, where the replicas are (the scale subresource), and whether there is a status to read and to write.
"""

import hashlib
from typing import Any, Final

import msgspec

from argosy.api import keys
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.conditions import is_true
from argosy.kube.objects import Metadata
from argosy.plan.kinds.registry import kind_named

__all__ = ["Definition", "derived", "digest_of", "is_derived", "is_unchanged", "may_derive"]

_STEPS: Final = [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]]
_COLLECTED: Final = ["metadata.creationTimestamp", "metadata.generation"]
#: Numbers that many kinds report beside those of their scale subresource.
_REPORTED: Final = {"availableReplicas": "availableReplicasStatus", "readyReplicas": "readyReplicasStatus"}


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    properties: dict[str, "_Part"] = {}


class _Schema(msgspec.Struct, frozen=True):
    schema: _Part = msgspec.field(name="openAPIV3Schema", default=_Part())


class _Scale(msgspec.Struct, frozen=True):
    replicas: str = msgspec.field(name="specReplicasPath", default="")
    status: str = msgspec.field(name="statusReplicasPath", default="")
    selector: str = msgspec.field(name="labelSelectorPath", default="")


class _Subresources(msgspec.Struct, frozen=True):
    scale: _Scale | None = None
    status: dict[str, Any] | None = None


class _Version(msgspec.Struct, frozen=True):
    name: str
    served: bool = False
    storage: bool = False
    subresources: _Subresources = _Subresources()
    schema: _Schema = _Schema()


class _Names(msgspec.Struct, frozen=True):
    plural: str
    kind: str


class _Spec(msgspec.Struct, frozen=True):
    group: str
    names: _Names
    scope: str
    versions: tuple[_Version, ...] = ()


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[dict[str, Any], ...] | None = None


class Definition(msgspec.Struct, frozen=True):
    """The part of a CustomResourceDefinition that counts here."""

    metadata: Metadata
    spec: _Spec
    status: _Status = _Status()

    @property
    def version(self) -> _Version | None:
        """The one that objects are stored in, if it is served; else the first one that is."""
        served = [each for each in self.spec.versions if each.served]
        return next((each for each in served if each.storage), served[0] if served else None)


def may_derive(definition: Definition) -> bool:
    """Whether its objects can be federated: they are served, are not the federation's own, and nobody says otherwise."""
    return (
        definition.spec.group != keys.GROUP
        and is_true(definition.status.conditions, "Established")
        and not definition.metadata.deletion_timestamp
        and definition.metadata.annotations.get(keys.MAKE_TYPE_CONFIG) != "false"
    )


def derived(definition: Definition) -> dict[str, Any] | None:
    """The type config; None for a definition that serves no version. What a rule or package says of the kind goes before."""
    version, spec = definition.version, definition.spec
    if version is None:
        return None
    known = kind_named(spec.group, spec.names.kind).paths
    paths = _paths(version) | msgspec.to_builtins(known)
    reports = version.subresources.status is not None or "status" in version.schema.schema.properties
    body: dict[str, Any] = {
        "sourceType": {
            "group": spec.group,
            "version": version.name,
            "kind": spec.names.kind,
            "pluralName": spec.names.plural,
            "scope": keys.NAMESPACED if spec.scope == keys.NAMESPACED else keys.CLUSTER,
        },
        "controllers": _STEPS,
        "statusCollection": {"enabled": True, "fields": [*_COLLECTED, "status"] if reports else _COLLECTED[:1]},
        "statusAggregation": {"enabled": version.subresources.status is not None},
    }
    if paths:
        body["pathDefinition"] = paths
    metadata = {
        "name": definition.metadata.name,
        "labels": {keys.DERIVED: "true"},
        "annotations": {keys.DERIVED_SPEC: digest_of(body)},
    }
    return {"apiVersion": keys.API_VERSION, "kind": "FederatedTypeConfig", "metadata": metadata, "spec": body}


def _paths(version: _Version) -> dict[str, str]:
    scale = version.subresources.scale
    if scale is None or not scale.replicas:
        return {}
    stated = {
        "replicasSpec": scale.replicas,
        "replicasStatus": scale.status,
        "labelSelector": scale.selector,
    }
    paths = {name: path.removeprefix(".") for name, path in stated.items() if path}
    status = version.schema.schema.properties.get("status", _Part())
    numbers = {name for name, part in status.properties.items() if part.type == "integer"}
    return paths | {path: f"status.{name}" for name, path in _REPORTED.items() if name in numbers}


def digest_of(spec: dict[str, Any]) -> str:
    """Of what counts of a type config's spec, whatever the server adds."""
    typed = msgspec.convert({"metadata": {"name": "x"}, "spec": spec}, FederatedTypeConfig).spec
    text = msgspec.json.encode(typed, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:16]


def is_derived(config: FederatedTypeConfig) -> bool:
    """Whether we made it."""
    return config.metadata.labels.get(keys.DERIVED) == "true"


def is_unchanged(config: FederatedTypeConfig) -> bool:
    """Whether nobody changed it since we made it."""
    return config.metadata.annotations.get(keys.DERIVED_SPEC) == digest_of(msgspec.to_builtins(config.spec))
