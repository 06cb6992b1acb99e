"""Access to each joined member: its connection, its service account's token, and its rights there.

A connection follows the secret. When the secret changes, the new credentials are tried first, and replace the old ones only if
the member that joined answers to them (`connection`), so a mistake in a secret breaks no working connection. Tokens are renewed
well before they expire, by the account itself, or with the user's credentials if the secret has them. The account's role
follows the type configs as far as Kubernetes allows.

Credentials are sent only where permitted (`secrets`), and only to the cluster that joined (`identity`).

Called by `clusters` for one cluster at a time. On the control plane it writes only the token into the secret.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from argosy.api import conditions as texts
from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.caches.catalog import Catalog
from argosy.control.members import join, role
from argosy.control.members.connect import Connector
from argosy.control.members.connection import MemberConnection
from argosy.control.members.identity import IdentityGate, Recognition, WrongCluster
from argosy.control.members.member import Member, Members
from argosy.control.members.secrets import MemberSecrets
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.wake import Signal
from argosy.fleet.credentials import (
    Connection,
    CredentialsError,
    CredentialsWithheld,
)
from argosy.fleet.identity import Identity, recorded
from argosy.fleet.tokens import life_of, renewal_time
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Forbidden, TransportError
from argosy.kube.transport import Transport
from argosy.plan.fields import MISSHAPEN

__all__ = ["Access", "Problem"]

#: Timeout for what the service account needs.
_PATIENCE = 10.0
_LONGEST_MESSAGE = 1000

_FAILURES = (ApiError, TransportError, TimeoutError)


class Problem(msgspec.Struct, frozen=True):
    """Why a member's Authorized condition is not True."""

    reason: str
    message: str


class _Entry:
    """The state of the access to one connected member."""

    def __init__(self, connection: Connection, link: MemberConnection, gate: IdentityGate, recognition: Recognition):
        self.connection = connection
        self.link = link
        self.gate = gate
        #: Tells the member from other clusters.
        self.recognition = recognition
        self.problems: dict[str, str] = {}
        #: Whether nobody answered when the member was last asked who it is.
        self.silent = False
        #: A renewal that failed is not retried before this time.
        self.patience = 0.0
        #: The role's rules, as last seen.
        self.rules: list[dict[str, Any]] | None = None

    def exchange(self, connection: Connection, transport: Transport, recognition: Recognition) -> None:
        """Use these credentials from now on, over this transport; the cluster is the same."""
        self.connection = connection
        self.rules = None
        self.problems.pop(texts.TOKEN_NOT_RENEWED_REASON, None)
        self.link.exchange(transport)
        self.gate.exchange(recognition)
        self.recognition = recognition

    def was_asked(self, answered: bool) -> None:
        """Who it is."""
        self.silent = not answered

    def wait_with_renewal(self, seconds: float) -> None:
        self.patience = clock.monotonic() + seconds

    def has_rules(self, rules: list[dict[str, Any]]) -> None:
        self.rules = rules
        self.problems.pop(texts.ROLE_OUTDATED_REASON, None)


