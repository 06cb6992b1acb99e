"""Access: the way into each joined member. Its connection, its service account's token, and its rights there.

A connection follows the secret: when what is in there changed, the new credentials are tried first, and only if the member
that joined answers to them do they replace the old ones (`link`), so a mistake in a secret cuts nothing that works. Tokens
are renewed well before they end, by the account itself, or with the user's credentials where the secret has them. The
account's role follows the type configs as far as Kubernetes lets it.

Called by `clusters` for one cluster at a time; it writes the token into the secret, nothing else on the control plane.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from argosy.api import conditions as texts
from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control import join, memberrole
from argosy.control.catalog import Catalog
from argosy.control.connect import Connector
from argosy.control.gate import Gate
from argosy.control.link import Link
from argosy.control.members import Member, Members
from argosy.control.timings import Timings
from argosy.fleet.credentials import Connection, CredentialsError, connection_from_secret
from argosy.fleet.tokens import life_of, renewal_time
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, Forbidden, TransportError
from argosy.kube.informer import Informer
from argosy.kube.objects import Metadata

__all__ = ["Access", "Problem", "SecretView"]

#: How long credentials that are being tried may take to bring an answer.
_TRIAL = 10.0
_LONGEST_MESSAGE = 1000

_FAILURES = (ApiError, TransportError, TimeoutError)


class SecretView(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}

    def decoded(self) -> dict[str, bytes]:
        return {name: base64.b64decode(value) for name, value in self.data.items()}


class Problem(msgspec.Struct, frozen=True):
    """Why a member's Authorized condition is not True."""

    reason: str
    message: str


class _Entry:
    """What is remembered of the way into one member while it is connected."""

    def __init__(self, connection: Connection, link: Link, gate: Gate, namespace: str):
        self.connection = connection
        self.link = link
        #: Closed until it was seen to be the member that joined.
        self.gate = gate
        #: The uid of the namespace by which it was; empty until then.
        self.namespace = namespace
        self.problems: dict[str, str] = {}
        #: Until when a renewal that failed is not tried again.
        self.patience = 0.0
        #: The rules its role was last seen to have.
        self.rules: list[dict[str, Any]] | None = None


class Access:
    def __init__(
        self,
        client: Client,
        secrets: Informer[SecretView],
        members: Members,
        catalog: Catalog,
        connect: Connector,
        timings: Timings,
    ):
        self._client = client
        self._secrets = secrets
        self._members = members
        self._catalog = catalog
        self._connect = connect
        self._timings = timings
        self._entries: dict[str, _Entry] = {}
        #: Why members that should be connected are not.
        self._shut_out: dict[str, str] = {}
        #: Called with the name of a member that does not accept our credentials any more.
        self.on_rejected: Callable[[str], None] = lambda name: None

    # Credentials.

    def connection(self, cluster: FederatedCluster, bootstrap: bool | None = None) -> Connection:
        """As `connection_from_secret`. Raises CredentialsError."""
        return connection_from_secret(cluster, self._secret(cluster), bootstrap=bootstrap)

    def has_secret(self, cluster: FederatedCluster) -> bool:
        return self._secrets.get(_secret_key(cluster)) is not None

    def _secret(self, cluster: FederatedCluster) -> dict[str, bytes]:
        name = cluster.spec.secret_ref.name
        secret = self._secrets.get(_secret_key(cluster))
        if secret is None:
            raise CredentialsError(f'secret "{name}" not found in namespace {keys.SYSTEM_NAMESPACE}')
        try:
            return secret.decoded()
        except ValueError:
            raise CredentialsError(f'secret "{name}" holds data that is not base64') from None

    @asynccontextmanager
    async def visit(self, cluster: FederatedCluster, bootstrap: bool | None = None) -> AsyncIterator[Client]:
        """A client of its own with the credentials in the secret, closed afterwards. Raises CredentialsError.

        Where the secret went before its cluster did, as a deletion in the foreground has it, with those that are in use.
        """
        try:
            connection = self.connection(cluster, bootstrap)
        except CredentialsError:
            in_use = self.in_use(cluster.name)
            if bootstrap is not None or in_use is None or not cluster.terminating or self.has_secret(cluster):
                raise
            connection = in_use
        client = self._connect(cluster.name, connection)
        try:
            yield client
        finally:
            await client.close()

    async def keep_token(self, cluster: FederatedCluster, token: bytes | None) -> None:
        """In the cluster's secret, from where every connection takes it; None takes it out."""
        value = base64.b64encode(token).decode() if token is not None else None
        body: Mapping[str, Any] = {"data": {keys.SECRET_SERVICE_ACCOUNT_TOKEN: value}}
        name = cluster.spec.secret_ref.name
        raw = await self._client.patch(join.SECRETS, name, body, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE, into=bytes)
        self._secrets.remember(raw)

    # Being connected.

    async def connected(self, cluster: FederatedCluster) -> Member | None:
        """The member over a connection with what is in the secret, or with what was there before if that is of no use."""
        try:
            member = await self._connected(cluster)
        except CredentialsError as error:
            self._shut_out[cluster.name] = str(error)
            raise
        self._shut_out.pop(cluster.name, None)
        return member

    async def _connected(self, cluster: FederatedCluster) -> Member | None:
        name = cluster.name
        entry, member = self._entries.get(name), self._members.get(name)
        if entry is not None and member is not None and not entry.namespace:
            await self._recognize_late(cluster, entry)
        try:
            connection = self.connection(cluster)
            if entry is None or member is None:
                return await self._connect_first(cluster, connection)
            if entry.connection != connection:
                member = await self._exchange(cluster, entry, member, connection)
        except (CredentialsError, *_FAILURES) as error:
            if entry is None:
                raise CredentialsError(_told(error)) from None
            entry.problems[texts.CREDENTIALS_UNUSABLE_REASON] = (
                f'what is in secret "{cluster.spec.secret_ref.name}" cannot be used, the earlier credentials stay in use:'
                f" {_told(error)}"
            )
            return member
        entry.problems.pop(texts.CREDENTIALS_UNUSABLE_REASON, None)
        return member

    async def _connect_first(self, cluster: FederatedCluster, connection: Connection) -> Member:
        """The secret may have changed while nobody looked: what is at another address is not written to."""
        link = self._link(cluster.name, self._connect(cluster.name, connection))
        try:
            namespace = await self._recognized(cluster, link, connection)
        except BaseException:
            await link.close()
            raise
        return await self._take(cluster.name, link, connection, namespace)

    def _link(self, name: str, client: Client) -> Link:
        return Link(name, client.transport, on_rejected=lambda: self.on_rejected(name))

    async def _take(self, name: str, link: Link, connection: Connection, namespace: str) -> Member:
        """Have it as the member of this name, about which nothing is known yet."""
        gate = Gate(link, is_open=bool(namespace))
        member = Member(name, Client(gate), self._timings)
        self._entries[name] = _Entry(connection, link, gate, namespace)
        await self._members.connect(member)
        return member

    async def _recognized(self, cluster: FederatedCluster, link: Link, connection: Connection) -> str:
        """As `_recognize`, but empty for one that gives no answer, or not the one asked for: it is asked again, with the
        next look."""
        try:
            async with asyncio.timeout(min(_TRIAL, self._timings.health_period / 2)):
                return await self._recognize(cluster, Client(link), connection)
        except _FAILURES:
            return ""

    async def _recognize_late(self, cluster: FederatedCluster, entry: _Entry) -> None:
        try:
            entry.namespace = await self._recognized(cluster, entry.link, entry.connection)
        except CredentialsError:
            await self.disconnect(cluster.name)
            raise
        entry.gate.is_open = bool(entry.namespace)

    async def _recognize(self, cluster: FederatedCluster, client: Client, connection: Connection) -> str:
        """The uid of the namespace by which it certainly is the member that joined. Raises CredentialsError if it is not."""
        namespace = await join.find(client)
        if namespace is None:
            raise CredentialsError(f"at {connection.server}: {join.NotTheMember(cluster.name)}")
        if not join.is_of(namespace, cluster):
            raise CredentialsError(f"the cluster at {connection.server} is not the one that joined")
        return str(namespace["metadata"]["uid"])

    async def _exchange(
        self, cluster: FederatedCluster, entry: _Entry, member: Member, connection: Connection
    ) -> Member:
        """Go over to other credentials, or another address, once the member answers to them."""
        client = self._connect(cluster.name, connection)
        try:
            async with asyncio.timeout(_TRIAL):
                namespace = await self._recognize(cluster, client, connection)
        except BaseException:
            await client.close()
            raise
        if namespace != entry.namespace:  # it was claimed anew: nothing that is known of the one before holds here
            return await self._take(cluster.name, self._link(cluster.name, client), connection, namespace)
        entry.connection = connection
        entry.rules = None
        entry.problems.pop(texts.TOKEN_NOT_RENEWED_REASON, None)
        entry.link.exchange(client.transport)
        return member

    def in_use(self, name: str) -> Connection | None:
        """What a connected member is reached with right now."""
        entry = self._entries.get(name)
        return entry.connection if entry is not None else None

    async def disconnect(self, name: str) -> None:
        self._entries.pop(name, None)
        self._shut_out.pop(name, None)
        await self._members.disconnect(name)

    def problem(self, name: str) -> Problem | None:
        """What keeps us from working in the member as we should; the most telling one."""
        entry = self._entries.get(name)
        if entry is None:
            why = self._shut_out.get(name)
            return Problem(texts.CREDENTIALS_UNUSABLE_REASON, why[:_LONGEST_MESSAGE]) if why else None
        found = dict(entry.problems)
        if entry.link.rejected:
            why = found.get(texts.TOKEN_NOT_RENEWED_REASON, "")
            message = "The member does not accept the credentials any more (401 Unauthorized)"
            found[texts.CREDENTIALS_REJECTED_REASON] = f"{message}; {why}" if why else message
        refusals = entry.link.refusals()
        if refusals:
            more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
            found[texts.RIGHTS_MISSING_REASON] = f"{refusals[0]}{more}"
        for reason in _BY_WEIGHT:
            if reason in found:
                return Problem(reason, found[reason][:_LONGEST_MESSAGE])
        return None

    # The service account.

    async def renew_token(self, cluster: FederatedCluster) -> bool:
        """Have the account's next token in the secret when it is time; whether it was."""
        entry = self._entries[cluster.name]
        if (
            not cluster.spec.use_service_account
            or time.monotonic() < entry.patience
            or not self._is_due(cluster, entry)
        ):
            return False
        # Whether this one was not to be had, could not be kept, or is refused too: asking at once for another would not help.
        entry.patience = time.monotonic() + self._timings.health_period
        try:
            await self.keep_token(cluster, await self._next_token(cluster, entry))
        except (CredentialsError, *_FAILURES) as error:
            entry.problems[texts.TOKEN_NOT_RENEWED_REASON] = (
                f"the service account's token was not renewed: {_told(error)}; to give it a new one, run:"
                f" argosy join {cluster.name} --kubeconfig <of an administrator of the member>"
            )
            return False
        entry.problems.pop(texts.TOKEN_NOT_RENEWED_REASON, None)
        return True

    def _is_due(self, cluster: FederatedCluster, entry: _Entry) -> bool:
        if entry.link.rejected:
            return True
        try:
            life = life_of(self.connection(cluster).token)
        except CredentialsError:
            return False
        return life is not None and time.time() >= renewal_time(life, self._timings.token_renewal, cluster.name)

    async def _next_token(self, cluster: FederatedCluster, entry: _Entry) -> bytes:
        try:
            async with asyncio.timeout(_TRIAL):
                return await join.new_token(Client(entry.link), self._timings.token_lifetime)
        except _FAILURES as error:
            if not self.has_bootstrap(cluster):
                raise
            first = error
        try:
            async with self.visit(cluster, bootstrap=True) as client, asyncio.timeout(_TRIAL):
                return await self.equip(client, cluster, await join.claim(client, cluster))
        except join.NotTheMember as error:
            raise CredentialsError(str(error)) from None
        except (join.Unjoinable, join.StillLeaving):
            raise first from None

    def has_bootstrap(self, cluster: FederatedCluster) -> bool:
        """Whether the secret has the user's own credentials, which are there for joining and may be taken out afterwards."""
        try:
            self.connection(cluster, bootstrap=True)
        except CredentialsError:
            return False
        return True

    async def equip(self, client: Client, cluster: FederatedCluster, namespace: dict[str, Any]) -> bytes:
        """The service account and its rights in a member that was claimed; its token."""
        await join.furnish(client, namespace, self._rules(cluster))
        return await join.new_token(client, self._timings.token_lifetime)

    def _rules(self, cluster: FederatedCluster) -> list[dict[str, Any]]:
        return memberrole.rules_for(cluster, self._catalog)

    # Its rights.

    async def follow_role(self, cluster: FederatedCluster, member: Member) -> bool:
        """Have the account's role say what the type configs ask for; whether it had to be written."""
        entry = self._entries[cluster.name]
        # An account that gives up a right may not be able to take it again: it waits whether the type comes back.
        lately = self._catalog.lately(self._timings.rights_kept)
        wanted = memberrole.rules_for(cluster, lately)
        if not cluster.spec.use_service_account or (entry.rules == wanted and not entry.link.refusals()):
            return False
        try:
            async with asyncio.timeout(_TRIAL):
                role = await member.client.get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
        except _FAILURES:
            # Its own rights are not even readable (KubeAdmiral's are), or it is away: the probe and refusals tell.
            return False
        if not memberrole.is_ours(role) or role.get("rules") == wanted:
            entry.rules = wanted
            entry.problems.pop(texts.ROLE_OUTDATED_REASON, None)
            return False
        try:
            await self._write_role(cluster, member, {**role, "rules": wanted})
        except (CredentialsError, *_FAILURES) as error:
            entry.problems[texts.ROLE_OUTDATED_REASON] = (
                f"the member's role does not fit the type configs ({_difference(role.get('rules') or [], wanted)}) and may"
                f" not be changed from here; run: argosy join {cluster.name} --refresh-role --kubeconfig <of an administrator"
                f" of the member> ({_told(error).splitlines()[0]})"
            )
            return False
        entry.rules = wanted
        entry.problems.pop(texts.ROLE_OUTDATED_REASON, None)
        return True

    async def _write_role(self, cluster: FederatedCluster, member: Member, role: dict[str, Any]) -> None:
        async with asyncio.timeout(_TRIAL):
            try:
                await member.client.update(join.ROLES, role)
                return
            except Forbidden:
                if not self.has_bootstrap(cluster):
                    raise
            async with self.visit(cluster, bootstrap=True) as client:
                await client.update(join.ROLES, role)


#: The most telling first.
_BY_WEIGHT = (
    texts.CREDENTIALS_REJECTED_REASON,
    texts.CREDENTIALS_UNUSABLE_REASON,
    texts.TOKEN_NOT_RENEWED_REASON,
    texts.ROLE_OUTDATED_REASON,
    texts.RIGHTS_MISSING_REASON,
)


def _secret_key(cluster: FederatedCluster) -> str:
    return f"{keys.SYSTEM_NAMESPACE}/{cluster.spec.secret_ref.name}"


def _told(error: BaseException) -> str:
    return str(error) or "no answer in time"


def _difference(present: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> str:
    """The kinds that rights are missing for, and those that have too many."""
    held, needed = _kinds(present), _kinds(wanted)
    missing, spare = sorted(needed - held), sorted(held - needed)
    parts = [f"{word}: {', '.join(kinds)}" for word, kinds in (("missing", missing), ("not needed", spare)) if kinds]
    return "; ".join(parts) or "other verbs"


def _kinds(rules: list[dict[str, Any]]) -> set[str]:
    return {
        f"{resource}.{group}" if group else resource
        for rule in rules
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
    }
