"""Shared by the verbs: the parts they use, and reading an object from a request."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

import orjson
from msgspec import structs

from argosy.kube import schema, typecheck, warning
from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import metadata, status
from argosy.server.admission.chain import Admission
from argosy.server.auth.identity import Authorizer
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.http.encoding import YAML_ERRORS, decode_body, quoted
from argosy.server.http.limits import MAX_BYTES
from argosy.server.http.offload import Offload
from argosy.server.http.request import Call
from argosy.server.registry import Decoded, Kind, Object, Registry, Strategy
from argosy.server.watchcache.entry import Entry, object_key, served
from argosy.server.watchcache.store import Store

__all__ = [
    "JSON",
    "Api",
    "answer",
    "body_size",
    "check_object",
    "current",
    "decode_served",
    "fill_defaults",
    "misnamed",
    "read_object",
    "refused",
    "to_stored",
    "warned",
]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
JSON = {"content-type": "application/json"}
#: Parsing YAML takes so many times as long as parsing JSON.
_YAML_EFFORT = 8
#: An object so many times smaller than the largest cannot reach that size by the defaults of a built-in kind.
_GROWTH = 16
_OWN_SCHEMES = ("apiextensions.k8s.io", "apiregistration.k8s.io")


class Api:
    """The parts a verb needs."""

    def __init__(
        self, registry: Registry, store: Store, authorizer: Authorizer, admission: Admission, offload: Offload
    ):
        self.registry = registry
        self.store = store
        self.authorizer = authorizer
        self.admission = admission
        self.offload = offload
        self._preparing: dict[Strategy, asyncio.Future[None]] = {}

    async def ready(self, call: Call) -> None:
        """Called before objects are written or converted: the first request that needs a schema waits until it is compiled."""
        for strategy in call.kind.needs:
            if strategy.ready:
                continue
            preparing = self._preparing.get(strategy)
            if preparing is None:
                # A task of its own: the first request may be cancelled while others wait for the same schema.
                work = self.offload.run(call.user.name, strategy.prepare)
                preparing = self._preparing[strategy] = asyncio.ensure_future(work)
                preparing.add_done_callback(partial(self._prepared, strategy))
            await asyncio.shield(preparing)

    def _prepared(self, strategy: Strategy, result: "asyncio.Future[None]") -> None:
        self._preparing.pop(strategy, None)
        if not result.cancelled() and result.exception() is not None:
            log.error("a schema could not be compiled", exc_info=result.exception())

    def large(self, call: Call, size: int) -> bool:
        """Whether work on an object of so many bytes is too much for the event loop."""
        return self.offload.large(call.kind.strategy.effort(size))

    def admit(self, call: Call, size: int) -> None:
        """Called before work on so many bytes. Raises 429 if too much work is waiting already."""
        if self.large(call, size):
            self.offload.admit(call.user.name)

    async def run(self, call: Call, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which is pure: computed in place unless objects of this size take long."""
        if not self.large(call, size):
            return work(*args, **kwargs)
        return await self.offload.run(call.user.name, partial(work, *args, **kwargs))


def answer(call: Call, body: bytes, code: int = 200) -> Response:
    return warned(call, Response(code, JSON, body))


def warned(call: Call, response: Response) -> Response:
    """The response, with the call's warnings in its headers."""
    if not call.warnings:
        return response
    headers = {**response.headers, "warning": warning.header(call.warnings)}
    return structs.replace(response, headers=headers)


def current(api: Api, call: Call) -> Entry:
    """The object the call names. Raises 404."""
    entry = api.store.get(object_key(call.kind, call.namespace, call.name))
    if entry is None:
        raise status.not_found(call.kind, call.name)
    return entry


def decode_served(kind: Kind, entry: Entry) -> Object:
    """A copy of the object in the served version."""
    return cast(Object, orjson.loads(served(kind, entry)))


def fill_defaults(kind: Kind, obj: Object, size: int, most: int = MAX_BYTES) -> None:
    """Set the defaults of an object of so many bytes. Raises 413 if that makes it larger than `most`."""
    kind.strategy.default(obj)
    could_be = max(size * _GROWTH, kind.strategy.effort(size))
    if could_be > most and len(orjson.dumps(obj)) > most:
        raise status.too_large(MAX_BYTES)


def to_stored(kind: Kind, obj: Object) -> Object:
    """The object in its stored version; changes `obj`, unless it is in that version already."""
    group = kind.group if kind.storage_group is None else kind.storage_group
    version = kind.storage_version or kind.version
    if version == kind.version and group == kind.group:
        return obj
    api_version = f"{group}/{version}" if group else version
    if kind.to_storage is not None and obj["apiVersion"] != api_version:
        kind.to_storage(obj)
    obj["apiVersion"] = api_version
    return obj


def body_size(call: Call) -> int:
    """The size of the body, weighted by the cost of parsing it."""
    yaml = "yaml" in call.headers.get("content-type", "")
    return len(call.body) * _YAML_EFFORT if yaml else len(call.body)


async def read_object(api: Api, call: Call, validation: str) -> Object:
    """The object in the body, of the call's kind, its types checked. Raises 400 and 415."""
    size = body_size(call)
    api.admit(call, size)
    return await api.run(call, size, _read_object, call, validation)


