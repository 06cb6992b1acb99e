"""Clusters: a FederatedCluster's life. Join, stay healthy, leave; one loop, one key a cluster, the only writer of its status.

A joined cluster comes by again every health period. Connections follow the credentials in the secret: a rotated secret
makes a new connection without a restart.
"""

import base64
import datetime
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from argosy.api import conditions as texts
from argosy.api import keys, resources
from argosy.api.conditions import EventReason
from argosy.api.types import ClusterCondition, ClusterStatus, FederatedCluster
from argosy.control import join
from argosy.control.caches import Caches
from argosy.control.cascade import Cascade
from argosy.control.connect import Connector
from argosy.control.members import Member, Members
from argosy.control.probe import Observation, Prober
from argosy.control.timings import Timings
from argosy.fleet.credentials import Connection, CredentialsError, connection_from_secret
from argosy.fleet.health import Debounce, next_health, probe_result
from argosy.kube import mergepatch
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.events import EventRecorder
from argosy.kube.informer import Informer
from argosy.kube.objects import Metadata
from argosy.kube.queue import Result

__all__ = ["Clusters", "SecretView"]

_FINALIZERS = (keys.CASCADING_DELETE_FINALIZER, keys.CLUSTER_FINALIZER)


class SecretView(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}

    def decoded(self) -> dict[str, bytes]:
        return {name: base64.b64decode(value) for name, value in self.data.items()}


