"""update: replace an object (PUT), or one of its parts through /status, /finalize and the like.

All changes of existing objects go through `save`: patch and scale, too. It is compare-and-set against the entry that the new
object was made from; a write that changes nothing keeps the version, and removing the last finalizer of an object that is being
deleted deletes it.
"""

from collections.abc import Callable

import orjson

from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import metadata, status
from argosy.server.auth.identity import Attributes
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.http.limits import MAX_BYTES
from argosy.server.http.request import Call
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Changed
from argosy.server.strconv import parse_uint
from argosy.server.verbs.base import Api, answer, decode_served, fill_defaults, misnamed, read_object, refused
from argosy.server.verbs.commit import encoded, encoder, parts, reply
from argosy.server.verbs.create import insert
from argosy.server.watchcache.entry import Entry, object_key, served

__all__ = ["check_name", "held", "save", "update", "version_required"]

#: Subresources through which the status is written.
_STATUS = {"status", "approval"}
#: Resources that kube-apiserver keeps under another name.
_REGISTRY_NAMES = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
#: Retries of a write without a resourceVersion while others write the same object.
TRIES = 16


async def update(api: Api, call: Call) -> Response:
    options = call.write_options("UpdateOptions")
    sent = await read_object(api, call, options.validation)
    check_name(call, sent)
    key = object_key(call.kind, call.namespace, call.name)
    encoded = orjson.dumps(sent)
    for _ in range(TRIES):
        entry = api.store.get(key)
        if entry is None:
            if call.kind.strategy.create_on_update:
                _authorize_create(api, call)
                _check_absent(call, sent["metadata"], dry_run=options.dry_run)
                return await insert(api, call, sent, dry_run=options.dry_run)
            raise status.not_found(call.kind, call.name)
        # The object is changed on its way, and a retry starts from what was sent.
        new = await api.run(call, len(encoded), orjson.loads, encoded)
        saved = await save(api, call, new, entry, dry_run=options.dry_run)
        if saved is not None:
            return saved
    raise status.conflict(call.kind, call.name)


def check_name(call: Call, obj: Object) -> None:
    meta = obj["metadata"]
    name = meta.get("name", "")
    if not name:
        text = f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(text)
    if name != call.name:
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if not meta.get("namespace") or not call.kind.namespaced:
        meta.pop("namespace", None)
    if call.kind.namespaced and meta.setdefault("namespace", call.namespace) != call.namespace:
        raise status.other_namespace()


async def save(api: Api, call: Call, new: Object, entry: Entry, *, dry_run: bool, size: int = 0) -> Response | None:
    """Write `new` over `entry`. None: somebody else wrote first, and without a resourceVersion the caller may retry.

    `size` is that of `new`, if it may be larger than the body and the stored object.
    """
    kind, size = call.kind, max(len(call.body), len(entry.value), size)
    _check_uid(call, new, entry, dry_run=dry_run)
    old = await api.run(call, size, _defaulted, call, new, entry, size)
    if not call.subresource:
        api.admission.authorize_update(call, new, old)
    conditional = _check_version(call, new, entry)
    await api.run(call, size, _fill, call, new, old)
    if not dry_run:
        new["metadata"].pop("selfLink", None)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    try:
        await _check(api, call, new, old, size)
        finishes = "deletionTimestamp" in new["metadata"] and not held(kind, new)
        if dry_run or (not finishes and await api.run(call, size, kind.strategy.same, new, old)):
            api.admission.abandon(call, new, old)
            body = api.run(call, size, encoded, kind, new) if dry_run else api.run(call, size, served, kind, entry)
            return answer(call, await body)
        going = old if finishes else new
        made = await api.run(call, size, parts, kind, going) if api.large(call, size) else {}
        if finishes:
            # Watchers get the last stored state; the writer gets the object as written.
            await api.store.delete(entry.key, entry.version, encoder(kind, old, made))
            return answer(call, await api.run(call, size, encoded, kind, new))
        if made and call.subresource not in _STATUS:
            api.admission.settle(call, new, old)  # again: others wrote meanwhile, and from here on nobody does
        # Urgent on a full disk: an object being deleted frees its space with its last finalizer.
        urgent = "deletionTimestamp" in new["metadata"]
        record = await api.store.replace(entry.key, entry.version, encoder(kind, new, made), urgent=urgent)
    except Changed as changed:
        api.admission.abandon(call, new, old)
        if conditional or changed.current is None:
            raise status.conflict(kind, call.name) from None
        return None
    except BaseException:
        api.admission.abandon(call, new, old)
        raise
    return answer(call, await reply(api, call, record))


def _defaulted(call: Call, new: Object, entry: Entry, size: int) -> Object:
    """The stored object; the new one is defaulted on the way."""
    old = decode_served(call.kind, entry)
    fill_defaults(call.kind, new, size, max(MAX_BYTES, len(entry.value)))
    return old


def _fill(call: Call, new: Object, old: Object) -> None:
    """Immutable fields, and those that cannot be written here, come from the stored object."""
    _prepare(call.subresource, call.kind)(new, old)
    metadata.fill_update(call.kind, new, old)


