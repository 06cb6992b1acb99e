"""Queries: the URL paths, parameters and options of requests, as values. The client sends them.

The classes are the keyword arguments of the client's verbs, defined once although a verb has several signatures.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypedDict

from argosy.kube.resource import Resource
from argosy.kube.shards import Shard

__all__ = [
    "Applying",
    "Creating",
    "Listing",
    "Patch",
    "Patching",
    "Query",
    "Reading",
    "Selection",
    "Writing",
    "delete_options",
    "path",
    "selection",
    "write",
]

Query = list[tuple[str, str]]


class Patch(StrEnum):
    """The kinds of patch, by their content types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Reading(TypedDict, total=False):
    subresource: str | None
    resource_version: str | None


class Selection(TypedDict, total=False):
    """Which objects of a collection. A server that does not support shards returns all of them."""

    label_selector: str
    field_selector: str
    shard: Shard | None


class Listing(Selection, total=False):
    #: Objects per page; 0 requests all in one piece.
    limit: int
    resource_version: str


class Writing(TypedDict, total=False):
    #: status, scale, eviction, token, …
    subresource: str | None
    #: Overrides the client's own.
    field_manager: str | None
    dry_run: bool
    #: Strict, Warn or Ignore: how the server treats unknown fields.
    field_validation: str | None


class Creating(Writing, total=False):
    #: The object of the subresource.
    name: str | None


class Patching(Writing, total=False):
    #: A merge patch by default.
    kind: Patch


class Applying(Writing, total=False):
    #: Take over the fields that others own.
    force: bool


def path(resource: Resource, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """Raises ValueError for an invalid name: names come from users' objects, and one with a slash would lead elsewhere."""
    for part in (namespace, name):
        if part is not None and (part in (".", "..") or "/" in part or "%" in part):
            raise ValueError(f"{part!r} is not a name")
    return resource.path(namespace, name, subresource)


def selection(chosen: Selection) -> Query:
    shard = chosen.get("shard")
    found = [
        ("labelSelector", chosen.get("label_selector", "")),
        ("fieldSelector", chosen.get("field_selector", "")),
        ("shardSelector", shard.selector if shard is not None else ""),
    ]
    return [(name, value) for name, value in found if value]


def write(field_manager: str, options: Writing) -> Query:
    """`field_manager` is the client's own."""
    query = [("fieldManager", options.get("field_manager") or field_manager)]
    if options.get("dry_run"):
        query.append(("dryRun", "All"))
    if validation := options.get("field_validation"):
        query.append(("fieldValidation", validation))
    return query


def delete_options(
    propagation: str | None, grace_period: int | None, dry_run: bool, preconditions: Mapping[str, str | None]
) -> dict[str, Any]:
    """The body of a delete. It must have all options: with a body, kube-apiserver ignores those in the query."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if dry_run:
        options["dryRun"] = ["All"]
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    held = {key: value for key, value in preconditions.items() if value is not None}
    if held:
        options["preconditions"] = held
    return options