class Access:
    def __init__(
        self,
        secrets: MemberSecrets,
        members: Members,
        catalog: Catalog,
        connect: Connector,
        metrics: Metrics,
        timings: Timings,
    ):
        self._secrets = secrets
        self._members = members
        self._catalog = catalog
        self._connect = connect
        self._metrics = metrics
        self._timings = timings
        self._entries: dict[str, _Entry] = {}
        #: Why members that should be connected are not, as last known.
        self._shut_out: dict[str, Problem] = {}
        #: The name of a member that no longer accepts our credentials.
        self.rejected: Signal[str] = Signal("credentials a member refused")
        #: The name of a member at whose address another cluster answered.
        self.mismatched: Signal[str] = Signal("another cluster in a member's place")
        #: The name of a member to which requests and watches begin to fail, or succeed again.
        self.turned: Signal[str] = Signal("members that stop or begin to answer")

    @asynccontextmanager
    async def visit(
        self, cluster: FederatedCluster, bootstrap: bool | None = None, identity: Identity | None = None
    ) -> AsyncIterator[Client]:
        """A separate client with the credentials in the secret, closed afterwards. Raises CredentialsError.

        With an identity, every request raises WrongCluster if any other cluster answers.

        If the secret was deleted before its cluster (by foreground deletion), the credentials in use are taken.
        """
        try:
            connection = self._secrets.connection(cluster, bootstrap)
        except CredentialsError:
            in_use = self.in_use(cluster.name)
            if bootstrap is not None or in_use is None or not cluster.terminating or self._secrets.has(cluster):
                raise
            connection = in_use
        challenge = self._expect(identity, connection).challenge if identity is not None else None
        client = self._connect(cluster.name, connection, challenge)
        try:
            yield client
        finally:
            await client.close()

    # Being connected.

    async def connected(self, cluster: FederatedCluster) -> Member | None:
        """The member over a connection with the secret's credentials, or with the previous ones if those are unusable.

        Raises CredentialsError, or WrongCluster if another cluster answers.
        """
        try:
            member = await self._connected(cluster)
        except WrongCluster as error:
            self._shut_out[cluster.name] = _problem(texts.CLUSTER_IDENTITY_CHANGED_REASON, str(error))
            raise
        except CredentialsError as error:
            self._shut_out[cluster.name] = _problem(_reason(error), str(error))
            raise
        if self._entries[cluster.name].gate.is_open:
            self._shut_out.pop(cluster.name, None)
        return member

    async def _connected(self, cluster: FederatedCluster) -> Member | None:
        name = cluster.name
        entry, member = self._entries.get(name), self._members.get(name)
        if entry is not None and not entry.recognition.fits(recorded(cluster)):
            # The cached state is void, and the present cluster is asked over connections of its own.
            await self._drop(name)
            entry = member = None
        if entry is not None and not entry.gate.is_open:
            entry.was_asked(await self._recognize(name, entry.gate))
        try:
            connection = self._secrets.connection(cluster)
            if entry is None or member is None:
                return await self._connect_first(cluster, connection)
            if entry.connection != connection:
                member = await self._exchange(cluster, entry, member, connection)
        except (CredentialsError, *_FAILURES) as error:
            if entry is None:
                if isinstance(error, WrongCluster | CredentialsError):
                    raise
                raise CredentialsError(_told(error)) from None
            self._forget_unusable(entry)
            if _is_silence(error) and connection.server != entry.connection.server:
                entry.problems[texts.ENDPOINT_UNREACHABLE_REASON] = (
                    f"the API endpoint {connection.server} in the spec cannot be reached: {_told(error)}"
                )
                return member
            entry.problems[_reason(error)] = (
                f'the credentials in secret "{cluster.spec.secret_ref.name}" cannot be used, the previous ones stay in use:'
                f" {_told(error)}"
            )
            return member
        self._forget_unusable(entry)
        return member

    async def _connect_first(self, cluster: FederatedCluster, connection: Connection) -> Member:
        """A member that does not answer now is asked again with each request; another cluster is never written to."""
        recognition = self._expect(recorded(cluster), connection)
        link = self._link(cluster.name, self._connect(cluster.name, connection, recognition.challenge))
        gate = IdentityGate(link, recognition, self._timings.identity_period)
        try:
            answered = await self._recognize(cluster.name, gate)
        except BaseException:
            await link.close()
            raise
        entry = _Entry(connection, link, gate, recognition)
        entry.was_asked(answered)
        return await self._take(cluster.name, entry)

    async def _recognize(self, name: str, gate: IdentityGate) -> bool:
        """Ask which cluster is there. Returns whether there was an answer, be it an error. Raises WrongCluster."""
        try:
            async with asyncio.timeout(self._timings.probe_timeout):
                await gate.confirm()
        except WrongCluster:
            await self._drop(name)
            raise
        except _FAILURES as error:
            return not _is_silence(error)
        return True

    def _forget_unusable(self, entry: _Entry) -> None:
        for reason in _OF_EXCHANGES:
            entry.problems.pop(reason, None)

    def _expect(self, identity: Identity, connection: Connection) -> Recognition:
        return Recognition(identity, connection.server, self._mismatched)

    def _mismatched(self, recognition: Recognition) -> None:
        name = recognition.identity.cluster
        entry = self._entries.get(name)
        if entry is not None and entry.recognition is recognition:
            self._metrics.identity_mismatches.labels(name).inc()
            self.mismatched.tell(name)

    def _link(self, name: str, client: Client) -> MemberConnection:
        return MemberConnection(
            name,
            client.transport,
            on_rejected=lambda: self.rejected.tell(name),
            on_turn=lambda: self.turned.tell(name),
        )

    async def _take(self, name: str, entry: _Entry) -> Member:
        """Register the connection as the member of this name, with empty caches."""
        member = Member(
            name,
            Client(entry.gate),
            self._timings,
            entry.gate.confirm,
            recovered=self._members.recovered.tell,
            faltered=self.turned.tell,
        )
        self._entries[name] = entry
        await self._members.connect(member)
        return member

    async def _exchange(
        self, cluster: FederatedCluster, entry: _Entry, member: Member, connection: Connection
    ) -> Member:
        """Switch to other credentials, or another address, once the member answers to them."""
        recognition = self._expect(recorded(cluster), connection)
        client = self._connect(cluster.name, connection, recognition.challenge)
        gate = IdentityGate(client.transport, recognition, self._timings.identity_period)
        try:
            async with asyncio.timeout(self._timings.probe_timeout):
                await gate.confirm()
        except BaseException:
            await client.close()
            raise
        if entry.recognition.identity != recognition.identity:
            # The cluster was claimed anew, or had not answered before: the previous state does not apply.
            link = self._link(cluster.name, client)
            gate = IdentityGate(link, recognition, self._timings.identity_period)
            return await self._take(cluster.name, _Entry(connection, link, gate, recognition))
        entry.exchange(connection, client.transport, recognition)
        return member

    def in_use(self, name: str) -> Connection | None:
        """The connection of a member in use right now."""
        entry = self._entries.get(name)
        return entry.connection if entry is not None else None

    def member_uid(self, name: str) -> str:
        """The uid that identifies a connected member, once it was seen."""
        entry = self._entries.get(name)
        return entry.recognition.identity.namespace_uid if entry is not None and entry.gate.is_open else ""

    def silence(self, name: str) -> str | None:
        """Why the member cannot be asked, empty if there is no more to say; None if it can be."""
        entry = self._entries.get(name)
        if entry is None or (entry.silent and not entry.gate.is_open):
            return ""
        return entry.problems.get(texts.ENDPOINT_UNREACHABLE_REASON)

    def failing(self, name: str) -> bool:
        """Whether the last request to the member, or watch, failed without an answer."""
        entry = self._entries.get(name)
        return entry is not None and entry.link.failing

    async def disconnect(self, name: str) -> None:
        self._shut_out.pop(name, None)
        await self._drop(name)

    async def _drop(self, name: str) -> None:
        self._entries.pop(name, None)
        await self._members.disconnect(name)

    def problem(self, name: str) -> Problem | None:
        """The most significant problem with the access to the member."""
        entry, shut_out = self._entries.get(name), self._shut_out.get(name)
        if entry is None or shut_out is not None:
            return shut_out
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
                return _problem(reason, found[reason])
        return None

    # The service account.

    async def renew_token(self, cluster: FederatedCluster) -> bool:
        """Store the account's next token in the secret when it is due. Returns whether it was."""
        entry = self._entries[cluster.name]
        if (
            not cluster.spec.use_service_account
            or clock.monotonic() < entry.patience
            or not self._is_due(cluster, entry)
        ):
            return False
        # Whether it could not be issued, stored, or is refused as well: asking for another one at once would not help.
        entry.wait_with_renewal(self._timings.report_period)
        try:
            await self._secrets.keep_token(cluster, await self._next_token(cluster, entry))
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
            life = life_of(self._secrets.connection(cluster).token)
        except CredentialsError:
            return False
        return life is not None and clock.time() >= renewal_time(life, self._timings.token_renewal, cluster.name)

    async def _next_token(self, cluster: FederatedCluster, entry: _Entry) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await join.new_token(Client(entry.gate), self._timings.token_lifetime)
        except _FAILURES as error:
            if not self._secrets.has_bootstrap(cluster):
                raise
            first = error
        try:
            async with self.visit(cluster, True, entry.recognition.identity) as client, asyncio.timeout(_PATIENCE):
                return await self.equip(client, cluster, await join.claim(client, cluster))
        except join.NotTheMember as error:
            raise CredentialsError(str(error)) from None
        except (join.Unjoinable, join.StillLeaving):
            raise first from None

    async def equip(self, client: Client, cluster: FederatedCluster, namespace: dict[str, Any]) -> bytes:
        """Create the service account and its rights in a claimed member. Returns its token."""
        await join.furnish(client, namespace, self._rules(cluster))
        return await join.new_token(client, self._timings.token_lifetime)

    def _rules(self, cluster: FederatedCluster) -> list[dict[str, Any]]:
        return role.rules_for(cluster, self._catalog)

    # Its rights.

    async def follow_role(self, cluster: FederatedCluster, member: Member) -> bool:
        """Update the account's role to what the type configs need. Returns whether it was written."""
        entry = self._entries[cluster.name]
        # An account that gives up a right may not be able to regain it, so it waits in case the type comes back.
        lately = self._catalog.lately(self._timings.rights_kept)
        wanted = role.rules_for(cluster, lately)
        if not cluster.spec.use_service_account or (entry.rules == wanted and not entry.link.refusals()):
            return False
        try:
            async with asyncio.timeout(_PATIENCE):
                present = await member.client.get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
        except _FAILURES:
            # The role is unreadable (KubeAdmiral's may be), or the member does not answer: probe and refusals report that.
            return False
        if not role.is_ours(present) or present.get("rules") == wanted:
            entry.has_rules(wanted)
            return False
        try:
            await self._write_role(cluster, member, {**present, "rules": wanted})
        except (CredentialsError, *_FAILURES) as error:
            entry.problems[texts.ROLE_OUTDATED_REASON] = (
                f"the member's role does not match the type configs ({_difference(present.get('rules') or [], wanted)}) and may"
                f" not be changed from here; run: argosy join {cluster.name} --refresh-role --kubeconfig <of an administrator"
                f" of the member> ({_told(error).splitlines()[0]})"
            )
            return False
        entry.has_rules(wanted)
        return True

    async def _write_role(self, cluster: FederatedCluster, member: Member, role: dict[str, Any]) -> None:
        async with asyncio.timeout(_PATIENCE):
            try:
                await member.client.update(join.ROLES, role)
                return
            except Forbidden:
                if not self._secrets.has_bootstrap(cluster):
                    raise
            async with self.visit(cluster, True, self._entries[cluster.name].recognition.identity) as client:
                await client.update(join.ROLES, role)


