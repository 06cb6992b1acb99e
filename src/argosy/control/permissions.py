"""Permissions: which rights the controllers lack, by the API server's own answer.

A type config may be created for a kind whose rights were not granted yet. The controllers go on with all others, and the type
config gets an event that names the missing rights. It is checked again until none is missing.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from argosy.api import resources, rights
from argosy.control.caches.catalog import Catalog, TypeChange
from argosy.control.context import ControllerContext
from argosy.control.wake import Loop, Wake
from argosy.kube.client import Client
from argosy.kube.events import EventRecorder
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.kube.resource import Resource

__all__ = ["HINT", "Permissions", "missing"]

log = logging.getLogger(__name__)

HINT = "`argosy install` grants what the type configs need"
_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
_LOOK_AGAIN = 30.0


async def missing(client: Client, rules: Iterable[dict[str, Any]], namespace: str = "") -> list[str]:
    """The parts of the rules that we may not do (in that namespace, or in all), as `list widgets.example.com`."""
    wanted = [
        (verb, group, resource, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or ("",)
        for verb in rule["verbs"]
    ]
    limit = asyncio.Semaphore(8)

    async def allowed(verb: str, group: str, resource: str, name: str) -> bool:
        plural, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name}
        body = {
            "apiVersion": _REVIEWS.api_version,
            "kind": _REVIEWS.kind,
            "spec": {"resourceAttributes": {**attributes, "namespace": namespace}},
        }
        async with limit:
            review = await client.create(_REVIEWS, body)
        return bool((review.get("status") or {}).get("allowed"))

    answers = await asyncio.gather(*(allowed(*each) for each in wanted))
    return [_text(*each) for each, yes in zip(wanted, answers, strict=True) if not yes]


def _text(verb: str, group: str, resource: str, name: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return f"{verb} {plural}{'.' if group else ''}{group}{slash}{subresource}{f' {name}' if name else ''}"


class Permissions(Loop[str]):
    """A loop over type configs, by name."""

    name = "permissions"
    workers = 1

    def __init__(self, client: Client, queue: WorkQueue[str], catalog: Catalog, events: EventRecorder):
        self.queue = queue
        self._client = client
        self._catalog = catalog
        self._events = events

    @classmethod
    def of(cls, shared: ControllerContext) -> "Permissions":
        return cls(shared.client, shared.queue(), shared.caches.catalog, shared.events)

    def wakes(self) -> Iterable[Wake[Any, str]]:
        yield Wake(self._catalog.changes, self._of_type, "a type came or changed: it may need other rights", 2)

    def _of_type(self, types: TypeChange) -> Iterator[str]:
        if types.new is not None and (types.old is None or types.old.spec != types.new.spec):
            yield types.new.name

    async def reconcile(self, name: str) -> Result | None:
        config = self._catalog.get(name)
        if config is None:
            return None
        lacking = await missing(self._client, rights.source_rules([config]))
        if not lacking:
            return None
        message = f"the controllers may not {', '.join(lacking)}: {HINT}"
        log.warning("type config %s: %s", name, message)
        reference = reference_of(resources.FEDERATED_TYPE_CONFIGS, config.metadata)
        self._events.event(reference, "Warning", "MissingRights", message)
        return Result(requeue_after=_LOOK_AGAIN)