async def _check(api: Api, call: Call, new: Object, old: Object, size: int) -> None:
    """Admit, validate and number a prepared update. Raises 422, and admission's errors."""
    errors = await api.run(call, size, _check_metadata, call, new, old)
    api.admission.update(call, new, old)
    if call.subresource not in _STATUS and (wrong := api.admission.prepare(call, new, old)):
        raise status.invalid(call.kind, call.name, wrong)
    await api.run(call, size, _validate, call, new, old, errors)
    if call.subresource in _STATUS:
        return  # nothing written there is a new generation, not even where annotations otherwise count
    api.admission.settle(call, new, old)
    await api.run(call, size, _number, call, new, old)


def _check_metadata(call: Call, new: Object, old: Object) -> list[FieldError]:
    kind = call.kind
    errors = metadata.validate_update(kind, new, old)
    if wrong := misnamed(kind, new):
        raise refused(new, errors + wrong)
    if kind.strategy.validates_prefix and not call.subresource:
        errors += metadata.validate_prefix(kind, new)
    return errors


def _validate(call: Call, new: Object, old: Object, errors: list[FieldError]) -> None:
    strategy = call.kind.strategy
    validate = strategy.validate_status if call.subresource in _STATUS else strategy.validate_update
    errors += validate(new, old)
    if errors:
        raise status.invalid(call.kind, call.name, errors)
    strategy.settle(new)


def _number(call: Call, new: Object, old: Object) -> None:
    meta, strategy = new["metadata"], call.kind.strategy
    if strategy.generation and "generation" in meta and strategy.generation_grows(new, old):
        meta["generation"] += 1
    call.warnings.extend(strategy.warnings(new, old))


def held(kind: Kind, obj: Object) -> bool:
    """Whether something must still happen before an object that is being deleted may go."""
    meta = obj["metadata"]
    if meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return True
    return kind.storage_key == "core/namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _authorize_create(api: Api, call: Call) -> None:
    """The right to update does not include the right to create. Raises 403."""
    attributes = Attributes(
        user=call.user,
        verb="create",
        group=call.kind.group,
        version=call.kind.version,
        resource=call.kind.plural,
        subresource=call.subresource,
        namespace=call.namespace,
        name=call.name,
    )
    decision = api.authorizer.authorize(attributes)
    if not decision.allowed:
        raise status.denied(attributes, decision.reason)


def _check_absent(call: Call, meta: Object, *, dry_run: bool) -> None:
    """What a PUT that creates may say about the expected object."""
    if meta.get("uid"):
        raise _other_uid(call, meta["uid"], "", dry_run=dry_run)
    _version(meta)
    if not dry_run:
        meta.pop("resourceVersion", None)


def _check_uid(call: Call, new: Object, entry: Entry, *, dry_run: bool) -> None:
    """Raises 409 if the writer named another uid than the object's."""
    uid = new["metadata"].get("uid")
    if uid and uid != entry.uid and call.verb == "update":
        raise _other_uid(call, uid, entry.uid, dry_run=dry_run)


def _check_version(call: Call, new: Object, entry: Entry) -> bool:
    """Whether the writer named the version it saw. Raises 409 if that is no longer the object's."""
    kind = call.kind
    wanted = _version(new["metadata"])
    if not wanted:
        if not kind.strategy.unconditional_update and call.verb == "update":
            raise version_required(call)
        return False
    if wanted != entry.version:
        raise status.conflict(kind, call.name)
    return True


def _version(meta: Object) -> int:
    """The version a writer names; 0: none."""
    try:
        return parse_uint(meta.get("resourceVersion") or "0")
    except ValueError as error:
        raise status.plain(500, str(error)) from None


def _other_uid(call: Call, wanted: str, found: str, *, dry_run: bool) -> ApiError:
    """The one error in which kube-apiserver shows the object's storage key."""
    plural = call.kind.plural
    resource = _REGISTRY_NAMES.get(plural, plural) if call.kind.builtin else f"{call.kind.group}/{plural}"
    # A dry run ends before the common prefix of all keys is added.
    prefix = "" if dry_run else "/registry"
    key = "/".join([prefix, *(part for part in (resource, call.namespace, call.name) if part)])
    failed = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    told = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {failed}"
    return status.conflict(call.kind, call.name, told)


def version_required(call: Call) -> ApiError:
    error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
    # The resource in the place of the kind, as in kube-apiserver.
    return status.invalid_kind(call.kind.group, call.kind.plural, call.name, [error])


def _prepare(subresource: str, kind: Kind) -> Callable[[Object, Object], None]:
    if subresource in _STATUS:
        return kind.strategy.prepare_status
    if subresource == "finalize":
        return _prepare_finalize
    return kind.strategy.prepare_update


def _prepare_finalize(new: Object, old: Object) -> None:
    """/finalize of a namespace changes its spec.finalizers and nothing else."""
    finalizers = (new.get("spec") or {}).get("finalizers")
    version = new["metadata"].get("resourceVersion")
    new.clear()
    new.update(old)
    new["spec"] = {key: value for key, value in (old.get("spec") or {}).items() if key != "finalizers"}
    if finalizers:
        new["spec"]["finalizers"] = finalizers
    new["metadata"] = dict(old["metadata"])
    if version:
        new["metadata"]["resourceVersion"] = version
