"""Webhooks: scheduling plugins over HTTP, one client per SchedulerPluginWebhookConfiguration.

A client keeps its connections, asks about several clusters in parallel, and waits no longer than the configuration says. A
webhook that fails to answer several times in a row is not asked for a while (`Breaker`): questions fail at once meanwhile.
Every failure is a Reply: a webhook raises nothing here. Every change of a configuration makes a new client; the old one is
closed when its last question is answered. Owns connections and no task.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec

from argosy.api import resources
from argosy.api.conditions import EventReason
from argosy.api.types import (
    FederatedCluster,
    SchedulerPluginWebhookConfiguration,
    WebhookConfigurationSpec,
    WebhookTLSConfig,
)
from argosy.control.members.breaker import Breaker, BreakerOpen
from argosy.control.timings import Timings
from argosy.control.wake import Follow, Signal, Source
from argosy.fleet.member import digest
from argosy.kube import duration
from argosy.kube.config import Connection
from argosy.kube.credentials import ConfigError
from argosy.kube.endpoints import DEFAULT_RULES, EndpointRules, canonical
from argosy.kube.events import EventRecorder
from argosy.kube.http import BROKEN, describe
from argosy.kube.informer import Change
from argosy.kube.pieces import whole
from argosy.kube.references import reference_of
from argosy.kube.resolver import GuardedResolver
from argosy.kube.tls import client_context, proxy_for
from argosy.plan.scheduling.framework import Reply
from argosy.plan.scheduling.profile import RemotePlugin
from argosy.plan.scheduling.webhook import (
    BATCH,
    SINGLE,
    Answer,
    Call,
    ParsedAnswer,
    Question,
    calls,
    cluster_payload,
    failed,
    payload_version,
    read,
    reply,
    short,
    url_of,
)

__all__ = ["WebhookClient", "Webhooks"]

log = logging.getLogger(__name__)
Phase = Literal["filter", "score", "select"]
Clusters = Callable[[str], FederatedCluster | None]

USER_AGENT = "kubeadmiral-scheduler"
#: Concurrent questions (objects) to one webhook, and requests for them.
QUESTIONS = 8
REQUESTS = 32
#: Concurrent requests to all webhooks together: bounds connections and memory, however many webhooks are slow.
ALL_REQUESTS = 256
#: Longest timeout of a request, whatever a configuration says (as for Kubernetes' own webhooks): a few that hang must not
#: block all others.
LONGEST_TIMEOUT = 30.0
#: Size limits of answers about one cluster, about a batch, and of a selection of thousands. There may be hundreds of answers
#: at a time.
LONGEST_ABOUT_ONE = 64 * 1024
LONGEST_ABOUT_MANY = 256 * 1024
LONGEST_SELECTION = 1024 * 1024
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": USER_AGENT,
}
_KEEPALIVE = 30.0
_DEFAULT_TIMEOUT = 5.0
#: Bytes of an error's body that are shown.
_SHOWN = 1024
_SLICE = 0.005


class WebhookClient:
    """Asks one webhook. Raises ConfigError if the configuration is invalid."""

    def __init__(
        self,
        name: str,
        spec: WebhookConfigurationSpec,
        clusters: Clusters,
        timings: Timings,
        shared: asyncio.Semaphore | None = None,
        endpoints: EndpointRules = DEFAULT_RULES,
    ):
        """`shared` is acquired for each request, and limits those of all webhooks."""
        version = payload_version(spec.payload_versions)
        if version is None:
            raise ConfigError(
                f"no payload version is supported: it has {', '.join(map(short, spec.payload_versions)) or 'none'}, "
                f"but {SINGLE} or {BATCH} is needed"
            )
        self._version = version
        self._paths: dict[str, str] = {"filter": spec.filter_path, "score": spec.score_path, "select": spec.select_path}
        self._prefix = _checked_url(spec.url_prefix, endpoints)
        self._endpoints = endpoints
        asked = _timeout(spec.http_timeout)
        self.timeout = min(asked, LONGEST_TIMEOUT)
        #: A warning for the configuration's author, although it works.
        self.warning = (
            f"httpTimeout is longer than allowed, and taken as {LONGEST_TIMEOUT:g} s" if asked > LONGEST_TIMEOUT else ""
        )
        tls = spec.tls_config or WebhookTLSConfig()
        connection = Connection(
            server=self._prefix,
            ca_data=_pem(tls.ca_data, "caData"),
            client_certificate=_pem(tls.cert_data, "certData"),
            client_key=_pem(tls.key_data, "keyData"),
            insecure=tls.insecure,
            tls_server_name=tls.server_name,
        )
        certificate = (connection.client_certificate, connection.client_key)
        self._ssl = client_context(connection, *certificate) if self._prefix.startswith("https:") else None
        self._server_name = tls.server_name or None
        self._proxy = proxy_for(connection)
        self._payloads = _Payloads(clusters, version)
        self._questions = asyncio.Semaphore(QUESTIONS)
        self._requests = asyncio.Semaphore(REQUESTS)
        self._shared = shared or asyncio.Semaphore(ALL_REQUESTS)
        #: For all requests of a question.
        self._longest = max(timings.webhook_question, self.timeout)
        self._breaker = Breaker(timings.breaker_failures, timings.breaker_open)
        self._last_failure = ""
        self._session: aiohttp.ClientSession | None = None
        #: Questions that are asked or queued.
        self._open = 0
        self._retired = False
        self._closed = False
        phases: tuple[Phase, ...] = ("filter", "score", "select")
        self.plugin = RemotePlugin(
            name,
            tuple(phase for phase in phases if self._paths[phase]),
            f"{digest(msgspec.to_builtins(spec, order='deterministic')):016x}",
        )

    async def answer(self, question: Question) -> Reply:
        """The webhook's answer. Waits while the webhook has as many other questions as allowed at a time."""
        self._open += 1
        try:
            async with self._questions:
                try:
                    async with asyncio.timeout(self._longest):
                        return await self._ask(question)
                except TimeoutError:
                    return failed(question, f"not all requests were answered within {self._longest:g} s")
        finally:
            self._open -= 1
            if self._retired:
                await self.retire()

    async def retire(self) -> None:
        """Close once no question is pending."""
        self._retired = True
        if self._open == 0:
            await self.close()

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, question: Question) -> Reply:
        path = self._paths[question.phase]
        if not path:
            return failed(question, f"the webhook serves no {question.phase}Path")
        try:
            self._breaker.check()
        except BreakerOpen:
            return failed(question, self._last_failure)
        await self._payloads.prepare(question.clusters)
        requests = calls(question, self._payloads.of, self._version)
        url = url_of(self._prefix, path)
        said: list[ParsedAnswer] = []
        if self._breaker.is_open and requests:
            # A webhook that failed lately must answer one call before it is sent the others.
            try:
                said = [await self._said(url, question, requests[0], probing=True)]
            finally:
                self._breaker.abandoned()
            if self._breaker.is_open:
                return failed(question, self._last_failure)
        said += await asyncio.gather(*(self._said(url, question, call) for call in requests[len(said) :]))
        return reply(question, said)

    async def _said(self, url: str, question: Question, call: Call, *, probing: bool = False) -> ParsedAnswer:
        """The content of the answer to one call. Parsed as it arrives: there may be hundreds of long answers."""
        longest = self._longest_answer(question.phase)
        return read(question, await self._call(url, call, longest, probing=probing), self._version)

    def _longest_answer(self, phase: str) -> int:
        if phase == "select":
            return LONGEST_SELECTION
        return LONGEST_ABOUT_ONE if self._version == SINGLE else LONGEST_ABOUT_MANY

    async def _call(self, url: str, call: Call, longest: int, *, probing: bool = False) -> Answer:
        async with self._requests, self._shared:
            if self._breaker.is_open and not probing:
                return Answer(call, error=self._last_failure)
            try:
                async with asyncio.timeout(self.timeout):
                    status, body = await self._post(url, call.body, longest)
            except TimeoutError:
                why = f"no answer within {self.timeout:g} s"
            except BROKEN as error:
                why = describe(error)
            else:
                self._breaker.succeeded()
                if body is None:
                    return Answer(call, error=f"the answer is longer than {longest} bytes")
                return _answer(call, status, body)
        self._last_failure = f"request failed: {short(why)}"
        if probing or not self._breaker.is_open:  # calls from before the breaker opened tell nothing new
            self._breaker.failed()
        return Answer(call, error=self._last_failure)

    async def _post(self, url: str, body: bytes, longest: int) -> tuple[int, bytes | None]:
        """Status and body of the response; None for a body that is too long."""
        async with self._sessions().post(
            url,
            data=body,
            headers=HEADERS,
            ssl=self._ssl if self._ssl is not None else True,
            server_hostname=self._server_name,
            proxy=self._proxy,
            allow_redirects=False,
        ) as response:
            return response.status, await _read(response, longest)

    def _sessions(self) -> aiohttp.ClientSession:
        if self._closed:
            raise RuntimeError("the webhook's configuration is gone")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=whole(aiohttp.TCPConnector(limit=0, resolver=self._resolver(), keepalive_timeout=_KEEPALIVE)),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                # Compressed answers are invalid here: we accept none, and a small one may expand to a large one.
                auto_decompress=False,
            )
        return self._session

    def _resolver(self) -> GuardedResolver | None:
        # A proxy resolves names itself, and the proxy's own address is the operator's choice.
        return GuardedResolver(self._endpoints) if self._proxy is None else None


