"""patch: JSON patch, merge patch and strategic merge patch, applied to the newest state and saved like an update.

A patch that names no resourceVersion is tried again when somebody else wrote in between. Server-side apply is not there yet
and says so.
"""

from collections.abc import Callable
from typing import Any

import orjson

from argosy.kube import jsonpatch, mergepatch, strategic
from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.encoding import media_type
from argosy.server.entry import object_key
from argosy.server.fielderrors import invalid
from argosy.server.metadata import METADATA_FIELDS, check_types
from argosy.server.registry import Kind, Object
from argosy.server.request import Call
from argosy.server.verbs.base import Api, check_object, decode_served
from argosy.server.verbs.update import TRIES, check_name, save, version_required

__all__ = ["patch", "patcher", "unreadable"]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_CUSTOM_PATCHES = f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}"

Patcher = Callable[[Object], Any]


async def patch(api: Api, call: Call) -> Response:
    options = call.write_options("PatchOptions")
    apply = patcher(call.kind, call.headers.get("content-type", ""), call.body)
    key = object_key(call.kind, call.namespace, call.name)
    warned = list(call.warnings)
    for _ in range(TRIES):
        entry = api.store.get(key)
        if entry is None:
            raise status.not_found(call.kind, call.name)
        old = decode_served(call.kind, entry)
        version = old["metadata"]["resourceVersion"]
        patched = apply(old)
        if not isinstance(patched, dict):
            raise status.rejected()
        if not call.kind.builtin and not patched.get("kind"):
            raise unreadable(patched)("Object 'Kind' is missing")
        unknown = [] if patched.get("apiVersion") else _lose_version(call, patched)
        new = check_object(call, call.kind, patched, options.validation, unreadable(patched), unknown)
        check_name(call, new)
        if not new["metadata"].get("resourceVersion") and not call.kind.strategy.unconditional_update:
            raise version_required(call)
        # The version that was read is not a wish of the caller's; only one the patch itself set is.
        if new["metadata"].get("resourceVersion") == version and not _names_version(call, version):
            del new["metadata"]["resourceVersion"]
        saved = await save(api, call, new, entry, dry_run=options.dry_run)
        if saved is not None:
            return saved
        call.warnings[:] = warned
    raise status.conflict(call.kind, call.name)


def _lose_version(call: Call, patched: Object) -> list[str]:
    """What a patch that takes away the apiVersion leaves of an object; tells what is no longer known.

    kube-apiserver then reads a built-in one into its internal type, in which the fields have no names in JSON, and those of
    metadata stand beside all others. With a custom one it does not know what to do.
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
    """A patch that makes the object unreadable: kube-apiserver shows what became of it, and names neither kind nor object."""
    shown = orjson.dumps(patched).decode()
    return lambda text: status.invalid_kind("", "", "", [invalid("patch", shown, text)])


def _names_version(call: Call, version: str) -> bool:
    return b"resourceVersion" in call.body and version.encode() in call.body


def patcher(kind: Kind, content_type: str, body: bytes) -> Patcher:
    """The function that applies this patch. Raises 400 for one that cannot be read, 415 for an unknown form."""
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
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
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
        except jsonpatch.JsonPatchError:
            raise status.rejected() from None

    return apply


def _merge_patcher(changes: Object) -> Patcher:
    return lambda obj: mergepatch.apply(obj, changes)


def _strategic_patcher(changes: Object, type: Any) -> Patcher:
    def apply(obj: Object) -> Any:
        identity = {key: obj[key] for key in ("apiVersion", "kind")}
        try:
            # What an object is comes from its place; only the other forms of patches are read as objects again.
            return strategic.apply(obj, changes, type) | identity
        except strategic.StrategicPatchError as error:
            raise status.plain(500, str(error)) from None

    return apply
