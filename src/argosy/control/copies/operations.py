"""Operations: writes to one object in one member, and how the result appears in the federated object's status.

An update carries the resourceVersion that was read, a delete carries uid and resourceVersion (see also `fence`). An object
without our label is never written unless it may be adopted. A write that is withheld raises `Withheld`.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, overload

import msgspec

from argosy.api import keys
from argosy.api.conditions import Propagation
from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.collect import Collector
from argosy.control.fence import FenceLost
from argosy.control.members.breaker import BreakerOpen
from argosy.control.members.guarded import Reached
from argosy.control.telemetry.metrics import Metrics
from argosy.kube.client import Client
from argosy.kube.errors import (
    REASONS,
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    ServerTimeout,
    TransportError,
)
from argosy.kube.objects import DecodeError, Metadata, Partial, decode, encode, join_key, split_key
from argosy.plan.changes import is_secret
from argosy.plan.copies import drift
from argosy.plan.copies.drift import Drift, Since
from argosy.plan.copies.render import RenderError, adopted, orphaned
from argosy.plan.fields import MISSHAPEN
from argosy.plan.status.misfit import misfit

__all__ = ["Applied", "Operations", "Render"]

Object = dict[str, Any]
#: Makes the desired object from the member's object, which is None on create.
Render = Callable[[Object | None], Object]
#: Whether an object of the member with these annotations is left behind.
Stays = Callable[[Mapping[str, str]], bool]
#: Whether the member's object already is what we would write.
IsCurrent = Callable[[Object, Object], bool]

_CONFLICT_TRIES = 3


class Applied(msgspec.Struct, frozen=True):
    """The result of one operation. `status` is None if the object is verified not to be in the member."""

    status: Propagation | None
    metadata: Metadata = Metadata()
    error: str = ""
    #: What was sent: "create", "update", "delete", "release" (the copy stays, without our label), or "" if nothing was.
    wrote: str = ""
    retry_after: float | None = None
    #: Why nothing may be sent at all. No failure: it is not tried again before the object changes.
    held: str = ""
    #: It was paused under way. That is no result for a later round.
    withheld: bool = False
    #: The namespace does not exist in the member (yet).
    lacks_namespace: bool = False
    #: What others changed in the copy; None if it was not looked at.
    drift: Drift | None = None

    @property
    def failed(self) -> bool:
        return bool(self.error)


class Operations:
    def __init__(self, caches: Caches, collector: Collector, metrics: Metrics):
        self._caches = caches
        self._collector = collector
        self._metrics = metrics

    def is_unserved(self, member: Reached, config: FederatedTypeConfig) -> bool:
        """Whether the member is known not to serve the kind in any version, so that it can have no object of it."""
        cluster = self._caches.clusters.get(member.name)
        served = cluster.status.api_resource_types if cluster is not None else ()
        return bool(served) and not any((api.group, api.kind) == (config.resource.group, config.kind) for api in served)

    async def apply(
        self,
        member: Reached,
        config: FederatedTypeConfig,
        key: str,
        render: Render,
        is_current: IsCurrent,
        *,
        adopt: bool,
        since: Since,
    ) -> Applied:
        """Create or update the object of that key in the member as rendered."""

        def rendered(present: Object | None) -> Object:
            desired = render(present)
            metadata = desired["metadata"]
            place = join_key(metadata.get("namespace") if config.namespaced else None, metadata["name"])
            if (place, desired["kind"]) != (key, config.kind):
                raise AssertionError(f"a copy for {config.name} {key} was rendered as {desired['kind']} {place}")
            return desired

        try:
            if self._certainly_absent(member, config, key):
                return await self._create(member, config, key, rendered, is_current, adopt, since)
            present = await self._read(member, config, key)
            if present is None:
                return await self._create(member, config, key, rendered, is_current, adopt, since)
            return await self._update(member, config, key, present, rendered, is_current, adopt, since)
        except _Failed as failed:
            return failed.applied

    async def remove(
        self,
        member: Reached,
        config: FederatedTypeConfig,
        key: str,
        stays: Stays = lambda annotations: False,
        *,
        rescued: bool = False,
    ) -> Applied:
        """Delete our object from the member with background propagation; or, if it `stays`, leave it there unmanaged (orphan).

        Existence, and whether it stays, are read from the member, never from the cache. The copy of a create whose response was
        lost may not have arrived by its watch yet, and after an absence is reported nobody looks again. A cache that is not
        synced does not know that an object was there before us.
        """
        doing = "deleted"
        try:
            for _ in range(_CONFLICT_TRIES):
                present = await self._read(member, config, key)
                if present is None or not _is_managed(present):
                    await self._confirm(member)
                    return Applied(None)
                metadata = decode_metadata(present)
                try:
                    if stays(metadata.annotations):
                        doing = "released"
                        return await self._release(member, config, present, rescued)
                    if metadata.deletion_timestamp:
                        return Applied(Propagation.WAITING_FOR_REMOVAL, metadata)
                    if keys.RETAIN_TERMINATING_FINALIZER in metadata.finalizers:
                        await self._drop_retain_finalizer(member, config, present)
                        continue
                    gone = await self._delete(member, config, metadata)
                except Conflict:
                    continue
                return Applied(None if gone else Propagation.WAITING_FOR_REMOVAL, metadata, wrote="delete")
        except _Failed as failed:
            return failed.applied
        failure = Propagation.LABEL_REMOVAL_FAILED if doing == "released" else Propagation.DELETION_FAILED
        return Applied(failure, error=f"the object keeps changing while it is being {doing}")

    async def absent(self, member: Reached) -> Applied:
        """The cache does not have the object: it counts as gone once the member's identity is confirmed."""
        try:
            await self._confirm(member)
        except _Failed as failed:
            return failed.applied
        return Applied(None)

    async def _release(self, member: Reached, config: FederatedTypeConfig, present: Object, rescued: bool) -> Applied:
        left = _made(config, present, lambda: orphaned(present, rescued=rescued))
        released = functools.partial(_put, config, left)
        await self._write(member, "update", Propagation.LABEL_REMOVAL_FAILED, released)
        return Applied(None, wrote="release")

    async def _create(
        self,
        member: Reached,
        config: FederatedTypeConfig,
        key: str,
        render: Render,
        is_current: IsCurrent,
        adopt: bool,
        since: Since,
    ) -> Applied:
        desired = render(None)
        try:
            raw = await self._write(
                member,
                "create",
                Propagation.CREATION_FAILED,
                lambda client: client.create(config.resource, desired, into=bytes),
                handled=_may_exist(config.kind),
            )
        except ApiError as refused:
            present = await self._read(member, config, key)
            if present is None:
                if isinstance(refused, AlreadyExists):  # deleted between the two requests
                    return Applied(Propagation.CREATION_FAILED, error=str(refused), retry_after=0.1)
                return Applied(Propagation.CREATION_FAILED, error=str(refused))
            return await self._update(member, config, key, present, render, is_current, adopt, since)
        self._collector.remember(member.name, config.name, raw)
        lost = Drift((drift.DELETED,)) if since.unchanged else drift.NONE
        return Applied(Propagation.OK, decode(raw, Partial).metadata, wrote="create", drift=lost)

    async def _update(
        self,
        member: Reached,
        config: FederatedTypeConfig,
        key: str,
        present: Object,
        render: Render,
        is_current: IsCurrent,
        adopt: bool,
        since: Since,
    ) -> Applied:
        for _ in range(_CONFLICT_TRIES):
            refusal = _refusal(present, adopt)
            if refusal is not None:
                return refusal
            metadata = decode_metadata(present)
            if metadata.deletion_timestamp:  # created anew once it is gone; its deletion event will come
                return Applied(Propagation.WAITING_FOR_REMOVAL, metadata)
            desired = _rendered(config, present, render, is_current)
            if desired is None:
                return Applied(Propagation.OK, metadata, drift=drift.NONE)
            looks = since.keeps or since.unchanged
            wanted, answered, sent = decode(desired, dict) if looks else {}, None, desired
            try:
                if since.keeps:
                    answered = await self._would_be(member, config, desired)
                    if since.settled:
                        return Applied(Propagation.OK, metadata, drift=_left(present, answered, wanted))
                    sent = _made(
                        config, present, functools.partial(drift.keeping, wanted, present, answered or wanted, since)
                    )
                raw = await self._write(
                    member,
                    "update",
                    Propagation.UPDATE_FAILED,
                    functools.partial(_put, config, sent),
                )
            except Conflict:
                fresh = await self._read(member, config, key)
                if fresh is None:
                    return await self._create(member, config, key, render, is_current, adopt, since)
                present = fresh
                continue
            except _Failed as failed:
                if since.unchanged:
                    left = drift.stated_drift(present, wanted)
                    raise _Failed(msgspec.structs.replace(failed.applied, drift=left)) from failed
                raise
            self._collector.remember(member.name, config.name, raw)
            found, now = drift.NONE, _read_back(raw) if looks else None
            if now is not None and since.keeps:
                found = _left(now, answered, wanted)
            elif now is not None:
                found = drift.drift_of(present, now, secret=is_secret(wanted), left=False)
            return Applied(Propagation.OK, decode(raw, Partial).metadata, wrote="update", drift=found)
        return Applied(Propagation.UPDATE_FAILED, error="the object keeps changing while it is being updated")

    async def _would_be(self, member: Reached, config: FederatedTypeConfig, desired: bytes) -> Object | None:
        """The copy as the member would have it, with its defaults; None if it does not say."""
        try:
            return await member.call(lambda client: client.update(config.resource, desired, dry_run=True))
        except Conflict:
            raise
        except ApiError:
            return None
        except (TransportError, TimeoutError) as error:
            raise _Failed(_unreachable(error, Propagation.RETRIEVAL_FAILED)) from error

    def _certainly_absent(self, member: Reached, config: FederatedTypeConfig, key: str) -> bool:
        """By the cache, which saves a read before a create. An object that exists is read live before it is changed."""
        synced = self._collector.synced(member.name, config.name)
        return synced and self._collector.get(member.name, config.name, key) is None

    async def _read(self, member: Reached, config: FederatedTypeConfig, key: str) -> Object | None:
        namespace, name = split_key(key)
        try:
            return await member.call(lambda client: client.get(config.resource, name, namespace or None))
        except NotFound as error:
            self._take_absence(member, config, name, error, Propagation.RETRIEVAL_FAILED)
            return None
        except (ApiError, TransportError, TimeoutError) as error:
            raise _Failed(_unreachable(error, Propagation.RETRIEVAL_FAILED)) from error

    async def _confirm(self, member: Reached) -> None:
        """Confirms the member's identity: an object that is reported gone is never looked for again."""
        try:
            await member.confirm()
        except (ApiError, TransportError, TimeoutError) as error:
            raise _Failed(_unreachable(error, Propagation.DELETION_FAILED)) from error

    def _take_absence(
        self, member: Reached, config: FederatedTypeConfig, name: str, answer: NotFound, failure: Propagation
    ) -> None:
        """A 404 means that the object does not exist only if it names the object. Otherwise the version is not served (any
        more, or not yet), or something else than the member's API server answered."""
        if (answer.status.get("details") or {}).get("name") != name and not self.is_unserved(member, config):
            raise _Failed(_unreachable(answer, failure)) from answer

    async def _delete(self, member: Reached, config: FederatedTypeConfig, metadata: Metadata) -> bool:
        """Returns whether the object is gone right away."""

        async def send(client: Client) -> bytes:
            answer = await client.delete(
                config.resource,
                metadata.name,
                metadata.namespace or None,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                propagation="Background",
            )
            return b"" if answer.get("kind") == "Status" else b"pending"

        try:
            return not await self._write(member, "delete", Propagation.DELETION_FAILED, send, handled=(NotFound,))
        except NotFound as error:
            self._take_absence(member, config, metadata.name, error, Propagation.DELETION_FAILED)
            await self._confirm(member)
            return True

    async def _drop_retain_finalizer(self, member: Reached, config: FederatedTypeConfig, present: Object) -> None:
        metadata = dict(present["metadata"])
        metadata["finalizers"] = [f for f in metadata["finalizers"] if f != keys.RETAIN_TERMINATING_FINALIZER]
        freed = _made(config, present, lambda: {**present, "metadata": metadata})
        await self._write(member, "update", Propagation.DELETION_FAILED, functools.partial(_put, config, freed))

    async def _write(
        self,
        member: Reached,
        operation: str,
        failure: Propagation,
        request: Callable[[Client], Awaitable[bytes]],
        handled: tuple[type[ApiError], ...] = (),
    ) -> bytes:
        """Send one write. The caller handles conflicts and `handled` errors; any other error becomes a status."""
        try:
            raw = await member.call(request)
        except FenceLost:  # nothing was sent, and we may not report it
            raise
        except ApiError as error:
            # Only known words of a member's answer become part of a metric.
            self._count(member, operation, error.reason if error.reason in REASONS else str(error.code))
            if isinstance(error, (Conflict, *handled)):
                raise
            lacking = operation == "create" and _is_about_namespace(error)
            applied = Applied(failure, error=str(error), retry_after=error.retry_after, lacks_namespace=lacking)
            raise _Failed(applied) from error
        except (TransportError, TimeoutError) as error:
            self._count(member, operation, type(error).__name__)
            raise _Failed(_unreachable(error, failure)) from error
        self._count(member, operation, "ok")
        return raw

    def _count(self, member: Reached, operation: str, result: str) -> None:
        self._metrics.member_writes.labels(member.name, operation, result).inc()


