"""Permissions: which rights the controllers lack, by the API server's own answer.

A type config may be created for a kind whose rights were not granted yet. The controllers go on with all others, and the type
config gets an event that names the missing rights. It is checked again until none is missing.

One rules review tells most of what is granted. It is not the whole truth (an authorizer may not be able to list its rules), so
what it does not tell of is asked for, one by one.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from argosy.api import resources, rights
from argosy.control.caches.catalog import Catalog, TypeChange
from argosy.control.context import ControllerContext
from argosy.control.wake import Loop, Wake
from argosy.kube.client import Client
from argosy.kube.errors import ApiError
from argosy.kube.events import EventRecorder
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.kube.resource import Resource

__all__ = ["HINT", "Permissions", "granted", "missing"]

log = logging.getLogger(__name__)

HINT = "`argosy install` grants what the type configs need"
_ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
_RULES_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False)
#: No namespace can have this name, so no role is bound in it: what is granted there is granted everywhere.
_EVERYWHERE = "_"
_LOOK_AGAIN = 30.0
#: The one key of the loop.
_ALL = "type configs"

Rule = Mapping[str, Any]


async def granted(client: Client, namespace: str = "") -> Sequence[Rule]:
    """Rules that hold for us in that namespace, or in all, unless another authorizer denies before them. There may be more."""
    body = {
        "apiVersion": _RULES_REVIEWS.api_version,
        "kind": _RULES_REVIEWS.kind,
        "spec": {"namespace": namespace or _EVERYWHERE},
    }
    try:
        review = await client.create(_RULES_REVIEWS, body)
    except ApiError as error:
        log.debug("rules are not told: %s", error)
        return ()
    return (review.get("status") or {}).get("resourceRules") or ()


async def missing(
    client: Client, rules: Iterable[Rule], namespace: str = "", known: Sequence[Rule] | None = None
) -> list[str]:
    """The parts of the rules that we may not do (in that namespace, or in all), as `list widgets.example.com`.

    `known` is what `granted` told of the same namespace.
    """
    if known is None:
        known = await granted(client, namespace)
    wanted = [
        (verb, group, resource, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or ("",)
        for verb in rule["verbs"]
        if not any(_covers(each, verb, group, resource, name) for each in known)
    ]
    limit = asyncio.Semaphore(8)

    async def allowed(verb: str, group: str, resource: str, name: str) -> bool:
        plural, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name}
        body = {
            "apiVersion": _ACCESS_REVIEWS.api_version,
            "kind": _ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": {**attributes, "namespace": namespace}},
        }
        async with limit:
            review = await client.create(_ACCESS_REVIEWS, body)
        return bool((review.get("status") or {}).get("allowed"))

    answers = await asyncio.gather(*(allowed(*each) for each in wanted))
    return [_text(*each) for each, yes in zip(wanted, answers, strict=True) if not yes]


def _covers(rule: Rule, verb: str, group: str, resource: str, name: str) -> bool:
    _, slash, subresource = resource.partition("/")
    resources_of = rule.get("resources") or ()
    names = rule.get("resourceNames") or ()
    return (
        _among(verb, rule.get("verbs") or ())
        and _among(group, rule.get("apiGroups") or ())
        and (_among(resource, resources_of) or bool(slash and f"*/{subresource}" in resources_of))
        and (not names or name in names)
    )


def _among(value: str, values: Sequence[str]) -> bool:
    return value in values or "*" in values


def _text(verb: str, group: str, resource: str, name: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return f"{verb} {plural}{'.' if group else ''}{group}{slash}{subresource}{f' {name}' if name else ''}"


class Permissions(Loop[str]):
    """A loop over all type configs at once: one question answers most of them."""

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
            yield _ALL

    async def reconcile(self, key: str) -> Result | None:
        known = await granted(self._client)
        complete = True
        for config in self._catalog:
            lacking = await missing(self._client, rights.source_rules([config]), known=known)
            if not lacking:
                continue
            complete = False
            message = f"the controllers may not {', '.join(lacking)}: {HINT}"
            log.warning("type config %s: %s", config.name, message)
            reference = reference_of(resources.FEDERATED_TYPE_CONFIGS, config.metadata)
            self._events.event(reference, "Warning", "MissingRights", message)
        return None if complete else Result(requeue_after=_LOOK_AGAIN)
