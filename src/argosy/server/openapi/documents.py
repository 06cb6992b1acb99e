"""Responses under /openapi: made on first use, outside of the event loop, and cached until their kinds change.

A document's hash is computed from its sources (the minor, the kinds, custom schemas), not from its bytes, so that the index of
all documents needs no document.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import orjson

from argosy.kube.schema import load
from argosy.kube.transport import Response
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.discovery import group_order, version_rank
from argosy.server.http.accept import media_types
from argosy.server.http.encoding import finished
from argosy.server.openapi.operations import V2, V3, paths_of
from argosy.server.openapi.protobuf import CONTENT_TYPE, encode_document
from argosy.server.openapi.schemas import Components
from argosy.server.registry import Kind, Registry

__all__ = ["OpenApi"]

_V2_JSON = ("application/json", "application/*", "*/*")
_V2_PROTOBUF = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", CONTENT_TYPE)
_NOT_ACCEPTABLE = b"only application/json and protobuf are served here\n"


class _Document(msgspec.Struct, frozen=True):
    """The kinds of one group and version, and the hash of what would be published about them."""

    kinds: tuple[Kind, ...]
    hash: str


class OpenApi:
    """Answers GET of /openapi/v2, /openapi/v3 and /openapi/v3/apis/G/V. `minor` is the Kubernetes version of the tables."""

    def __init__(self, registry: Registry, minor: str | None = None):
        self._registry = registry
        self._schemas = load(minor)
        self._generation = -1
        self._documents: dict[str, _Document] = {}
        #: The hash over all documents.
        self._hash = ""
        #: Encoded responses by hash: a change of one kind leaves the other documents as they are.
        self._made: dict[str, bytes] = {}

    def ready(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether `respond` has nothing to make, and so returns at once."""
        if self._generation != self._registry.generation:
            return False
        rest = path.removeprefix("/openapi/").rstrip("/")
        if rest == "v2":
            protobuf = self._v2_form(headers) == "protobuf"
            return (f"{self._hash}P" if protobuf else self._hash) in self._made
        document = self._documents.get(rest.removeprefix("v3/"))
        return document is None or document.hash in self._made

    def respond(self, path: str, headers: Mapping[str, str], hash_wanted: str = "") -> Response | None:
        """None if the path is not one of OpenAPI's. `hash_wanted` is the query parameter of links in the index.

        Takes long if documents must be made; must not be called concurrently.
        """
        if path != "/openapi" and not path.startswith("/openapi/"):
            return None
        self._refresh()
        rest = path.removeprefix("/openapi/").rstrip("/")
        if rest == "v2":
            return self._v2(headers)
        if rest == "v3":
            return Response(
                200, {"content-type": "application/json", "cache-control": "no-cache, private"}, self._index()
            )
        document = self._documents.get(rest.removeprefix("v3/"))
        if document is None or not rest.startswith("v3/"):
            return None
        if hash_wanted and hash_wanted != document.hash:
            return Response(301, {"location": f"{path}?hash={document.hash}"}, b"")
        return self._answer(document.hash, headers, lambda: self._v3(document), immutable=bool(hash_wanted))

    def _refresh(self) -> None:
        generation = self._registry.generation
        if self._generation == generation:
            return
        grouped: dict[tuple[str, str], list[Kind]] = {}
        for kind in sorted(self._registry, key=lambda k: k.plural):
            grouped.setdefault((kind.group, kind.version), []).append(kind)
        self._documents = {
            (f"apis/{group}/{version}" if group else f"api/{version}"): self._document(grouped[group, version])
            for group, version in sorted(grouped, key=lambda gv: (group_order(gv[0]), version_rank(gv[1])))
        }
        everything = "".join(document.hash for document in self._documents.values())
        self._hash = hashlib.sha512(everything.encode()).hexdigest().upper()
        current = {self._hash, f"{self._hash}P", *(document.hash for document in self._documents.values())}
        self._made = {key: body for key, body in self._made.items() if key in current}
        # Last: until then the documents are those of an older generation.
        self._generation = generation

    def _document(self, kinds: list[Kind]) -> _Document:
        digest = hashlib.sha512(self._schemas.minor.encode())
        for kind in kinds:
            shape: list[Any] = [kind.api_version, kind.kind, kind.plural, kind.namespaced]
            shape += [sorted(kind.verbs), sorted(kind.subresources)]
            if isinstance(kind.strategy, CustomResourceStrategy):
                shape.append(kind.strategy.schema_digest)
            digest.update(orjson.dumps(shape))
        return _Document(tuple(kinds), digest.hexdigest().upper())

    def _index(self) -> bytes:
        links = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={document.hash}"}
            for name, document in self._documents.items()
        }
        return orjson.dumps({"paths": links})

    def _answer(self, key: str, headers: Mapping[str, str], make: Any, *, immutable: bool = False) -> Response:
        etag = f'"{key}"'
        cached = {
            "etag": etag,
            "vary": "Accept",
            "cache-control": "public, immutable" if immutable else "no-cache, private",
        }
        if etag in (tag.strip() for tag in headers.get("if-none-match", "").split(",")):
            return Response(304, cached, b"")
        body = self._made.get(key)
        if body is None:
            body = self._made[key] = make()
        return Response(200, {"content-type": "application/json", **cached}, body)

    @cached_property
    def _components(self) -> Components:
        return Components(self._schemas, "#/components/schemas/")

    @cached_property
    def _v2_components(self) -> Components:
        return Components(self._schemas, "#/definitions/")

    def _v3(self, document: _Document) -> bytes:
        components = self._components
        paths: dict[str, Any] = {}
        for kind in document.kinds:
            paths.update(paths_of(kind, components, V3))
        roots = [components.name(kind) for kind in document.kinds]
        roots += [reference.removeprefix(components.reference) for reference in _schema_references(paths)]
        whole = bytearray(orjson.dumps({"openapi": "3.0.0", "info": self._info})[:-1])
        _add(whole, b',"paths":', sorted(paths.items()))
        _add(whole, b',"components":{"schemas":', components.definitions(document.kinds, roots))
        whole += b"}}"
        return finished(whole)

    @property
    def _info(self) -> dict[str, str]:
        return {"title": "Kubernetes", "version": f"v{self._schemas.minor}"}

    def _v2_form(self, headers: Mapping[str, str]) -> str:
        for media in media_types(headers.get("accept") or "*/*"):
            if media.type in _V2_JSON:
                return "json"
            if media.type in _V2_PROTOBUF:
                return "protobuf"
        return ""

    def _v2(self, headers: Mapping[str, str]) -> Response:
        form = self._v2_form(headers)
        if form == "json":
            return self._answer(self._hash, headers, self._v2_json)
        if form == "protobuf":
            # Another key: the two forms of a document must not share an entity tag.
            answer = self._answer(f"{self._hash}P", headers, self._v2_protobuf)
            return msgspec.structs.replace(answer, headers={**answer.headers, "content-type": CONTENT_TYPE})
        return Response(406, {"content-type": "text/plain; charset=utf-8", "vary": "Accept"}, _NOT_ACCEPTABLE)

    def _v2_json(self) -> bytes:
        whole = bytearray(orjson.dumps({"swagger": "2.0", "info": self._info})[:-1])
        kinds = self._kinds()
        _add(whole, b',"paths":', self._v2_paths(kinds))
        _add(whole, b',"definitions":', self._v2_components.definitions(kinds))
        whole += b"}"
        return finished(whole)

    def _v2_protobuf(self) -> bytes:
        kinds = self._kinds()
        definitions = self._v2_components.definitions(kinds)
        return finished(encode_document(self._info["version"], self._v2_paths(kinds), definitions))

    def _kinds(self) -> list[Kind]:
        return [kind for document in self._documents.values() for kind in document.kinds]

    def _v2_paths(self, kinds: Iterable[Kind]) -> Iterator[tuple[str, Any]]:
        """The definitions of each kind are made in turn, and freed afterwards."""
        for kind in sorted(kinds, key=lambda kind: (kind.api_version, kind.plural)):
            yield from paths_of(kind, self._v2_components, V2).items()


def _add(whole: bytearray, key: bytes, entries: Iterable[tuple[str, Any]]) -> None:
    """An object at the end of a document, entry by entry, so that it is never held or copied as a whole."""
    whole += key
    before = b"{"
    for name, node in entries:
        whole += before + orjson.dumps(name) + b":" + orjson.dumps(node)
        before = b","
    whole += b"}" if before == b"," else b"{}"


def _schema_references(paths: dict[str, Any]) -> set[str]:
    """The definitions operations answer with or take."""
    found: set[str] = set()
    for operations in paths.values():
        for operation in operations.values():
            if not isinstance(operation, dict):
                continue
            bodies = [*operation["responses"].values(), operation.get("requestBody") or {}]
            for body in bodies:
                for media in (body.get("content") or {}).values():
                    found.add(media["schema"]["$ref"])
    return found