async def _put(config: FederatedTypeConfig, obj: bytes, client: Client) -> bytes:
    return await client.update(config.resource, obj, into=bytes)


def _left(copy: Object, answered: Object | None, wanted: Object) -> Drift:
    """What a copy has that is not ours. `answered` is what the member would make of the object that is wanted, if it says."""
    if answered is None:
        return drift.stated_drift(copy, wanted)
    return drift.drift_of(copy, answered, secret=is_secret(wanted), left=True)


def _read_back(raw: bytes) -> Object | None:
    """The answer to a write, which was done, whatever was answered."""
    try:
        return decode(raw, dict)
    except DecodeError:
        return None


class _Failed(Exception):
    def __init__(self, applied: Applied):
        super().__init__(applied.error)
        self.applied = applied


def _rendered(config: FederatedTypeConfig, present: Object, render: Render, is_current: IsCurrent) -> bytes | None:
    """The desired object, given the member's; None if they are equal."""

    def made() -> Object | None:
        desired = render(adopted(present))
        return None if is_current(desired, present) else desired

    return _made(config, present, made)


@overload
def _made(config: FederatedTypeConfig, present: Object, make: Callable[[], Object]) -> bytes: ...
@overload
def _made(config: FederatedTypeConfig, present: Object, make: Callable[[], Object | None]) -> bytes | None: ...
def _made(config: FederatedTypeConfig, present: Object, make: Callable[[], Object | None]) -> bytes | None:
    """The encoded result of changing a member's object, if any. An error because of its shape is the member's."""
    try:
        obj = make()
        return encode(obj) if obj is not None else None
    except RenderError:
        raise
    except MISSHAPEN as error:
        why = f"the object in the member is not a valid {config.kind}: {misfit(config, present) or repr(error)}"
        raise _Failed(Applied(Propagation.RETRIEVAL_FAILED, error=why)) from error