def _read_object(call: Call, validation: str) -> Object:
    kind = call.kind
    obj, duplicates = decode_body(call.body, call.headers.get("content-type", ""), kind.kind)
    obj = {} if obj is None else obj
    if not isinstance(obj, dict):
        what = {list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
        text = f"json: cannot unmarshal {what} into an object with apiVersion and kind"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {text}")

    def refuse(text: str) -> ApiError:
        name, api_version = str(obj.get("kind") or kind.kind), str(obj.get("apiVersion") or kind.api_version)
        version = api_version.rpartition("/")[2]
        return status.bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {text}')

    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field) or "", str):
            raise _unnamed(kind, call.body, field, obj[field])
    if not kind.builtin:
        _check_custom(kind, obj, call.body)
    return check_object(call, kind, obj, validation, refuse, duplicates)


def _unnamed(kind: Kind, body: bytes, field: str, value: Any) -> ApiError:
    shown = body.decode(errors="replace")
    shown = f"{shown[:30]} ..." if len(shown) > 30 else shown
    why = f"json: cannot unmarshal {metadata.json_type(value)} into Go struct field .{field} of type string ({shown})"
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; json parse error: {why}"
    )


def _check_custom(kind: Kind, obj: Object, body: bytes) -> None:
    """Bodies of custom resources must have kind and version, unlike those of built-in ones."""
    if not obj.get("kind"):
        text = body.decode(errors="replace")
        why = f"Object 'Kind' is missing in '{text}' ({text[:30]} ...)"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {why}")
    if obj.get("apiVersion") != kind.api_version:
        expected = f"the expected API version ({kind.api_version})"
        raise status.bad_request(
            f"the API version in the data ({obj.get('apiVersion') or ''}) does not match {expected}"
        )


def check_object(
    call: Call,
    kind: Kind,
    obj: Object,
    validation: str,
    refuse: Callable[[str], ApiError],
    duplicates: Sequence[str] = (),
) -> Object:
    """Version, kind, metadata and field types; unknown and duplicate fields as `fieldValidation` says.

    `refuse` makes the error.
    """
    api_version = obj.get("apiVersion") or kind.api_version
    name = obj.get("kind") or kind.kind
    fits = api_version == kind.api_version and name == kind.kind
    named = isinstance(name, str) and isinstance(api_version, str) and api_version.count("/") < 2
    if not fits and (kind.builtin or not named):
        raise refuse(_mismatch(kind, obj, api_version, name))
    wrong = metadata.check_types(obj)
    if wrong is not None:
        raise refuse(kind.strategy.unreadable(obj) or wrong)
    decoded = kind.strategy.decode(obj) if fits else _decode_other(kind, obj)
    # apiVersion and kind come first in every stored object; the rest keeps its order.
    ordered: Object = {"apiVersion": api_version, "kind": name, "metadata": obj["metadata"]}
    ordered.update((key, value) for key, value in obj.items() if key not in ordered)
    if decoded.mistyped:
        raise refuse(decoded.mistyped[0])
    if (decoded.unknown or duplicates) and validation != "Ignore":
        found = [*duplicates, *(f"unknown field {quoted(path)}" for path in decoded.unknown)]
        if validation == "Strict":
            raise refuse(f"strict decoding error: {', '.join(found)}")
        call.warnings.extend(line.strip() for text in found for line in text.removeprefix(YAML_ERRORS).split("\n"))
    return ordered


def _decode_other(kind: Kind, obj: Object) -> Decoded:
    """A custom resource of a wrong kind or version, which validation will report.

    The fields of another kind are unknown, and another version of its own kind has none.
    """
    if obj.get("kind") != kind.kind or obj["apiVersion"].rpartition("/")[0] != kind.group:
        return Decoded()
    unknown = tuple(sorted(key for key in obj if key not in ("apiVersion", "kind", "metadata")))
    for key in unknown:
        del obj[key]
    return Decoded(unknown)


def misnamed(kind: Kind, obj: Object) -> list[FieldError]:
    """The errors of a custom resource with a wrong kind or version. Its other rules are not checked then."""
    errors = []
    if obj["kind"] != kind.kind:
        errors.append(invalid("kind", obj["kind"], f"must be {kind.kind}"))
    if obj["apiVersion"] != kind.api_version:
        errors.append(invalid("apiVersion", obj["apiVersion"], f"must be {kind.api_version}"))
    return errors + kind.strategy.validate_parts(obj) if errors else []


def refused(obj: Object, errors: Sequence[FieldError]) -> ApiError:
    """422, about a wrong kind or version."""
    group = obj["apiVersion"].rpartition("/")[0]
    return status.invalid_kind(group, obj["kind"], obj["metadata"].get("name", ""), errors)


def _mismatch(kind: Kind, obj: Object, api_version: Any, name: Any) -> str:
    """A body is decoded by its own kind, and only then found to be the wrong one."""
    if str(api_version).count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    group, _, version = str(api_version).rpartition("/")
    # Definitions and API services have schemes of their own, which do not know other kinds.
    apart = kind.group in _OWN_SCHEMES and group != kind.group
    type = None if apart else schema.load().kind(group, version, str(name))
    if type is None:
        return f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if mistyped := typecheck.check(type, obj).mistyped:
        return mistyped[0]
    if name == kind.kind and group == kind.group:
        expected = f"the expected API version ({kind.api_version})"
        return f"the API version in the data ({api_version}) does not match {expected}"
    internal = "core" if kind.storage_key == "core/events" else kind.group.partition(".")[0] or "core"
    return f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"
