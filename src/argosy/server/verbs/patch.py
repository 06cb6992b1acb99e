"""patch: JSON patch, merge patch and strategic merge patch, applied to the newest state and saved like an update.

A patch without a resourceVersion is retried if somebody else wrote in between. Server-side apply is not implemented yet and
returns an error.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from argosy.kube import jsonpatch, jsonreader, mergepatch, strategic
from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.fielderrors import invalid
from argosy.server.http.encoding import media_type
from argosy.server.http.limits import MAX_BYTES
from argosy.server.http.request import Call
from argosy.server.metadata import METADATA_FIELDS, check_types, json_type
from argosy.server.registry import Kind, Object
from argosy.server.verbs.base import Api, check_object, decode_served
from argosy.server.verbs.update import TRIES, check_name, save, version_required
from argosy.server.watchcache.entry import Entry, object_key

__all__ = ["patch", "patcher", "unreadable"]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_CUSTOM_PATCHES = f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}"


class Patcher(msgspec.Struct, frozen=True):
    """A parsed patch; `apply` patches an object."""

    apply: Callable[[Object], Any]
    #: Operations that may each copy the whole object.
    copies: int = 0

    def effort(self, size: int) -> int:
        """The cost of applying it, for so many bytes of patch and object together."""
        return size + min(size * self.copies, jsonpatch.MAX_COPIED_BYTES)


async def patch(api: Api, call: Call) -> Response:
    options = call.write_options("PatchOptions")
    api.admit(call, len(call.body))
    change = await api.run(call, len(call.body), patcher, call.kind, call.headers.get("content-type", ""), call.body)
    key = object_key(call.kind, call.namespace, call.name)
    warned = list(call.warnings)
    for _ in range(TRIES):
        entry = api.store.get(key)
        if entry is None:
            raise status.not_found(call.kind, call.name)
        effort = change.effort(len(call.body) + len(entry.value))
        new, size = await api.run(call, effort, _patched, call, change, entry, options.validation)
        saved = await save(api, call, new, entry, dry_run=options.dry_run, size=size)
        if saved is not None:
            return saved
        call.warnings[:] = warned
    raise status.conflict(call.kind, call.name)


def _patched(call: Call, change: Patcher, entry: Entry, validation: str) -> tuple[Object, int]:
    """The object with the patch applied, checked, and its size."""
    old = decode_served(call.kind, entry)
    version = old["metadata"]["resourceVersion"]
    patched = change.apply(old)
    if not isinstance(patched, dict):
        raise status.rejected()
    if jsonreader.is_deep(patched):
        raise status.bad_request(f"the patch makes an object that is {jsonreader.TOO_DEEP}")
    size = len(orjson.dumps(patched))
    if size > max(MAX_BYTES, len(entry.value)):
        raise status.too_large(MAX_BYTES)
    if not call.kind.builtin and not patched.get("kind"):
        raise unreadable(patched)("Object 'Kind' is missing")
    named = patched.get("apiVersion")
    if not call.kind.builtin and not isinstance(named, str | None):
        raise unreadable(patched)(
            f"json: cannot unmarshal {json_type(named)} into Go struct field .apiVersion of type string"
        )
    unknown = _lose_version(call, patched) if named in (None, "") else []
    new = check_object(call, call.kind, patched, validation, unreadable(patched), unknown)
    check_name(call, new)
    if not new["metadata"].get("resourceVersion") and not call.kind.strategy.unconditional_update:
        raise version_required(call)
    # The version that was read is not a precondition of the caller; only one the patch itself sets is.
    if new["metadata"].get("resourceVersion") == version and not _names_version(call, version):
        del new["metadata"]["resourceVersion"]
    return new, size


def _lose_version(call: Call, patched: Object) -> list[str]:
    """The rest of an object after a patch removed its apiVersion; reports the unknown fields.

    kube-apiserver then decodes a built-in object into its internal type, whose fields have no JSON names, with those of
    metadata beside all others. A custom one it cannot decode.
    """
    if not call.kind.builtin:
        wrong = check_types(patched)
        if wrong is not None:
            raise unreadable(patched)(wrong)
        check_name(call, patched)
        raise status.internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    fields = {key: value for key, value in patched.items() if key not in ("apiVersion", "kind")}
    for key in fields:
        del patched[key]
    patched["metadata"] = {key: value for key, value in fields.items() if key in METADATA_FIELDS}
    return [f'unknown field "{key}"' for key in sorted(fields) if key not in METADATA_FIELDS]


def unreadable(patched: Object) -> Callable[[str], ApiError]:
    """A patch that makes the object unreadable: kube-apiserver shows the result, and names neither kind nor object."""

    def refuse(text: str) -> ApiError:
        return status.invalid_kind("", "", "", [invalid("patch", orjson.dumps(patched).decode(), text)])

    return refuse


def _names_version(call: Call, version: str) -> bool:
    return b"resourceVersion" in call.body and version.encode() in call.body


def patcher(kind: Kind, content_type: str, body: bytes) -> Patcher:
    """The patch in a body. Raises 400 for one that cannot be read, 415 for an unknown form."""
    form = media_type(content_type)
    type = getattr(kind.strategy, "type", None)
    if form == APPLY_PATCH:
        raise status.not_implemented(
            "server-side apply is not served yet; use kubectl apply without --server-side, or another patch type"
        )
    if form == JSON_PATCH:
        return _json_patcher(_decode(body))
    if form == MERGE_PATCH:
        return _merge_patcher(_object(_decode(body)))
    if form == STRATEGIC_PATCH and type is not None:
        return _strategic_patcher(_object(_decode(body)), type)
    raise status.unsupported_patch_type() if kind.builtin else status.unsupported_media_type(_CUSTOM_PATCHES)


def _decode(body: bytes) -> Any:
    try:
        return jsonreader.read(body)
    except jsonreader.JsonError as error:
        text = str(error)
        text = "unexpected end of JSON input" if text.startswith("unexpected end of data") else text
        raise status.bad_request(f"error decoding patch: {text}") from None


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        what = "array" if isinstance(value, list) else "a scalar"
        text = f"json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: {text}")
    return value


def _json_patcher(operations: Any) -> Patcher:
    if not isinstance(operations, list):
        text = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        raise status.bad_request(f"error decoding patch: {text}")

    def apply(obj: Object) -> Any:
        try:
            return jsonpatch.apply(obj, operations)
        except jsonpatch.TooManyOperations as error:
            raise status.too_large_patch(str(error)) from None
        except jsonpatch.MalformedPatch as error:
            raise status.bad_request(str(error)) from None
        except jsonpatch.JsonPatchError:
            raise status.rejected() from None

    copies = sum(isinstance(operation, dict) and operation.get("op") == "copy" for operation in operations)
    return Patcher(apply, copies)


def _merge_patcher(changes: Object) -> Patcher:
    return Patcher(lambda obj: mergepatch.apply(obj, changes))


def _strategic_patcher(changes: Object, type: Any) -> Patcher:
    def apply(obj: Object) -> Any:
        identity = {key: obj[key] for key in ("apiVersion", "kind")}
        try:
            # The object's kind follows from its place; only the other kinds of patches are decoded as objects again.
            return strategic.apply(obj, changes, type) | identity
        except strategic.StrategicPatchError as error:
            raise status.plain(500, str(error)) from None

    return Patcher(apply)
