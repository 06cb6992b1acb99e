"""Clusters: the life of a FederatedCluster: join, health, leave. One key per cluster; the only writer of its status.

A joined cluster is probed every health period. Connections follow the credentials in the secret: a rotated secret makes a new
connection without a restart.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from argosy.api import conditions as texts
from argosy.api import keys, resources
from argosy.api.conditions import EventReason
from argosy.api.types import FederatedCluster
from argosy.control.brake.brake import Brake
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches
from argosy.control.caches.livefleet import LiveFleet
from argosy.control.caches.views import cluster_of_more_than_health
from argosy.control.collect import Collector
from argosy.control.context import ControllerContext
from argosy.control.members import join
from argosy.control.members.access import Access
from argosy.control.members.cascade import Cascade
from argosy.control.members.expected import ExpectedKinds
from argosy.control.members.health import ClusterHealth
from argosy.control.members.identity import WrongCluster
from argosy.control.members.member import Member
from argosy.control.members.secrets import MemberSecrets
from argosy.control.members.writer import ClusterWriter
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Wake, itself
from argosy.fleet.credentials import CredentialsError, CredentialsWithheld
from argosy.fleet.identity import Identity, recorded
from argosy.kube import clock, timestamps
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Conflict, Forbidden, NotFound, TransportError, Unauthorized
from argosy.kube.events import EventRecorder
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.plan.brake.cause import Cause

__all__ = ["Clusters"]

#: Several changes within this time share one reconcile.
_SOON = 1.0
#: How long a cluster that never joined, as far as is known, may take to release its membership.
_COURTESY = 5.0

_LEAVES_HELD = "held: other members are leaving, and this one holds copies"
#: The advice for a cluster that cannot leave because the member no longer answers.
_GIVE_UP = "if the member is gone for good, `argosy unjoin {name} --force` gives it up (what is in it stays there)"


class Clusters(Loop[str]):
    name = "clusters"
    #: A member that does not answer keeps one for seconds, and all may be silent at once, for want of a network here.
    workers = 512

    def __init__(
        self,
        writer: ClusterWriter,
        queue: WorkQueue[str],
        caches: Caches,
        secrets: MemberSecrets,
        access: Access,
        health: ClusterHealth,
        expected: ExpectedKinds,
        cascade: Cascade,
        brake: Brake,
        fleet: LiveFleet,
        collector: Collector,
        recorder: EventRecorder,
        timings: Timings,
    ):
        self.queue = queue
        self._writer = writer
        self._fleet = fleet
        self._collector = collector
        self._expected = expected
        self._caches = caches
        self._secrets = secrets
        self._access = access
        self._health = health
        self._cascade = cascade
        self._brake = brake
        self._recorder = recorder
        self._timings = timings

    @classmethod
    def of(cls, shared: ControllerContext) -> "Clusters":
        caches, access, events, timings = shared.caches, shared.access, shared.events, shared.timings
        writer, expected = ClusterWriter(shared.client, caches), ExpectedKinds(caches, shared.collector, timings)
        health = ClusterHealth(caches, shared.members, access, shared.prober, expected, writer, events, timings)
        return cls(
            writer,
            shared.queue(),
            caches,
            shared.secrets,
            access,
            health,
            expected,
            shared.cascade,
            shared.brake,
            shared.fleet,
            shared.collector,
            events,
            timings,
        )

    def wakes(self) -> Iterable[Wake[Any, str]]:
        yield Wake(self._caches.clusters, cluster_of_more_than_health, "it changed in more than its health")
        yield Wake(self._secrets.informer, self._secrets.clusters_of, "its credentials changed")
        yield Wake(self._access.rejected, itself, "the member refused its credentials", delay=_SOON)
        yield Wake(self._access.mismatched, itself, "another cluster answered in its place")
        recheck = self._timings.health_recheck
        yield Wake(self._access.turned, self._health.turned, "the member stopped or began to answer", delay=recheck)
        why = "the rights of service accounts follow the types"
        yield Wake(self._caches.catalog.changes, self._of_type, why, delay=_SOON)
        recheck, expected = self._timings.kind_recheck, self._expected
        yield Wake(self._collector.changes, expected.of_copy, "it accepted a definition", delay=recheck)
        yield Wake(
            self._fleet.arrived, expected.of_arrival, "another cluster serves a kind it may soon serve", 1, recheck
        )

    def _of_type(self, types: TypeChange) -> list[str]:
        old, new = types
        if old is not None and new is not None and old.resource == new.resource:
            return []
        return [each.name for each in self._caches.clusters.values() if each.spec.use_service_account]

    async def reconcile(self, name: str) -> Result | None:
        cluster = self._caches.clusters.get(name)
        if cluster is None:
            await self._forget(name)
            return None
        if cluster.terminating:
            return await self._leave(cluster)
        cluster = await self._writer.with_finalizers(cluster)
        if not cluster.joined:
            return await self._join(cluster)
        began = clock.monotonic()
        member = await self._reached(cluster)
        seen = self._access.member_uid(name)
        if seen and not recorded(cluster).namespace_uid:
            cluster = await self._writer.annotated(cluster, keys.MEMBER_UID, seen)
        await self._health.publish(cluster, member)
        cluster = self._caches.clusters.get(name) or cluster
        return Result(requeue_after=self._health.next_probe(cluster, clock.monotonic() - began))

    # Joining.

    async def _join(self, cluster: FederatedCluster) -> Result | None:
        joined = cluster.condition(texts.JOINED)
        if joined is not None and joined.reason in texts.TERMINAL_JOIN_REASONS:
            return None
        if joined is not None and _age(joined.last_transition_time) > self._timings.join_timeout:
            message = texts.JOIN_TIMEOUT_MESSAGE.format(last=joined.message)
            await self._writer.set_joined(cluster, "False", texts.JOIN_TIMEOUT_REASON, message)
            self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_TIMEOUT, message)
            return None
        grace = self._timings.secret_grace
        if not self._secrets.has(cluster) and _age(cluster.metadata.creation_timestamp) < grace:
            return Result(requeue_after=grace)  # the secret's event comes sooner
        uid = ""
        try:
            await self._secrets.bind(cluster)
            # Without bootstrap credentials, `argosy join` makes the account itself.
            equips = not cluster.spec.use_service_account or self._secrets.has_bootstrap(cluster)
            async with self._access.visit(cluster, bootstrap=equips) as client:
                namespace = await join.claim(client, cluster)
            uid = join.uid_of(namespace)
            if cluster.spec.use_service_account and equips:
                # Only in the cluster that was claimed, even if the address leads to another one by now.
                identity = Identity(cluster.name, cluster.metadata.uid, uid)
                async with self._access.visit(cluster, True, identity) as client:
                    token = await self._access.equip(client, cluster, namespace)
                await self._secrets.keep_token(cluster, token)
        except join.Unjoinable:
            await self._writer.set_joined(cluster, "False", *texts.CLUSTER_UNJOINABLE, performed=False)
            self._event(cluster, "Warning", EventReason.CLUSTER_UNJOINABLE, texts.CLUSTER_UNJOINABLE[1])
            return None
        except (
            CredentialsError,
            join.NotTheMember,
            join.StillLeaving,
            ApiError,
            TransportError,
            TimeoutError,
        ) as error:
            message = str(error) or "timed out waiting for a service-account token"
            if uid:
                cluster = await self._writer.annotated(cluster, keys.MEMBER_UID, uid)
            return await self._join_failed(cluster, message, claimed=bool(uid))
        # Even if a uid is recorded: a manifest that was applied again may carry an outdated one.
        cluster = await self._writer.annotated(cluster, keys.MEMBER_UID, uid)
        await self._writer.set_joined(cluster, "True", *texts.CLUSTER_JOINED, performed=True)
        self._event(cluster, "Normal", EventReason.JOIN_CLUSTER_SUCCESS, texts.CLUSTER_JOINED[1])
        return Result(requeue_after=0.001)

    async def _join_failed(self, cluster: FederatedCluster, message: str, claimed: bool) -> Result:
        before = cluster.condition(texts.JOINED)
        if before is None or before.message != message or (claimed and not cluster.status.join_performed):
            performed = True if claimed else None
            await self._writer.set_joined(cluster, "False", texts.TOKEN_NOT_OBTAINED_REASON, message, performed)
            self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_ERROR, message)
        return Result(error=f"cannot join {cluster.name}: {message}")

    # Being joined.

    async def _reached(self, cluster: FederatedCluster) -> Member | None:
        """The member over a connection that follows its secret, with a valid token."""
        try:
            await self._bind(cluster)
            member = await self._access.connected(cluster)
            # A member that does not answer gives no token, and asking it would only delay the probe.
            silent = self._health.is_failing(cluster.name)
            if member is not None and not silent and await self._access.renew_token(cluster):
                self._event(cluster, "Normal", EventReason.TOKEN_RENEWED, "the service account has a new token")
                member = await self._access.connected(cluster)
        except WrongCluster:  # reported in the conditions
            return None
        except CredentialsError as error:
            if not isinstance(error, CredentialsWithheld):  # those are reported in the conditions
                self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_ERROR, str(error))
            return None
        in_use = self._access.in_use(cluster.name)
        if in_use is not None and self._access.member_uid(cluster.name):
            # The server in use may differ from the spec's, which may have been refused, or have failed.
            await self._bind(cluster, proven=in_use.server)
        return member

    async def _bind(self, cluster: FederatedCluster, *, proven: str = "") -> None:
        """As `MemberSecrets.bind`; a failure is retried with the next probe."""
        with contextlib.suppress(ApiError, TransportError):
            await self._secrets.bind(cluster, proven=proven)

    async def _forget(self, name: str) -> None:
        self._health.forget(name)
        await self._access.disconnect(name)

    # Leaving.

    async def _leave(self, cluster: FederatedCluster) -> Result | None:
        if not self._brake.leave(cluster):
            return await self._hold_leave(cluster)
        finalizers = cluster.metadata.finalizers
        if keys.CASCADING_DELETE_FINALIZER in finalizers:
            member = await self._reached(cluster) if cluster.joined else None
            if keys.CASCADING_DELETE in cluster.metadata.annotations and cluster.joined and not cluster.answers:
                # Copies are deleted once it is ready again, and nobody else looks while it leaves.
                await self._health.publish(cluster, member)
                cluster = self._caches.clusters.get(cluster.name) or cluster
            waiting = await self._cascade.progress(cluster, member)
            if waiting:
                self._event(cluster, "Normal", EventReason.WAIT_FOR_CASCADING_DELETE, waiting)
                await self._tell_silence(cluster, member)
                return Result(requeue_after=self._timings.cascade_recheck)
            cluster = await self._writer.without_finalizer(cluster, keys.CASCADING_DELETE_FINALIZER)
            finalizers = cluster.metadata.finalizers
        if keys.CLUSTER_FINALIZER not in finalizers:
            return None
        others = [finalizer for finalizer in finalizers if finalizer != keys.CLUSTER_FINALIZER]
        if others:
            message = f"waiting for other finalizers: {', '.join(others)}"
            self._event(cluster, "Normal", EventReason.TERMINATING_CLUSTER_BLOCKED, message)
            return None
        try:
            cluster = await self._release(cluster)
        except Conflict:
            raise
        except (CredentialsError, join.NotTheMember, ApiError, TransportError, TimeoutError) as error:
            if await self._may_hold_us(cluster, error):
                message = str(error) or "the member did not answer in time"
                if isinstance(error, WrongCluster | join.NotTheMember):
                    message = f"{message}; {_GIVE_UP.format(name=cluster.name)}"
                self._event(cluster, "Warning", EventReason.TERMINATING_CLUSTER_FAILED, message)
                await self._writer.not_released(cluster, message)
                return Result(error=f"cannot leave {cluster.name}: {message}")
        if cluster.spec.use_service_account:
            with contextlib.suppress(NotFound):
                await self._secrets.drop_token(cluster)
        await self._forget(cluster.name)
        with contextlib.suppress(NotFound):
            await self._writer.without_finalizer(cluster, keys.CLUSTER_FINALIZER)
        return None

    async def _hold_leave(self, cluster: FederatedCluster) -> Result:
        """Members that hold copies do not leave in bulk."""
        if keys.LEAVE_HELD not in cluster.metadata.annotations:
            cluster = await self._writer.annotated(cluster, keys.LEAVE_HELD, timestamps.now())
            message = f"{_LEAVES_HELD}; `argosy confirm {Cause.LEAVING}` lets them go"
            self._event(cluster, "Warning", EventReason.REMOVAL_HELD, message)
            await self._writer.not_released(cluster, message)
        return Result(requeue_after=self._timings.cascade_recheck)

    async def _tell_silence(self, cluster: FederatedCluster, member: Member | None) -> None:
        """Whether the member that copies are to be deleted in lets us in at all: if not, it may be given up."""
        try:
            if member is None:
                async with asyncio.timeout(_COURTESY), self._entered(cluster):
                    pass
            else:
                await member.confirm()
        except (CredentialsError, join.NotTheMember, ApiError, TransportError, TimeoutError) as error:
            await self._writer.not_released(cluster, str(error) or "the member did not answer in time")
        else:
            await self._writer.answers(cluster)

    async def _release(self, cluster: FederatedCluster) -> FederatedCluster:
        """Remove from the member what joining created, also if joining was not completed."""
        async with (
            asyncio.timeout(None if cluster.status.join_performed else _COURTESY),
            self._entered(cluster) as client,
        ):
            if cluster.status.join_performed:
                # Recorded first: the account goes with its namespace, so after an interruption we could not log in again.
                cluster = await self._writer.annotated(cluster, keys.LEFT_CLUSTER, await join.cluster_id(client))
                left = msgspec.structs.replace(cluster.status, join_performed=False)
                cluster = await self._writer.write_status(cluster, left)
            different = await join.release(client, cluster)
            if different is not None:
                raise join.NotTheMember(different)
        return cluster

    async def _may_hold_us(self, cluster: FederatedCluster, error: Exception) -> bool:
        """Whether a member that could not be left may still belong to us, and could then join nobody else.

        A cluster that never joined, as far as is known, need not be reached. Nor one that was being left and lets us in no more:
        the account goes with the namespace.
        """
        if cluster.status.join_performed:
            return True
        if not recorded(cluster).namespace_uid or isinstance(error, CredentialsError | Unauthorized | Forbidden):
            return False
        if not isinstance(error, WrongCluster | join.NotTheMember):
            return True
        # Our namespace is not there: it is gone from the member, or this is another cluster.
        known = cluster.metadata.annotations.get(keys.LEFT_CLUSTER)
        if not known:
            return False
        bootstrap = True if cluster.spec.use_service_account and self._secrets.has_bootstrap(cluster) else None
        try:
            async with asyncio.timeout(_COURTESY), self._access.visit(cluster, bootstrap) as client:
                return await join.cluster_id(client) != known
        except (CredentialsError, ApiError, TransportError, TimeoutError):
            return True

    @contextlib.asynccontextmanager
    async def _entered(self, cluster: FederatedCluster) -> AsyncIterator[Client]:
        """A client for the member, and for no other cluster: with its account's token, or else the user's credentials."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                client = await stack.enter_async_context(self._access.visit(cluster, None, recorded(cluster)))
                await join.confirm(client, cluster)
            except (CredentialsError, Unauthorized, Forbidden):
                if not cluster.spec.use_service_account or not self._secrets.has_bootstrap(cluster):
                    raise
                client = await stack.enter_async_context(self._access.visit(cluster, True, recorded(cluster)))
                await join.confirm(client, cluster)
            yield client

    def _event(self, cluster: FederatedCluster, kind: str, reason: str, message: str) -> None:
        self._recorder.event(reference_of(resources.FEDERATED_CLUSTERS, cluster.metadata), kind, reason, message)


def _age(timestamp: str | None) -> float:
    then = timestamps.parse(timestamp)
    return (clock.now() - then).total_seconds() if then is not None else 0.0
