"""Identity: the source of a federated object, and whether the template can have come from that source.

The control plane writes to members with its own rights, so the target of a copy is never read from the template. It follows
from what the API server guarantees: the federated object's scope, namespace and name, and the type config it is named after.
Template and owner reference only choose among the sources that this name can stand for; any other source is refused.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from argosy.api import keys
from argosy.api.conditions import Refused
from argosy.api.federated import FederatedObject
from argosy.api.names import federated_name
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.objects import Metadata, join_key
from argosy.plan.fields import Json
from argosy.plan.metadata import SERVERS_OWN, is_string_map

__all__ = ["Refusal", "Subject", "TypeConfigs", "refusal", "subject_of"]

_RBAC: Final = "rbac.authorization.k8s.io"


class TypeConfigs(Protocol):
    """The type configs in force."""

    def of_kind(self, api_version: str, kind: str) -> FederatedTypeConfig | None: ...

    def __iter__(self) -> Iterator[FederatedTypeConfig]: ...


class Subject(NamedTuple):
    """The source of a federated object, and so the identity of each copy."""

    config: FederatedTypeConfig
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return join_key(self.namespace, self.name)


class Refusal(msgspec.Struct, frozen=True):
    """Why nothing is sent to members."""

    reason: Refused
    message: str


def subject_of(metadata: Metadata, template: Json, types: TypeConfigs) -> Subject | Refusal:
    """The source of a federated object, by that object's own name and `metadata`. `template` may be empty."""
    found = list(_named(metadata, template, types)) or list(_ending(metadata, types))
    if len(found) == 1:
        config, name = found[0]
        return Subject(config, metadata.namespace, name)
    if found:
        return Refusal(Refused.TEMPLATE, f"{metadata.name} is the name of federated objects of several type configs")
    kind = types.of_kind(str(template.get("apiVersion")), str(template.get("kind")))
    if kind is None:
        return Refusal(Refused.NO_TYPE_CONFIG, f"no FederatedTypeConfig for {_told(template)}")
    return Refusal(Refused.TEMPLATE, f"{metadata.name} is not the name of the federated object of {_told(template)}")


def _named(metadata: Metadata, template: Json, types: TypeConfigs) -> Iterator[tuple[FederatedTypeConfig, str]]:
    """Found by the controller owner reference, else by the template, if that yields this very name."""
    guesses: list[tuple[Any, Any, Any]] = [
        (owner.api_version, owner.kind, owner.name) for owner in metadata.owner_references if owner.controller
    ]
    guesses.append((template.get("apiVersion"), template.get("kind"), _metadata_of(template).get("name")))
    for api_version, kind, name in guesses:
        config = types.of_kind(str(api_version), str(kind))
        if config is not None and _is_name(name) and _leads_to(metadata, config, name):
            yield config, name
            return


def _ending(metadata: Metadata, types: TypeConfigs) -> Iterator[tuple[FederatedTypeConfig, str]]:
    """Found by the suffix of the name, for a template and an owner of another version, or wrong ones."""
    for config in types:
        name = metadata.name.removesuffix(f"-{config.name}")
        if _is_name(name) and _leads_to(metadata, config, name):
            yield config, name


def _is_name(name: Any) -> bool:
    """What every API server asks of a name, whatever the kind: the name is part of a path."""
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name and "%" not in name


def _leads_to(metadata: Metadata, config: FederatedTypeConfig, name: str) -> bool:
    return config.namespaced == bool(metadata.namespace) and federated_name(name, config.name) == metadata.name


def refusal(federated: FederatedObject, subject: Subject, source: Metadata | None) -> Refusal | None:
    """Why the template is not sent to members. None if the source exists and the template can have been made from it."""
    template = federated.spec.template
    if why := _ours(subject) or _foreign(template, subject) or _malformed(template):
        return Refusal(Refused.TEMPLATE, why)
    owners = {owner.uid for owner in federated.metadata.owner_references if owner.controller}
    if source is None or source.uid not in owners:
        whose = "its source does not exist" if source is None else "it is not owned by the source of that name"
        return Refusal(Refused.NO_SOURCE, f"{subject.config.kind} {subject.key}: {whose}")
    return None


def _ours(subject: Subject) -> str:
    """The federation's own objects in members cannot be propagated."""
    config = subject.config
    if config.resource.group == keys.GROUP:
        return f"{config.kind} is a kind of the federation itself"
    if subject.namespace == keys.SYSTEM_NAMESPACE:
        return f"nothing is propagated to the namespace {keys.SYSTEM_NAMESPACE}"
    if config.kind == "Namespace" and not config.resource.group and subject.name in keys.PROTECTED_NAMESPACES:
        return f"the namespace {subject.name} belongs to each member"
    if config.resource.group == _RBAC and not config.namespaced and subject.name == keys.MEMBER_CLUSTER_ROLE:
        return f"{config.kind} {subject.name} holds the federation's own rights in members"
    return ""


def _foreign(template: Json, subject: Subject) -> str:
    metadata, config = _metadata_of(template), subject.config
    for field, found, wanted in (
        ("apiVersion", template.get("apiVersion"), config.api_version),
        ("kind", template.get("kind"), config.kind),
        ("metadata.name", metadata.get("name"), subject.name),
        ("metadata.namespace", metadata.get("namespace") or "", subject.namespace),
    ):
        if found != wanted:
            return f"template.{field} is {_shown(found)}, but its federated object is for {_shown(wanted)}"
    return ""


def _malformed(template: Json) -> str:
    """Reports metadata that a template made from an object of an API server never has."""
    metadata = _metadata_of(template)
    for field in SERVERS_OWN:
        if metadata.get(field):
            return f"template.metadata.{field} must not be set"
    for field in ("labels", "annotations"):
        if not is_string_map(metadata.get(field)):
            return f"template.metadata.{field} is not a map of strings"
        if marks := keys.MARKS.intersection(metadata.get(field) or ()):
            return f"template.metadata.{field} has {min(marks)}, which is reserved for the federation"
    generation = metadata.get("generation") or 0
    if not isinstance(generation, int) or isinstance(generation, bool):
        return "template.metadata.generation is not a number"
    return ""


def _metadata_of(template: Json) -> Json:
    metadata = template.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _told(template: Json) -> str:
    return f"{_shown(template.get('apiVersion'))} {_shown(template.get('kind'))}"


def _shown(value: Any) -> str:
    """A value written by somebody else, quoted and shortened for a message."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f'"{text[:100]}"'
