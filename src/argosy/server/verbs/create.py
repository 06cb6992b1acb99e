"""create: a new object, defaulted, admitted, validated, then committed."""

from argosy.kube import names
from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import metadata, status
from argosy.server.fielderrors import FieldError
from argosy.server.http.request import Call
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Exists, Record
from argosy.server.verbs.base import Api, answer, fill_defaults, misnamed, read_object, refused
from argosy.server.verbs.commit import Parts, encoded, encoder, parts, reply
from argosy.server.watchcache.entry import object_key

__all__ = ["create", "insert"]

#: Random names that are tried before the request fails.
GENERATE_TRIES = 8


async def create(api: Api, call: Call) -> Response:
    options = call.write_options("CreateOptions")
    obj = await read_object(api, call, options.validation)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        # Only here: a PUT that creates keeps them, as in kube-apiserver.
        obj["metadata"].pop(field, None)
    return await insert(api, call, obj, dry_run=options.dry_run)


async def insert(api: Api, call: Call, obj: Object, *, dry_run: bool) -> Response:
    """Create `obj`, which was read and type-checked; also the second half of a PUT that creates."""
    _check_place(call, obj)
    kind, size = call.kind, len(call.body)
    version = obj["metadata"].pop("resourceVersion", "")
    if not dry_run:
        obj["metadata"].pop("selfLink", None)
    await api.run(call, size, fill_defaults, kind, obj, size)
    api.admission.create(call, obj)
    try:
        generated = await api.run(call, size, _prepare, kind, obj)
        if errors := api.admission.prepare(call, obj, None):
            raise status.invalid(kind, obj["metadata"]["name"], errors)
        await api.run(call, size, _check, kind, obj)
        if version.strip("0").isdecimal() and not dry_run:
            raise status.plain(500, "resourceVersion should not be set on objects to be created")
        call.warnings.extend(await api.run(call, size, kind.strategy.warnings, obj))
        if dry_run:
            api.admission.settle(call, obj, None)
            if api.store.get(object_key(kind, call.namespace, obj["metadata"]["name"])) is not None:
                raise _taken(kind, obj["metadata"])
            api.admission.abandon(call, obj, None)
            if version:
                obj["metadata"]["resourceVersion"] = version
            return answer(call, await api.run(call, size, encoded, kind, obj), 201)
        made: Parts = {}
        if api.large(call, size):
            made = await api.run(call, size, parts, kind, obj)
            # Others wrote meanwhile; from here on nobody does.
            api.admission.create(call, obj)
        api.admission.settle(call, obj, None)
        record = await _commit(api, call, obj, made, generated=generated)
    except BaseException:
        api.admission.abandon(call, obj, None)
        raise
    return answer(call, await reply(api, call, record), 201)


def _prepare(kind: Kind, obj: Object) -> bool:
    """Set the server's fields. Returns whether the name was generated."""
    generated = _name(obj["metadata"])
    metadata.fill_new(kind, obj)
    kind.strategy.prepare_create(obj)
    if wrong := misnamed(kind, obj):
        raise refused(obj, wrong)
    return generated


def _check(kind: Kind, obj: Object) -> None:
    if errors := _validate(kind, obj):
        raise status.invalid(kind, obj["metadata"]["name"], errors)
    kind.strategy.settle(obj)


def _validate(kind: Kind, obj: Object) -> list[FieldError]:
    errors = kind.strategy.validate(obj)
    return errors if errors and kind.strategy.metadata_last else metadata.validate(kind, obj) + errors


def _name(meta: Object) -> bool:
    """Generate a name if a prefix was given. Returns whether one was."""
    if meta.setdefault("name", "") or not meta.get("generateName"):
        return False
    meta["name"] = names.generate(meta["generateName"])
    return True


def _check_place(call: Call, obj: Object) -> None:
    meta = obj["metadata"]
    if not meta.get("namespace") or not call.kind.namespaced:
        meta.pop("namespace", None)
    if call.kind.namespaced and meta.setdefault("namespace", call.namespace) != call.namespace:
        raise status.other_namespace()


async def _commit(api: Api, call: Call, obj: Object, made: Parts, *, generated: bool) -> Record:
    kind, meta = call.kind, obj["metadata"]
    for _ in range(GENERATE_TRIES if generated else 1):
        key = object_key(kind, call.namespace, meta["name"])
        try:
            return await api.store.create(key, encoder(kind, obj, made))
        except Exists:
            taken = meta["name"]
            if generated:
                meta["name"] = names.generate(meta["generateName"])
    present = api.store.get(object_key(kind, call.namespace, taken))
    raise _taken(kind, meta | {"name": taken}, deleting=present is not None and present.deleting)


def _taken(kind: Kind, meta: Object, *, deleting: bool = False) -> ApiError:
    if meta.get("generateName"):
        return status.generated_name_taken(kind, meta["name"])
    return status.already_exists(kind, meta["name"], deleting=deleting)
