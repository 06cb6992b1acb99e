"""Discovery: which resources an API server serves, by the aggregated documents or, from older servers, group by group.

A group that cannot be read (its extension server is down) is reported as a failure, never as empty: the caller must be able to
tell "not served" from "not known".
"""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from argosy.kube.errors import ApiError, BadAnswer, TransportError
from argosy.kube.objects import DecodeError, decode
from argosy.kube.resource import Resource

if TYPE_CHECKING:
    from argosy.kube.client import Client

__all__ = ["Discovery", "discover"]

#: A server with more resources, or longer names, is refused: its resources are stored and compared by others.
MOST_RESOURCES = 5000
LONGEST_NAME = 253
ACCEPT = ",".join(
    [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    ]
)


class Discovery(msgspec.Struct, frozen=True):
    """All resources in the server's order (a group's preferred version first), their verbs, and failures."""

    resources: tuple[Resource, ...]
    verbs: dict[Resource, frozenset[str]]
    #: group/version -> why it is not known.
    failures: dict[str, str]
    #: What people may call a resource beside its plural: the singular and the short names.
    aliases: dict[Resource, tuple[str, ...]]


class _Names(msgspec.Struct, rename="camel"):
    """One resource in either form of discovery."""

    name: str = ""
    resource: str = ""
    kind: str = ""
    namespaced: bool = False
    scope: str = ""
    singular_name: str = ""
    singular_resource: str = ""
    short_names: list[str] | None = None
    verbs: list[str] | None = None
    response_kind: dict[str, str] | None = None

    @property
    def aliases(self) -> tuple[str, ...]:
        singular = self.singular_resource or self.singular_name
        return (*((singular,) if singular else ()), *(self.short_names or ()))


class _Version(msgspec.Struct):
    version: str
    resources: list[_Names] | None = None
    freshness: str = ""


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    name: str = ""
    versions: list[_Version] | None = None


class _Document(msgspec.Struct):
    """The answer of /api or /apis in any form: aggregated (items), legacy groups, or legacy core versions."""

    kind: str = ""
    items: list[_Group] | None = None
    groups: list[_Group] | None = None
    versions: list[str] | None = None


class _ResourceList(msgspec.Struct):
    resources: list[_Names] | None = None


async def discover(client: "Client") -> Discovery:
    """Read everything; raises only if the server's own two documents cannot be read."""
    found: dict[Resource, _Names] = {}
    failures: dict[str, str] = {}
    for path in ("/api", "/apis"):
        body = await client.request("GET", path, headers={"accept": ACCEPT})
        try:
            document = decode(body, _Document)
        except DecodeError as error:
            why = "it is an HTML page" if body.lstrip()[:1] == b"<" else str(error)
            raise BadAnswer(f"{client.name}: {path} did not answer a discovery document: {why}") from None
        if document.kind == "APIGroupDiscoveryList":
            _aggregated(document, found, failures)
        elif document.kind not in ("APIVersions", "APIGroupList"):
            raise BadAnswer(
                f"{client.name}: {path} did not answer a discovery document; is it a Kubernetes API server?"
            )
        else:
            await _legacy(client, document, found, failures)
    if len(found) > MOST_RESOURCES:
        raise BadAnswer(
            f"{client.name} claims to serve {len(found)} resources; more than {MOST_RESOURCES} are not believed"
        )
    verbs = {resource: frozenset(names.verbs or ()) for resource, names in found.items()}
    return Discovery(tuple(found), verbs, failures, {resource: names.aliases for resource, names in found.items()})


def _aggregated(document: _Document, found: dict[Resource, _Names], failures: dict[str, str]) -> None:
    for group in document.items or ():
        for version in group.versions or ():
            name = group.metadata.name
            if version.freshness == "Stale":
                failures[_group_version(name, version.version)] = "the server's knowledge of it is stale"
            _collect(found, name, version.version, version.resources)


async def _legacy(
    client: "Client", document: _Document, found: dict[Resource, _Names], failures: dict[str, str]
) -> None:
    wanted = [("", version) for version in document.versions or ()]
    wanted += [(group.name, version.version) for group in document.groups or () for version in group.versions or ()]
    if len(wanted) > MOST_RESOURCES:
        raise BadAnswer(f"{client.name} claims to serve {len(wanted)} versions of groups")
    answers = await asyncio.gather(*(_resources_of(client, *each) for each in wanted))
    for (group, version), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, str):
            failures[_group_version(group, version)] = answer
        else:
            _collect(found, group, version, answer.resources)


async def _resources_of(client: "Client", group: str, version: str) -> _ResourceList | str:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        return decode(await client.request("GET", path), _ResourceList)
    except (ApiError, TransportError, DecodeError) as error:
        return str(error)


def _collect(found: dict[Resource, _Names], group: str, version: str, names: list[_Names] | None) -> None:
    for entry in names or ():
        plural = entry.resource or entry.name
        if not plural or "/" in plural:
            continue
        response: dict[str, Any] = dict(entry.response_kind or {})
        kind = entry.kind or response.get("kind", "")
        if max(map(len, (group, version, plural, kind))) > LONGEST_NAME:
            raise BadAnswer(f"a resource has a name of more than {LONGEST_NAME} characters: {plural[:60]!r}")
        namespaced = entry.namespaced or entry.scope == "Namespaced"
        found[Resource(group, version, plural, kind, namespaced)] = entry


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