class Clusters:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        secrets: Informer[SecretView],
        members: Members,
        prober: Prober,
        cascade: Cascade,
        connect: Connector,
        recorder: EventRecorder,
        timings: Timings,
    ):
        self._client = client
        self._caches = caches
        self._secrets = secrets
        self._members = members
        self._prober = prober
        self._cascade = cascade
        self._connect = connect
        self._recorder = recorder
        self._timings = timings
        self._connections: dict[str, Connection] = {}
        self._debounce: dict[str, Debounce] = {}

    async def reconcile(self, name: str) -> Result | None:
        cluster = self._caches.clusters.get(name)
        if cluster is None:
            await self._disconnect(name)
            return None
        if cluster.terminating:
            return await self._leave(cluster)
        cluster = await self._with_finalizers(cluster)
        if not cluster.joined:
            return await self._join(cluster)
        await self._publish_health(cluster, await self._connected(cluster))
        return Result(requeue_after=self._timings.health_period)

    def clusters_of_secret(self, secret: str) -> list[str]:
        return [c.name for c in self._caches.clusters.values() if c.spec.secret_ref.name == secret]

    # Joining.

    async def _join(self, cluster: FederatedCluster) -> Result | None:
        joined = cluster.condition(texts.JOINED)
        if joined is not None and joined.reason in texts.TERMINAL_JOIN_REASONS:
            return None
        if joined is not None and _age(joined.last_transition_time) > self._timings.join_timeout:
            message = texts.JOIN_TIMEOUT_MESSAGE.format(last=joined.message)
            await self._set_joined(cluster, "False", texts.JOIN_TIMEOUT_REASON, message)
            self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_TIMEOUT, message)
            return None
        try:
            connection = self._connection(cluster, bootstrap=True)
            client = self._connect(cluster.name, connection)
        except CredentialsError as error:
            return await self._join_failed(cluster, str(error))
        try:
            namespace = await join.claim(client, cluster)
            if cluster.spec.use_service_account:
                await self._keep_token(cluster, await join.mint_token(client, namespace))
        except join.Unjoinable:
            await self._set_joined(cluster, "False", *texts.CLUSTER_UNJOINABLE, performed=False)
            self._event(cluster, "Warning", EventReason.CLUSTER_UNJOINABLE, texts.CLUSTER_UNJOINABLE[1])
            return None
        except (ApiError, TransportError, TimeoutError) as error:
            return await self._join_failed(cluster, str(error) or "timed out waiting for a service-account token")
        finally:
            await client.close()
        await self._set_joined(cluster, "True", *texts.CLUSTER_JOINED, performed=True)
        self._event(cluster, "Normal", EventReason.JOIN_CLUSTER_SUCCESS, texts.CLUSTER_JOINED[1])
        return Result(requeue_after=0.001)

    async def _join_failed(self, cluster: FederatedCluster, message: str) -> Result:
        before = cluster.condition(texts.JOINED)
        if before is None or before.message != message:
            await self._set_joined(cluster, "False", texts.TOKEN_NOT_OBTAINED_REASON, message)
            self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_ERROR, message)
        return Result(error=f"cannot join {cluster.name}: {message}")

    async def _keep_token(self, cluster: FederatedCluster, token: bytes) -> None:
        """In the cluster's secret on the control plane, from where every later connection takes it."""
        data = {keys.SECRET_SERVICE_ACCOUNT_TOKEN: base64.b64encode(token).decode()}
        await self._patch_secret(cluster, data)

    async def _patch_secret(self, cluster: FederatedCluster, data: Mapping[str, str | None]) -> None:
        name = cluster.spec.secret_ref.name
        raw = await self._client.patch(
            join.SECRETS, name, {"data": data}, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE, into=bytes
        )
        self._secrets.remember(raw)

    # Being joined.

    async def _connected(self, cluster: FederatedCluster) -> Member | None:
        """The member's connection, made anew when its credentials or address changed."""
        try:
            connection = self._connection(cluster)
            member = self._members.get(cluster.name)
            if member is not None and self._connections.get(cluster.name) == connection:
                return member
            member = Member(cluster.name, self._connect(cluster.name, connection), self._timings)
        except CredentialsError as error:
            # A secret that vanished or cannot be used must not cut a connection that works.
            member = self._members.get(cluster.name)
            if member is None:
                self._event(cluster, "Warning", EventReason.JOIN_CLUSTER_ERROR, str(error))
            return member
        self._connections[cluster.name] = connection
        await self._members.connect(member)
        return member

    async def _disconnect(self, name: str) -> None:
        self._connections.pop(name, None)
        self._debounce.pop(name, None)
        await self._members.disconnect(name)

    async def _publish_health(self, cluster: FederatedCluster, member: Member | None) -> None:
        """A member we cannot even connect to is unreachable, whatever was known of it before."""
        observed = Observation(probe_result(None))
        if member is not None:
            observed = await self._prober.observe(member, cluster.status.api_resource_types)
        cluster = self._caches.clusters.get(cluster.name) or cluster
        update = next_health(
            cluster,
            observed.health,
            self._debounce.get(cluster.name),
            now=time.monotonic(),
            wall_time=_now(),
            threshold=self._timings.health_threshold,
        )
        self._debounce[cluster.name] = update.debounce
        status = msgspec.structs.replace(cluster.status, conditions=update.conditions)
        if observed.resources is not None:
            status = msgspec.structs.replace(status, resources=observed.resources)
        if observed.apis is not None:
            status = msgspec.structs.replace(status, api_resource_types=observed.apis)
        await self._write_status(cluster, status)
        if update.changed:
            kind = "Normal" if observed.health.ready == "True" else "Warning"
            self._event(cluster, kind, observed.health.reason, observed.health.message)

    # Leaving.

    async def _leave(self, cluster: FederatedCluster) -> Result | None:
        finalizers = cluster.metadata.finalizers
        if keys.CASCADING_DELETE_FINALIZER in finalizers:
            member = await self._connected(cluster) if cluster.joined else None
            waiting = await self._cascade.progress(cluster, member)
            if waiting:
                self._event(cluster, "Normal", EventReason.WAIT_FOR_CASCADING_DELETE, waiting)
                return Result(requeue_after=self._timings.cascade_recheck)
            cluster = await self._without_finalizer(cluster, keys.CASCADING_DELETE_FINALIZER)
            finalizers = cluster.metadata.finalizers
        if keys.CLUSTER_FINALIZER not in finalizers:
            return None
        others = [finalizer for finalizer in finalizers if finalizer != keys.CLUSTER_FINALIZER]
        if others:
            message = f"waiting for other finalizers: {', '.join(others)}"
            self._event(cluster, "Normal", EventReason.TERMINATING_CLUSTER_BLOCKED, message)
            return None
        if cluster.status.join_performed:
            try:
                await self._give_up(cluster)
            except (CredentialsError, ApiError, TransportError, TimeoutError) as error:
                message = str(error) or "the member did not answer in time"
                self._event(cluster, "Warning", EventReason.TERMINATING_CLUSTER_FAILED, message)
                return Result(error=f"cannot leave {cluster.name}: {message}")
        await self._disconnect(cluster.name)
        await self._without_finalizer(cluster, keys.CLUSTER_FINALIZER)
        return None

    async def _give_up(self, cluster: FederatedCluster) -> None:
        connection = self._connection(cluster)
        client = self._connect(cluster.name, connection)
        try:
            await join.release(client, cluster)
        finally:
            await client.close()
        if cluster.spec.use_service_account:
            try:
                await self._patch_secret(cluster, {keys.SECRET_SERVICE_ACCOUNT_TOKEN: None})
            except NotFound:
                return

    # What is written.

    def _connection(self, cluster: FederatedCluster, bootstrap: bool | None = None) -> Connection:
        name = cluster.spec.secret_ref.name
        secret = self._secrets.get(f"{keys.SYSTEM_NAMESPACE}/{name}")
        if secret is None:
            raise CredentialsError(f'secret "{name}" not found in namespace {keys.SYSTEM_NAMESPACE}')
        try:
            data = secret.decoded()
        except ValueError:
            raise CredentialsError(f'secret "{name}" holds data that is not base64') from None
        return connection_from_secret(cluster, data, bootstrap=bootstrap)

    async def _with_finalizers(self, cluster: FederatedCluster) -> FederatedCluster:
        missing = [finalizer for finalizer in _FINALIZERS if finalizer not in cluster.metadata.finalizers]
        if not missing:
            return cluster
        return await self._set_finalizers(cluster, sorted({*cluster.metadata.finalizers, *missing}))

    async def _without_finalizer(self, cluster: FederatedCluster, finalizer: str) -> FederatedCluster:
        left = [present for present in cluster.metadata.finalizers if present != finalizer]
        return await self._set_finalizers(cluster, left)

    async def _set_finalizers(self, cluster: FederatedCluster, finalizers: list[str]) -> FederatedCluster:
        metadata: dict[str, Any] = {"finalizers": finalizers, "resourceVersion": cluster.metadata.resource_version}
        raw = await self._client.patch(
            resources.FEDERATED_CLUSTERS, cluster.name, {"metadata": metadata}, kind=Patch.MERGE, into=bytes
        )
        return self._remember(raw)

    async def _set_joined(
        self, cluster: FederatedCluster, status: str, reason: str, message: str, performed: bool | None = None
    ) -> None:
        now = _now()
        before = cluster.condition(texts.JOINED)
        since = before.last_transition_time if before is not None and before.status == status else None
        condition = ClusterCondition(texts.JOINED, status, now, since or now, reason, message)
        others = tuple(other for other in cluster.status.conditions if other.type != texts.JOINED)
        changed = msgspec.structs.replace(cluster.status, conditions=(condition, *others))
        if performed is not None:
            changed = msgspec.structs.replace(changed, join_performed=performed)
        await self._write_status(cluster, changed)

    async def _write_status(self, cluster: FederatedCluster, status: ClusterStatus) -> None:
        # The difference, so that what is gone (a resource no node has any more) goes from the stored status as well.
        changes = mergepatch.create(msgspec.to_builtins(cluster.status), msgspec.to_builtins(status))
        body = {"metadata": {"resourceVersion": cluster.metadata.resource_version}, "status": changes}
        raw = await self._client.patch(
            resources.FEDERATED_CLUSTERS, cluster.name, body, kind=Patch.MERGE, subresource="status", into=bytes
        )
        self._remember(raw)

    def _remember(self, raw: bytes) -> FederatedCluster:
        self._caches.clusters.remember(raw)
        return msgspec.json.decode(raw, type=FederatedCluster)

    def _event(self, cluster: FederatedCluster, kind: str, reason: str, message: str) -> None:
        regarding = {
            "apiVersion": keys.API_VERSION,
            "kind": "FederatedCluster",
            "name": cluster.name,
            "uid": cluster.metadata.uid,
        }
        self._recorder.event(regarding, kind, reason, message)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _age(timestamp: str | None) -> float:
    if not timestamp:
        return 0.0
    then = datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    return (datetime.datetime.now(datetime.UTC) - then).total_seconds()
