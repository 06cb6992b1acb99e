"""Plugins from outside: profiles, and webhooks with the requests they get and the answers they give."""

import asyncio
import base64
import contextlib
import datetime
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from argosy.api.profiles import (
    Plugin,
    Plugins,
    PluginSet,
    SchedulingProfileSpec,
    WebhookConfigurationSpec,
    WebhookTLSConfig,
)
from argosy.control.scheduling import webhooks
from argosy.control.scheduling.webhooks import WebhookClient
from argosy.control.timings import Timings
from argosy.fleet.snapshot import Fleet
from argosy.kube import quantity
from argosy.plan.scheduling.framework import (
    Ask,
    Filter,
    FrameworkError,
    Profile,
    Ranked,
    Remote,
    Replicas,
    Score,
    Select,
)
from argosy.plan.scheduling.profile import Registry, merge_profile
from argosy.plan.scheduling.schedule import decide, schedule
from argosy.plan.scheduling.unit import Unit
from argosy.plan.scheduling.webhook import SINGLE, question_of, scheduling_unit
from tests.harness.webhook import webhook_server
from tests.vectors.adapters import equal, units

PLUGIN = "test"


# The framework.


def framework_runtime(vector: dict[str, Any]) -> dict[str, Any]:
    return _filters(vector) if vector["kind"] == "run_filters" else _built(vector)


def _filters(vector: dict[str, Any]) -> dict[str, Any]:
    """One cluster, and filters named by their positions that pass it or do not."""
    fleet = units.fleet([_joined("one")])
    filters = tuple(_filter(str(at), result == "Success") for at, result in enumerate(vector["filter_plugin_results"]))
    decision = schedule(Unit(), fleet, Profile(filters=filters))
    if not decision.rejected:
        return {"code": "Success"}
    return {"code": "Error", "failed_plugin_index": int(decision.rejected["one"][0])}


def _built(vector: dict[str, Any]) -> dict[str, Any]:
    can = vector["registry_capabilities"]
    registry = Registry(
        filters={name: _filter(name) for name in can if "filter" in can[name]},
        scores={name: Score(name, lambda unit, fleet: fleet.zeros) for name in can if "score" in can[name]},
        selects={name: Select(name, lambda unit, fleet, ranked: ranked) for name in can if "select" in can[name]},
        replicas={name: Replicas(name, _nobody_divides) for name in can if "replicas" in can[name]},
    )
    wanted = {
        point: PluginSet(enabled=tuple(Plugin(name, strategy="Spread" * (point == "replicas")) for name in names))
        for point, names in vector["enabled"].items()
    }
    try:
        merged = merge_profile(Profile(), registry, SchedulingProfileSpec(plugins=Plugins(**wanted)))
    except FrameworkError:
        return {"error": True}
    return {
        "error": False,
        "filter": [plugin.name for plugin in merged.filters],
        "score": [plugin.name for plugin in merged.scores],
        "select": [plugin.name for plugin in merged.selects],
        "replicas": [plugin.name for plugin in merged.replicas.values()],
    }


def _filter(name: str, passes: bool = True) -> Filter:
    return Filter(name, lambda unit, fleet: np.full(len(fleet), passes), lambda unit, fleet, row: name)


def _nobody_divides(*_: Any) -> Any:
    raise AssertionError


# Webhooks.


def convert(vector: dict[str, Any]) -> dict[str, Any]:
    return {"payload": msgspec.to_builtins(scheduling_unit(units.unit(vector["scheduling_unit"])))}


class _Scripted(WebhookClient):
    """The product's client, but for the exchange itself."""

    script: dict[str, Any]
    sent: tuple[str, bytes] | None = None

    async def _post(self, url: str, body: bytes, longest: int) -> tuple[int, bytes | None]:
        if self.script["transport_error"]:
            raise aiohttp.ClientError(self.script["transport_error"])
        self.sent = url, body
        if "raw_body" in self.script:
            return self.script["status"], self.script["raw_body"].encode()
        return self.script["status"], msgspec.json.encode(self.script["json_body"])


