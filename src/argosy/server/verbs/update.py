"""update: replace an object (PUT), or one of its parts through /status, /finalize and the like.

`save` is the one way an existing object changes: patch and scale end in it too. It is compare-and-set against the entry the
new object was made from; a write that changes nothing keeps the version, and removing the last finalizer of an object that is
being deleted deletes it.
"""

from collections.abc import Callable

import orjson

from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import metadata, status
from argosy.server.entry import Entry, object_key, served
from argosy.server.fielderrors import invalid
from argosy.server.registry import Kind, Object
from argosy.server.request import Call
from argosy.server.storage.base import Changed
from argosy.server.verbs.base import Api, answer, decode_served, misnamed, read_object, refused
from argosy.server.verbs.commit import encoded, encoder, reply
from argosy.server.verbs.create import insert

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
#: Tries of a write that names no version when others write the same object at the same time.
TRIES = 16


async def update(api: Api, call: Call) -> Response:
    options = call.write_options("UpdateOptions")
    sent = read_object(call, options.validation)
    check_name(call, sent)
    key = object_key(call.kind, call.namespace, call.name)
    encoded = orjson.dumps(sent)
    for _ in range(TRIES):
        entry = api.store.get(key)
        if entry is None:
            if call.kind.strategy.create_on_update:
                _check_absent(call, sent["metadata"], dry_run=options.dry_run)
                return await insert(api, call, sent, dry_run=options.dry_run)
            raise status.not_found(call.kind, call.name)
        # The object changes on its way, and another try starts from what was sent.
        saved = await save(api, call, orjson.loads(encoded), entry, dry_run=options.dry_run)
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
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


async def save(api: Api, call: Call, new: Object, entry: Entry, *, dry_run: bool) -> Response | None:
    """Write `new` over `entry`. None: somebody else wrote first, and the caller named no version, so it may try again."""
    kind = call.kind
    conditional = _check_preconditions(call, new, entry, dry_run=dry_run)
    old = decode_served(kind, entry)
    kind.strategy.default(new)
    _prepare(call.subresource, kind)(new, old)
    metadata.fill_update(kind, new, old)
    if not dry_run:
        new["metadata"].pop("selfLink", None)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    try:
        _check(api, call, new, old)
        finishes = "deletionTimestamp" in new["metadata"] and not held(kind, new)
        if dry_run or (not finishes and kind.strategy.same(new, old)):
            api.admission.abandon(call, new, old)
            return answer(call, encoded(kind, new) if dry_run else served(kind, entry))
        if finishes:
            # Watchers are told what was stored last; the writer gets the object as it wrote it.
            await api.store.delete(entry.key, entry.version, encoder(kind, old))
            return answer(call, encoded(kind, new))
        record = await api.store.replace(entry.key, entry.version, encoder(kind, new))
    except Changed as changed:
        api.admission.abandon(call, new, old)
        if conditional or changed.current is None:
            raise status.conflict(kind, call.name) from None
        return None
    except BaseException:
        api.admission.abandon(call, new, old)
        raise
    return answer(call, reply(kind, record))


def _check(api: Api, call: Call, new: Object, old: Object) -> None:
    """Admit, validate and number a prepared update. Raises 422, and what admission says."""
    kind = call.kind
    errors = metadata.validate_update(kind, new, old)
    if wrong := misnamed(kind, new):
        raise refused(new, errors + wrong)
    if kind.strategy.validates_prefix and not call.subresource:
        errors += metadata.validate_prefix(kind, new)
    if call.subresource in _STATUS:
        errors += kind.strategy.validate_status(new, old)
    else:
        api.admission.update(call, new, old)
        if wrong := api.admission.prepare(call, new, old):
            raise status.invalid(kind, call.name, wrong)
        errors += kind.strategy.validate_update(new, old)
    if errors:
        raise status.invalid(kind, call.name, errors)
    kind.strategy.settle(new)
    if call.subresource in _STATUS:
        return  # nothing written there is a new generation, not even where annotations otherwise count
    api.admission.settle(call, new, old)
    meta = new["metadata"]
    if kind.strategy.generation and "generation" in meta and kind.strategy.generation_grows(new, old):
        meta["generation"] += 1
    call.warnings += kind.strategy.warnings(new, old)


def held(kind: Kind, obj: Object) -> bool:
    """Something still has to happen before an object that is being deleted may go."""
    meta = obj["metadata"]
    if meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return True
    return kind.storage_key == "core/namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _check_absent(call: Call, meta: Object, *, dry_run: bool) -> None:
    """What a PUT that creates may say of the object it thought was there."""
    if meta.get("uid"):
        raise _other_uid(call, meta["uid"], "", dry_run=dry_run)
    _version(meta)
    if not dry_run:
        meta.pop("resourceVersion", None)


def _check_preconditions(call: Call, new: Object, entry: Entry, *, dry_run: bool) -> bool:
    """Whether the writer named the version it saw. Raises 409 when that, or the uid, is no longer the object's."""
    kind, meta = call.kind, new["metadata"]
    uid = meta.get("uid")
    if uid and uid != entry.uid and call.verb == "update":
        raise _other_uid(call, uid, entry.uid, dry_run=dry_run)
    wanted = _version(meta)
    if not wanted:
        if not kind.strategy.unconditional_update and call.verb == "update":
            raise version_required(call)
        return False
    if wanted != entry.version:
        raise status.conflict(kind, call.name)
    return True


def _version(meta: Object) -> int:
    """The version a writer names; 0: none."""
    wanted = meta.get("resourceVersion") or "0"
    if not wanted.isascii() or not wanted.isdigit():
        raise status.plain(500, f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
    return int(wanted)


def _other_uid(call: Call, wanted: str, found: str, *, dry_run: bool) -> ApiError:
    """The one error in which kube-apiserver tells the key it has the object under."""
    plural = call.kind.plural
    resource = _REGISTRY_NAMES.get(plural, plural) if call.kind.builtin else f"{call.kind.group}/{plural}"
    # A dry run ends before the place of all keys is put in front of this one.
    prefix = "" if dry_run else "/registry"
    key = "/".join([prefix, *(part for part in (resource, call.namespace, call.name) if part)])
    failed = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    told = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {failed}"
    return status.conflict(call.kind, call.name, told)


def version_required(call: Call) -> ApiError:
    error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
    # The resource where the kind should be, as kube-apiserver says it.
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
