"""Ingress: needs the Services it sends requests to, and the Secrets with its certificates. It shows all members' addresses."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.kube.podreferences import Reference, named, references_at
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, addresses, merged
from argosy.plan.kinds.observation import Aggregation

__all__ = ["KIND"]


def _references(obj: Json) -> Iterator[Reference]:
    yield from _of_backend(fields.get(obj, "spec.defaultBackend", None))
    rules = fields.get(obj, "spec.rules", None)
    for rule in rules if isinstance(rules, list) else ():
        paths = fields.get(rule, "http.paths", None) if isinstance(rule, dict) else None
        for path in paths if isinstance(paths, list) else ():
            yield from _of_backend(path.get("backend") if isinstance(path, dict) else None)
    yield from references_at(obj, "spec.tls[*].secretName", "", "Secret")


def _of_backend(backend: Any) -> Iterator[Reference]:
    if not isinstance(backend, dict):
        return
    yield from named("Service", fields.get(backend, "service.name", None))
    resource = backend.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("kind"), str):
        group = resource.get("apiGroup")
        yield from named(resource["kind"], resource.get("name"), group=group if isinstance(group, str) else "")


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    return addresses(members)


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """It is as wanted when it is there: many controllers report no address."""
    return []


KIND: Final = Kind(
    references=_references,
    has_conditions=False,
    aggregate=merged(_merge, has_conditions=False),
    unfinished=_unfinished,
)