def calls(vector: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(_calls(vector))


async def _calls(vector: dict[str, Any]) -> dict[str, Any]:
    phase = vector["call"]
    scored = vector.get("cluster_scores") or [{"cluster": vector["cluster"], "score": 0}]
    clusters = {item["cluster"]["metadata"]["name"]: units.cluster(item["cluster"]) for item in scored}
    spec = WebhookConfigurationSpec((SINGLE,), "https://webhook", "filter", "score", "select")
    client = _Scripted(PLUGIN, spec, clusters.get, Timings())
    client.script = vector["http"]
    fleet = Fleet.of(clusters.values())
    ranked = Ranked(np.arange(len(scored)), np.array([item["score"] for item in scored]))
    reply = await client.answer(
        question_of(Ask(Remote(PLUGIN, phase), units.unit(vector["scheduling_unit"]), fleet, ranked))
    )
    told = (reply.error or next(iter(reply.errors.values()), "")).removeprefix(f"webhookPlugin({PLUGIN}): ")
    answer: dict[str, Any] = {
        "message": told,
        "result": {"code": "Error" if told else "Success", "reasons": [told] if told else []},
        "request": msgspec.json.decode(client.sent[1]) if client.sent else None,
        "request_http": _http(client.sent[0]) if client.sent else None,
    }
    if phase == "score":
        answer["score"] = 0 if reply.scores is None else int(reply.scores[0])
    if phase == "select":
        answer["selected"] = None if reply.rows is None else fleet.names_of(reply.rows)
    return answer


def _http(url: str) -> dict[str, str]:
    headers = webhooks.HEADERS
    return {
        "accept": headers["Accept"],
        "content_type": headers["Content-Type"],
        "method": "POST",
        "path": url.removeprefix("https://webhook/"),
        "user_agent": headers["User-Agent"],
    }


def same_payload(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    return equal(_by_value(expected), _by_value(actual))


def _by_value(value: Any, of_quantities: bool = False) -> Any:
    """Quantities as amounts; lists of clusters and placements in one order."""
    if isinstance(value, dict):
        named = ("resourceRequest", "allocatable", "available")
        return {key: _by_value(item, of_quantities or key in named) for key, item in value.items()}
    if isinstance(value, list):
        return [_by_value(item) for item in value]
    return quantity.parse(value).nanos if of_quantities and isinstance(value, str) else value


def end_to_end(vector: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(_end_to_end(vector))


async def _end_to_end(vector: dict[str, Any]) -> dict[str, Any]:
    certificates = _Certificates(vector["server"], vector["client_tls_config"] or {})
    clusters = {name: units.cluster(_joined(name)) for name in vector["clusters"]}
    async with webhook_server(certificates.context()) as server:
        server.behaviour["rejected"] = ["reject"]
        spec = WebhookConfigurationSpec(
            (SINGLE,), server.url, filter_path="/filter", http_timeout="2s", tls_config=certificates.client()
        )
        client = WebhookClient("test-webhook", spec, clusters.get, Timings())
        off = PluginSet(disabled=(Plugin("*"),))
        only = PluginSet(enabled=(Plugin("test-webhook", type="Webhook"),), disabled=(Plugin("*"),))
        wanted = SchedulingProfileSpec(plugins=Plugins(filter=only, score=off, select=off))
        profile = merge_profile(Profile(), Registry().with_remotes([client.plugin]), wanted)
        steps = decide(Unit(group="apps", version="v1", kind="Deployment"), Fleet.of(clusters.values()), profile)
        try:
            ask = next(steps)
            while True:
                ask = steps.send(await client.answer(question_of(ask)))
        except StopIteration as done:
            return {"placement": list(done.value.placements), "filter_calls": server.calls["filter"]}
        finally:
            await client.close()


class _Certificates:
    def __init__(self, server: dict[str, Any], client: dict[str, Any]):
        self._wanted, self._tls = server, client
        self._server = _self_signed("example.com" if "example.com" in server.get("cert", "") else "127.0.0.1")
        self._client = _self_signed("client")

    def context(self) -> ssl.SSLContext | None:
        if not self._wanted["tls"]:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with _file(b"".join(self._server)) as path:
            context.load_cert_chain(path)
        if self._wanted.get("require_client_cert"):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._client[0].decode())
        return context

    def client(self) -> WebhookTLSConfig | None:
        if not self._tls:
            return None
        material = {"ca_data": self._server[0], "cert_data": self._client[0], "key_data": self._client[1]}
        given = {"ca_data": "caData", "cert_data": "certData", "key_data": "keyData"}
        return WebhookTLSConfig(
            insecure=self._tls.get("insecure", False),
            server_name=self._tls.get("serverName", ""),
            **{field: base64.b64encode(material[field]).decode() for field, key in given.items() if key in self._tls},
        )


def _self_signed(name: str) -> tuple[bytes, bytes]:
    """Certificate and key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), private


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    handle, path = tempfile.mkstemp()
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    yield path
    os.unlink(path)


def _joined(name: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True"} for kind in ("Joined", "Ready")]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


ADAPTERS = {
    "framework_runtime": framework_runtime,
    "webhook_convert": convert,
    "webhook_calls": calls,
    "webhook_e2e_tls": end_to_end,
}
SAME = dict.fromkeys(("webhook_convert", "webhook_calls"), same_payload)
