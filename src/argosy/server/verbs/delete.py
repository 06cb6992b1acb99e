"""delete: remove an object, or mark it as being deleted while finalizers or a grace period keep it.

Propagation works as in Kubernetes: Orphan and Foreground become finalizers that the garbage collector removes; with Background
the object is deleted at once and the collector finds its dependents afterwards.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import orjson

from argosy.kube import clock
from argosy.kube.timestamps import now, timestamp
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.fielderrors import FieldError, invalid, not_supported
from argosy.server.http.encoding import decode_body
from argosy.server.http.request import Call
from argosy.server.metadata import FOREGROUND, ORPHAN
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Changed
from argosy.server.verbs.base import Api, answer, body_size, decode_served
from argosy.server.verbs.commit import encoder, parts, reply
from argosy.server.verbs.update import TRIES, held
from argosy.server.watchcache.entry import Entry, object_key

__all__ = ["DeleteOptions", "delete", "read_options", "remove"]

_PODS_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
#: The longest grace period of a pod in seconds: the limit of Go's durations, some 292 years.
_LONGEST_GRACE = (2**63 - 1) // 10**9
_POLICIES = ("Foreground", "Background", "Orphan")
#: Kinds that never own anything.
_WITHOUT_DEPENDENTS = {"core/events"}
#: Kinds whose delete returns the object instead of a Status.
_ANSWER_OBJECT = {
    "core/namespaces",
    "core/persistentvolumeclaims",
    "core/persistentvolumes",
    "core/pods",
    "core/podtemplates",
    "core/resourcequotas",
    "core/serviceaccounts",
    "core/services",
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceclaims",
    "resource.k8s.io/resourceclaimtemplates",
    "resource.k8s.io/resourceslices",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/volumeattachments",
    "storage.k8s.io/volumeattributesclasses",
}


class Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None

    @property
    def policy(self) -> str | None:
        if self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy


async def delete(api: Api, call: Call) -> Response:
    options = await read_options(api, call)
    for _ in range(TRIES):
        entry = api.store.get(object_key(call.kind, call.namespace, call.name))
        if entry is None:
            raise status.not_found(call.kind, call.name)
        removed = await remove(api, call, entry, options)
        if removed is not None:
            return removed
    raise status.conflict(call.kind, call.name)


async def read_options(api: Api, call: Call) -> DeleteOptions:
    """From the body, or from the query where there is none. Raises 400 and 422."""
    size = body_size(call)
    api.admit(call, size)
    return await api.run(call, size, _read_options, call)


def _read_options(call: Call) -> DeleteOptions:
    value: Any
    if call.body:
        value, _ = decode_body(call.body, call.headers.get("content-type", ""), "DeleteOptions")
        if isinstance(value, dict) and value.get("kind", "DeleteOptions") != "DeleteOptions":
            raise status.bad_request("decoded object cannot be converted to DeleteOptions")
    else:
        value = _from_query(call)
    try:
        options = msgspec.convert(value, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"decoding DeleteOptions: {error}") from None
    errors: list[FieldError] = []
    if options.propagation_policy is not None and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", options.propagation_policy, text))
    if options.propagation_policy is not None and options.propagation_policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", options.propagation_policy, [*_POLICIES, "nil"]))
    if any(value != "All" for value in options.dry_run or ()):
        errors.append(not_supported("dryRun", options.dry_run, ["All"]))
    if errors:
        raise status.invalid_kind("meta.k8s.io", "DeleteOptions", "", errors)
    if call.kind.storage_key == "batch/jobs" and options.policy is None:
        call.warnings.append(_PODS_PRESERVED)
    return options


def _from_query(call: Call) -> Object:
    value: Object = {}
    if "gracePeriodSeconds" in call.query:
        value["gracePeriodSeconds"] = call.integer("gracePeriodSeconds")
    if call.query.get("propagationPolicy"):
        value["propagationPolicy"] = call.query["propagationPolicy"]
    if "orphanDependents" in call.query:
        value["orphanDependents"] = call.flag("orphanDependents")
    return value | ({"dryRun": call.dry_run} if call.dry_run else {})


async def remove(api: Api, call: Call, entry: Entry, options: DeleteOptions) -> Response | None:
    """Delete the object of `entry`. None: it changed meanwhile, and the caller may retry."""
    kind, size = call.kind, len(entry.value)
    _check_preconditions(kind, entry, options)
    api.admission.delete(call, entry)
    marked = await api.run(call, size, _marked, kind, entry, options)
    obj, stays = marked.obj, marked.stays
    code = 202 if stays and options.orphan_dependents is False else 200
    if options.dry_run or (stays and not marked.changed):
        value = await api.run(call, size, orjson.dumps, obj)
        return answer(call, value if stays else _gone(kind, entry, value), code)
    made = await api.run(call, size, parts, kind, obj) if api.large(call, size) else {}
    try:
        if stays:
            record = await api.store.replace(entry.key, entry.version, encoder(kind, obj, made), urgent=True)
            return answer(call, await reply(api, call, record), code)
        version = entry.version
        if kind.storage_key == "core/pods" and marked.changed:
            # A pod is marked before it is deleted, even without a grace period: watchers see both.
            first = {**obj, "metadata": dict(obj["metadata"])}
            version = (await api.store.replace(entry.key, version, encoder(kind, first, made), urgent=True)).version
        record = await api.store.delete(entry.key, version, encoder(kind, obj, made))
    except Changed:
        return None
    return answer(call, _gone(kind, entry, await reply(api, call, record)))


class _Marked(msgspec.Struct):
    obj: Object
    #: Something must still happen before it may go.
    stays: bool
    changed: bool


def _marked(kind: Kind, entry: Entry, options: DeleteOptions) -> _Marked:
    """The object after its deletion was marked."""
    obj = decode_served(kind, entry)
    old = orjson.loads(entry.value) if entry.api_version != kind.api_version else decode_served(kind, entry)
    pending = _mark_graceful(kind, obj, options)
    if not pending:
        _mark_propagation(kind, obj, options)
    meta = obj["metadata"]
    if not kind.strategy.begin_deletion(obj, now()) and meta.get("finalizers"):
        _mark(obj, grace=meta.get("deletionGracePeriodSeconds") or 0)
    return _Marked(obj, held(kind, obj), obj != old)


def _gone(kind: Kind, entry: Entry, value: bytes) -> bytes:
    if kind.storage_key in _ANSWER_OBJECT:
        return value
    return orjson.dumps(status.success(kind, entry.name, entry.uid))


def _check_preconditions(kind: Kind, entry: Entry, options: DeleteOptions) -> None:
    wanted = options.preconditions
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != entry.uid:
        text = f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({entry.uid})"
        raise status.precondition_failed(
            kind, entry.name, f"{text}. The object might have been deleted and then recreated"
        )
    if wanted.resource_version is not None and wanted.resource_version != str(entry.version):
        text = f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match"
        raise status.precondition_failed(
            kind,
            entry.name,
            f"{text} the ResourceVersion in record ({entry.version}). The object might have been modified",
        )


def _mark_graceful(kind: Kind, obj: Object, options: DeleteOptions) -> bool:
    """Set a pod's grace period. True: it is already set and not shortened."""
    if kind.storage_key != "core/pods":
        return False
    meta = obj["metadata"]
    wanted = options.grace_period_seconds
    if wanted is not None and wanted < 0:
        wanted = 1
    if "deletionTimestamp" in meta:
        given = min(meta.get("deletionGracePeriodSeconds") or 0, _LONGEST_GRACE)
        if not given:
            return False
        if wanted is None or wanted >= given:
            return True
        started = datetime.fromisoformat(meta["deletionTimestamp"]) - timedelta(seconds=given)
        deadline = max(started + timedelta(seconds=wanted), clock.now())
        if wanted and deadline > started + timedelta(seconds=wanted):
            # The shorter period is over already: the least that is still graceful.
            wanted = 1
        meta["deletionTimestamp"] = timestamp(deadline)
        meta["deletionGracePeriodSeconds"] = wanted
        return False
    spec = obj.get("spec") or {}
    phase = (obj.get("status") or {}).get("phase")
    period = wanted if wanted is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        period = 0
    period = min(period, _LONGEST_GRACE)
    _mark(obj, grace=period)
    deadline = clock.now() + timedelta(seconds=period)
    meta["deletionTimestamp"] = timestamp(deadline)
    return False


def _mark_propagation(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    """Keep, add or drop the two finalizers of the garbage collector as the policy says."""
    if kind.storage_key in _WITHOUT_DEPENDENTS:
        return
    meta = obj["metadata"]
    finalizers: list[str] = meta.get("finalizers", [])
    policy = options.policy
    if policy is None:
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        elif kind.strategy.orphan_by_default:
            policy = "Orphan"
    wanted = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        wanted.append(ORPHAN)
    elif policy == "Foreground":
        wanted.append(FOREGROUND)
    if set(wanted) == set(finalizers):
        return
    if wanted:
        meta["finalizers"] = wanted
    else:
        meta.pop("finalizers", None)


def _mark(obj: Object, *, grace: int) -> None:
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = now()
        if meta.get("generation"):
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace
