"""/scale: get, update and patch of the number of replicas. A write goes through the scaled object's own update."""

from collections.abc import Callable

import msgspec
import orjson

from argosy.kube.errors import BadRequest
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.subresources.scale import SCALE, read_scale, write_scale
from argosy.server.verbs.base import Api, answer, check_object, current, decode_served, read_object
from argosy.server.verbs.patch import patcher, unreadable
from argosy.server.verbs.update import TRIES, check_name, save
from argosy.server.watchcache.entry import Entry

__all__ = ["scale"]


async def scale(api: Api, call: Call) -> Response:
    if call.verb == "get":
        entry = current(api, call)
        obj = await api.run(call, len(entry.value), decode_served, call.kind, entry)
        return answer(call, orjson.dumps(read_scale(call.kind, obj)))
    if call.verb == "update":
        options = call.write_options("UpdateOptions")
        sent = await _read(api, call, options.validation)
        return await _write(api, call, lambda shown: sent, dry_run=options.dry_run)
    if call.verb == "patch":
        options = call.write_options("PatchOptions")
        size = len(call.body)
        api.admit(call, size)
        read = await api.run(call, size, patcher, SCALE, call.headers.get("content-type", ""), call.body)
        return await _write(
            api, call, lambda shown: _patched(read.apply, shown), dry_run=options.dry_run, effort=read.effort
        )
    raise status.method_not_allowed()


async def _read(api: Api, call: Call, validation: str) -> Object:
    try:
        return await read_object(api, call.but(kind=SCALE), validation)
    except BadRequest:
        if call.kind.builtin:
            raise
        # kube-apiserver gives no details about an invalid Scale of a custom resource.
        text = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
        raise status.bad_request(text) from None


def _patched(apply: Callable[[Object], object], shown: Object) -> Object:
    # Only a resourceVersion in the patch itself is a precondition.
    del shown["metadata"]["resourceVersion"]
    new = apply(shown)
    if not isinstance(new, dict):
        raise status.rejected()
    return new


async def _write(
    api: Api,
    call: Call,
    change: Callable[[Object], Object],
    *,
    dry_run: bool,
    effort: Callable[[int], int] = lambda size: size,
) -> Response:
    for _ in range(TRIES):
        entry = current(api, call)
        size = effort(len(entry.value) + len(call.body))
        obj = await api.run(call, size, _scaled, call, change, entry)
        saved = await save(api, call.but(verb="patch", subresource=""), obj, entry, dry_run=dry_run)
        if saved is not None:
            shown = read_scale(call.kind, await api.run(call, len(saved.body), orjson.loads, saved.body))
            return msgspec.structs.replace(saved, body=orjson.dumps(shown))
    raise status.conflict(call.kind, call.name)


def _scaled(call: Call, change: Callable[[Object], Object], entry: Entry) -> Object:
    obj = decode_served(call.kind, entry)
    shown = change(read_scale(call.kind, obj))
    refuse = unreadable(shown) if call.verb == "patch" else status.bad_request
    wanted = check_object(call, SCALE, shown, "Ignore", refuse)
    check_name(call, wanted)
    errors = SCALE.strategy.validate(wanted)
    if errors:
        raise status.invalid(SCALE, call.name, errors)
    write_scale(call.kind, obj, wanted)
    return obj