class _Payloads:
    """Clusters as webhooks see them, encoded once per version."""

    def __init__(self, clusters: Clusters, version: str):
        self._clusters = clusters
        self._version = version
        self._known: dict[str, tuple[FederatedCluster, bytes]] = {}

    async def prepare(self, names: list[str]) -> None:
        """Yields to the event loop in between: hundreds of clusters take a while."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _SLICE
        for name in names:
            self.of(name)
            if loop.time() >= until:
                await asyncio.sleep(0)
                until = loop.time() + _SLICE

    def of(self, name: str) -> bytes | None:
        cluster = self._clusters(name)
        if cluster is None:
            self._known.pop(name, None)
            return None
        known = self._known.get(name)
        if known is None or known[0] is not cluster:
            known = self._known[name] = cluster, cluster_payload(cluster, self._version)
        return known[1]


class Webhooks:
    """All webhooks."""

    name = "webhook plugins"

    def __init__(
        self,
        clusters: Clusters,
        timings: Timings,
        events: EventRecorder | None = None,
        endpoints: EndpointRules = DEFAULT_RULES,
        configurations: Source[Change[SchedulerPluginWebhookConfiguration]] | None = None,
    ):
        """Without a recorder no events are recorded: another shard does.

        Without a source of `configurations`, call `observe` with each change.
        """
        self._configurations = configurations
        self._endpoints = endpoints
        self._cluster = clusters
        self._timings = timings
        self._events = events
        self._clients: dict[str, WebhookClient] = {}
        self._requests = asyncio.Semaphore(ALL_REQUESTS)
        self._retiring: set[asyncio.Task[None]] = set()
        #: The name of a webhook that was created, deleted or changed.
        self.changes: Signal[str] = Signal("webhook plugins")
        #: Invalid configurations, and why.
        self.unusable: dict[str, str] = {}

    def follows(self) -> Iterable[Follow[Change[SchedulerPluginWebhookConfiguration]]]:
        if self._configurations is not None:
            yield Follow(self._configurations, self.observe, "which webhooks there are")

    def remotes(self) -> Iterator[RemotePlugin]:
        for client in self._clients.values():
            yield client.plugin

    def observe(self, change: Change[SchedulerPluginWebhookConfiguration]) -> None:
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            return
        name = change.key
        self.unusable.pop(name, None)
        client = self._clients.pop(name, None)
        if client is not None:
            self._retire(client)
        if change.new is not None:
            self._register(change.new)
        self.changes.tell(name)

    def _register(self, configuration: SchedulerPluginWebhookConfiguration) -> None:
        name = configuration.metadata.name
        try:
            self._clients[name] = WebhookClient(
                name, configuration.spec, self._cluster, self._timings, self._requests, self._endpoints
            )
        except ConfigError as error:
            self.unusable[name] = str(error)
            self.tell(configuration, "Warning", EventReason.WEBHOOK_CONFIGURATION_ERROR, str(error))
            return
        phases = ", ".join(self._clients[name].plugin.phases) or "no phase"
        message = f"asked by profiles that name it; it serves {phases}"
        warning = self._clients[name].warning
        if warning:
            log.warning("webhook %s: %s", name, warning)
            message = f"{message}; {warning}"
        self.tell(configuration, "Warning" if warning else "Normal", EventReason.WEBHOOK_REGISTERED, message)

    def tell(
        self, configuration: SchedulerPluginWebhookConfiguration, type: str, reason: EventReason, message: str
    ) -> None:
        """Record an event on the configuration."""
        if self._events is None:
            return
        about = reference_of(resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, configuration.metadata)
        self._events.event(about, type, reason, message)

    async def answer(self, question: Question) -> Reply:
        client = self._clients.get(question.plugin)
        if client is None:
            return failed(question, "the webhook no longer exists")
        return await client.answer(question)

    def _retire(self, client: WebhookClient) -> None:
        task = asyncio.ensure_future(client.retire())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        clients = list(self._clients.values())
        self._clients.clear()
        await asyncio.gather(*self._retiring, *(client.close() for client in clients))


def _answer(call: Call, status: int, body: bytes) -> Answer:
    if status != 200:
        said = short(body[:_SHOWN].decode("utf-8", "replace"))
        return Answer(call, error=f"unexpected status code: {status}, body: {said}")
    return Answer(call, body)


async def _read(response: aiohttp.ClientResponse, longest: int) -> bytes | None:
    chunks = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > longest:
            response.close()
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _checked_url(prefix: str, endpoints: EndpointRules) -> str:
    try:
        parts = urlsplit(prefix)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"urlPrefix is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("urlPrefix must start with http:// or https:// and name a host")
    if refusal := endpoints.refusal(prefix):
        raise ConfigError(f"urlPrefix: {refusal}")
    return canonical(prefix)


def _timeout(text: str) -> float:
    """Seconds; 0 means the default."""
    try:
        seconds = duration.seconds(text or "0s")
    except duration.DurationError as error:
        raise ConfigError(f"httpTimeout: {error}") from None
    if seconds < 0:
        raise ConfigError("httpTimeout must not be negative")
    return seconds or _DEFAULT_TIMEOUT


def _pem(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"tlsConfig.{field} is not base64") from None