#: Problems that end when the connection follows the spec and the secret again.
_OF_EXCHANGES = (
    texts.CREDENTIALS_UNUSABLE_REASON,
    texts.CREDENTIALS_WITHHELD_REASON,
    texts.ENDPOINT_UNREACHABLE_REASON,
)
#: The most significant first. An endpoint that does not answer says nothing about authorization: health reports it.
_BY_WEIGHT = (
    texts.CREDENTIALS_REJECTED_REASON,
    texts.CREDENTIALS_WITHHELD_REASON,
    texts.CREDENTIALS_UNUSABLE_REASON,
    texts.TOKEN_NOT_RENEWED_REASON,
    texts.ROLE_OUTDATED_REASON,
    texts.RIGHTS_MISSING_REASON,
)


def _is_silence(error: Exception) -> bool:
    """Whether nobody answered. (Another cluster did.)"""
    return isinstance(error, TransportError | TimeoutError) and not isinstance(error, WrongCluster)


def _reason(error: Exception) -> str:
    withheld = isinstance(error, CredentialsWithheld)
    return texts.CREDENTIALS_WITHHELD_REASON if withheld else texts.CREDENTIALS_UNUSABLE_REASON


def _problem(reason: str, message: str) -> Problem:
    return Problem(reason, message[:_LONGEST_MESSAGE])


def _told(error: BaseException) -> str:
    return str(error) or "no answer in time"


def _difference(present: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> str:
    """The kinds for which rights are missing, and those whose rights are not needed."""
    try:
        held, needed = _kinds(present), _kinds(wanted)
    except MISSHAPEN:
        return "its rules cannot be read"
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