def decode_metadata(obj: Object) -> Metadata:
    try:
        return msgspec.convert(obj["metadata"], Metadata)
    except msgspec.ValidationError as error:
        why = f"the object in the member cannot be read: {error}"
        raise _Failed(Applied(Propagation.RETRIEVAL_FAILED, error=why)) from None


def _is_about_namespace(error: ApiError) -> bool:
    """Whether a create failed for lack of the namespace. Without details the kind itself may not be served."""
    return isinstance(error, NotFound) and (error.status.get("details") or {}).get("kind") == "namespaces"


def _is_managed(obj: Object) -> bool:
    return (obj["metadata"].get("labels") or {}).get(keys.MANAGED_LABEL) == "true"


def _refusal(present: Object, adopt: bool) -> Applied | None:
    """Why an existing object may not be written, or None."""
    managed = (present["metadata"].get("labels") or {}).get(keys.MANAGED_LABEL)
    if managed == "true":
        return None
    if managed == "false":
        return Applied(
            Propagation.MANAGED_LABEL_FALSE, error=f"the object in the member carries {keys.MANAGED_LABEL}=false"
        )
    if adopt or (present["metadata"].get("annotations") or {}).get(keys.RESCUED) == "true":
        return None
    return Applied(
        Propagation.ALREADY_EXISTS,
        error="an object of this name exists in the member and is not managed by the federation;"
        f" to take it over, annotate the source with {keys.CONFLICT_RESOLUTION}=adopt and {keys.CLUSTERS_TO_ADOPT}",
    )


def _may_exist(kind: str) -> tuple[type[ApiError], ...]:
    """Errors of a create after which the object may exist already."""
    if kind == "Namespace":
        return (AlreadyExists, ServerTimeout)
    if kind == "Service":
        return (AlreadyExists, Invalid)
    return (AlreadyExists,)


_TIMED_OUT = {
    Propagation.CREATION_FAILED: Propagation.CREATION_TIMED_OUT,
    Propagation.UPDATE_FAILED: Propagation.UPDATE_TIMED_OUT,
    Propagation.DELETION_FAILED: Propagation.DELETION_TIMED_OUT,
    Propagation.LABEL_REMOVAL_FAILED: Propagation.LABEL_REMOVAL_TIMED_OUT,
}


def _unreachable(error: Exception, failure: Propagation) -> Applied:
    if isinstance(error, BreakerOpen):
        return Applied(Propagation.CLIENT_RETRIEVAL_FAILED, error=str(error), retry_after=error.retry_after)
    if isinstance(error, TimeoutError):
        return Applied(_TIMED_OUT.get(failure, failure), error="the member did not answer in time")
    return Applied(failure, error=str(error))
