"""Ingress: needs the Services it sends requests to, and the Secrets with its certificates."""

from collections.abc import Iterator
from typing import Any, Final

from argosy.kube.podreferences import Reference, named, references_at
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind

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


KIND: Final = Kind(references=_references)
