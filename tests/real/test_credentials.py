"""How a client proves who it is to a real kube-apiserver, and reaches it; and how each way reads when it fails."""

import asyncio
import base64
import datetime
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.credentials import ConfigError
from argosy.kube.errors import ApiError, TransportError, Unauthorized
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.testing import API_SERVER, Cluster
from argosy.testing.certificates import Authority
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.proxy import Proxy

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
async def cluster(kubernetes: Kubernetes) -> Cluster:
    return await kubernetes.shared(API_SERVER)


class Files:
    """Kubeconfigs of one cluster, with whatever user and cluster settings a test wants."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def kubeconfig(self, user: dict[str, Any], **cluster: Any) -> str:
        content = yaml.safe_load(self.cluster.kubeconfig.read_text())
        content["users"][0]["user"] = user
        described = {**content["clusters"][0]["cluster"], **cluster}
        content["clusters"][0]["cluster"] = {key: value for key, value in described.items() if value is not None}
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return str(path)

    @asynccontextmanager
    async def client(self, user: dict[str, Any], **cluster: Any) -> AsyncIterator[Client]:
        made = Client(HttpTransport(config.load(self.kubeconfig(user, **cluster)), timeout=10.0))
        try:
            yield made
        finally:
            await made.close()

    def certificate(self, user: str, **options: Any) -> dict[str, str]:
        pair = self.cluster.authority.client(user, **options)
        return {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)}

    async def token_of(self, account: str) -> str:
        """A service account's, from the server itself."""
        admin = self.cluster.client()
        try:
            await admin.apply(
                ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}, "default"
            )
            body = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 600},
            }
            answer = await admin.create(ACCOUNTS, body, "default", name=account, subresource="token")
            return str(answer["status"]["token"])
        finally:
            await admin.close()


@pytest.fixture
def files(cluster: Cluster, tmp_path: Path) -> Files:
    return Files(cluster, tmp_path)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def who(client: Client) -> str:
    """Who the server takes us for."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.create(REVIEWS, body)
    return str(answer["status"]["userInfo"]["username"])


class Plugin:
    """A program that prints the credential in a file, and counts how often it was run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plugin"
        self._answer = folder / "answer"
        self._runs = folder / "runs"
        self.path.write_text(f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> {self._runs}\ncat {self._answer}\n')
        self.path.chmod(0o755)

    def says(self, **status: Any) -> None:
        self._answer.write_bytes(orjson.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": status}))

    @property
    def runs(self) -> list[Any]:
        return [orjson.loads(line) for line in self._runs.read_text().splitlines()] if self._runs.exists() else []

    def user(self, **more: Any) -> dict[str, Any]:
        return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **more}}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


async def test_a_token(files: Files) -> None:
    async with files.client({"token": files.cluster.token}) as client:
        assert await who(client) == "admin"


async def test_a_client_certificate(files: Files) -> None:
    async with files.client(files.certificate("alice", groups=["testers"])) as client:
        assert await who(client) == "alice"


async def test_certificates_in_files_beside_the_kubeconfig(files: Files) -> None:
    files.cluster.authority.client("bob").write(files.folder, "bob")
    async with files.client({"client-certificate": "bob.crt", "client-key": "bob.key"}) as client:
        assert await who(client) == "bob"


async def test_a_token_file_is_read_again_once_the_server_refuses(files: Files) -> None:
    token = files.folder / "token"
    token.write_text(await files.token_of("first"))
    async with files.client({"tokenFile": "token"}) as client:
        assert await who(client) == "system:serviceaccount:default:first"
        # Who removes the account makes its tokens worthless.
        admin = files.cluster.client()
        await admin.delete(ACCOUNTS, "first", "default")
        await admin.close()
        token.write_text(await files.token_of("second"))
        await eventually(lambda: is_user(client, "system:serviceaccount:default:second"), 60)


async def is_user(client: Client, name: str) -> bool:
    return await who(client) == name


async def test_an_exec_plugin_gives_a_token_and_is_run_again_when_it_is_refused(files: Files, plugin: Plugin) -> None:
    plugin.says(token=files.cluster.token)
    async with files.client(plugin.user(provideClusterInfo=True)) as client:
        assert await who(client) == "admin"
        assert await who(client) == "admin"
        assert len(plugin.runs) == 1
        told = plugin.runs[0]["spec"]
        assert told["cluster"]["server"] == files.cluster.server
        assert base64.b64decode(told["cluster"]["certificate-authority-data"]) == files.cluster.authority.certificate
        assert told["interactive"] is False
    plugin.says(token="wrong")
    async with files.client(plugin.user()) as client:
        with pytest.raises(Unauthorized):
            await who(client)
        assert len(plugin.runs) == 3, "asked once more after the refusal, not for ever"
        plugin.says(token=files.cluster.token)
        assert await who(client) == "admin"
        assert len(plugin.runs) == 4


async def test_a_watch_renews_a_refused_credential_too(files: Files, plugin: Plugin) -> None:
    plugin.says(token="wrong")
    async with files.client(plugin.user()) as client:
        with pytest.raises(Unauthorized):
            async with client.watch(NAMESPACES, resource_version="0"):
                pass
        plugin.says(token=files.cluster.token)
        async with client.watch(NAMESPACES, resource_version="0", timeout_seconds=1) as events:
            assert [event.type async for event in events]
        assert len(plugin.runs) == 3


async def test_an_exec_plugin_gives_certificates_that_expire(files: Files, plugin: Plugin) -> None:
    def issue(user: str, seconds: int) -> None:
        pair = files.cluster.authority.client(user)
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        plugin.says(
            clientCertificateData=pair.certificate.decode(),
            clientKeyData=pair.key.decode(),
            expirationTimestamp=end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )

    issue("carol", 2)
    async with files.client(plugin.user()) as client:
        assert await who(client) == "carol"
        issue("dave", 600)
        await eventually(lambda: is_user(client, "dave"), 30)
        assert len(plugin.runs) == 2


async def test_a_plugin_that_fails_is_one_line(files: Files, plugin: Plugin) -> None:
    plugin.path.write_text("#!/bin/sh\necho 'please log in' >&2\nexit 1\n")
    async with files.client(plugin.user()) as client:
        with pytest.raises(TransportError, match=r"user 'admin': .*/plugin failed with exit code 1: please log in$"):
            await who(client)


async def test_a_proxy_of_the_kubeconfig(files: Files) -> None:
    async with Proxy(files.cluster.ports.apiserver, password="me:secret") as proxy:
        with_password = proxy.url.replace("//", "//me:secret@")
        async with files.client(files.certificate("alice"), **{"proxy-url": with_password}) as client:
            assert await who(client) == "alice"
        async with (
            files.client({"token": files.cluster.token}, **{"proxy-url": with_password}) as client,
            client.watch(NAMESPACES, resource_version="0", timeout_seconds=1) as events,
        ):
            assert [event.type async for event in events]
        assert set(proxy.asked) == {f"127.0.0.1:{files.cluster.ports.apiserver}"}


async def test_a_proxy_of_the_environment(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name only the proxy knows how to reach; the certificate must still be that name's."""
    user = {"token": files.cluster.token}
    server = f"https://kubernetes.default.svc:{files.cluster.ports.apiserver}"
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with Proxy(files.cluster.ports.apiserver) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with files.client(user, server=server) as client:
            assert await who(client) == "admin"
        assert proxy.asked == [server.removeprefix("https://")]
        # The loopback, and what NO_PROXY names, are reached directly.
        async with files.client(user) as client:
            assert await who(client) == "admin"
        monkeypatch.setenv("NO_PROXY", ".svc,192.0.2.0/24")
        assert HttpTransport(config.load(files.kubeconfig(user, server=server)))._proxy is None
        ranged = config.load(files.kubeconfig(user, server="https://192.0.2.7"))
        assert HttpTransport(ranged)._proxy is None
        assert len(proxy.asked) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"password": "a:b"}, "the proxy refused to connect: 407"),
        ({"refuses": True}, "the proxy refused to connect: 403"),
    ],
)
async def test_a_proxy_that_refuses_is_one_line(files: Files, options: dict[str, Any], says: str) -> None:
    async with Proxy(files.cluster.ports.apiserver, **options) as proxy:
        async with files.client({"token": "s3cret"}, **{"proxy-url": proxy.url}) as client:
            with pytest.raises(TransportError, match=says):
                await who(client)
        assert len(proxy.asked) == 1


async def test_a_proxy_that_is_not_there_is_one_line(files: Files) -> None:
    async with files.client({"token": "x"}, **{"proxy-url": f"http://127.0.0.1:{closed_port()}"}) as client:
        with pytest.raises(TransportError, match="the proxy cannot be reached: "):
            await client.request("GET", "/version", timeout=3.0)


async def test_another_name_in_the_certificate(files: Files) -> None:
    user = {"token": files.cluster.token}
    async with files.client(user, **{"tls-server-name": "kubernetes.default.svc"}) as client:
        assert await who(client) == "admin"
    async with files.client(user, **{"tls-server-name": "elsewhere.example"}) as client:
        with pytest.raises(TransportError, match="certificate verify failed: Hostname mismatch"):
            await who(client)


async def test_insecure_trusts_anybody_and_nothing_else_does(files: Files) -> None:
    other = b64(Authority("another").certificate)
    user = {"token": files.cluster.token}
    async with files.client(user, **{"certificate-authority-data": other}) as client:
        with pytest.raises(TransportError) as refused:
            await who(client)
    assert "certificate verify failed: " in str(refused.value)
    assert "_ssl.c" not in str(refused.value)
    trusting = {"certificate-authority-data": None, "insecure-skip-tls-verify": True}
    async with files.client(user, **trusting) as client:
        assert await who(client) == "admin"


async def test_an_expired_client_certificate_is_told(files: Files) -> None:
    expired = files.certificate("alice", lifetime=datetime.timedelta(minutes=-5))
    async with files.client(expired) as client:
        with pytest.raises(Unauthorized, match=r"^Unauthorized: the client certificate expired on \d{4}-\d\d-\d\d "):
            await who(client)
        with pytest.raises(Unauthorized, match="the client certificate expired on"):
            async with client.watch(NAMESPACES, resource_version="0"):
                pass


async def test_a_stranger_is_refused(files: Files) -> None:
    pair = Authority("another").client("alice")
    stranger = {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)}
    for user in ({"token": "wrong"}, stranger):
        async with files.client(user) as client:
            with pytest.raises(Unauthorized):
                await who(client)


def test_a_certificate_without_its_key_is_one_line(files: Files) -> None:
    half = {"client-certificate-data": files.certificate("alice")["client-certificate-data"]}
    mixed = {**files.certificate("alice"), "client-key-data": files.certificate("bob")["client-key-data"]}
    for user, says in ((half, "needs both the certificate and its key"), (mixed, "do not belong together")):
        with pytest.raises(ConfigError, match=says):
            HttpTransport(config.load(files.kubeconfig(user)))


async def test_a_dead_endpoint_is_one_line(files: Files) -> None:
    server = f"https://127.0.0.1:{closed_port()}"
    async with files.client({"token": "x"}, server=server) as client:
        with pytest.raises(TransportError) as refused:
            await client.request("GET", "/version", timeout=1.0)
    assert str(refused.value).startswith(f"{server}: ")
    assert "\n" not in str(refused.value)
    assert "ssl:" not in str(refused.value)


async def test_plain_http_to_a_tls_port_and_the_other_way_round(files: Files) -> None:
    async with files.client({"token": "x"}, server=files.cluster.server.replace("https", "http")) as client:
        with pytest.raises(ApiError, match="Client sent an HTTP request to an HTTPS server"):
            await client.version()
    async with (
        plain_server(b"hello") as port,
        files.client({"token": "x"}, server=f"https://127.0.0.1:{port}") as client,
    ):
        with pytest.raises(TransportError, match="it does not speak TLS"):
            await client.version()


@pytest.mark.parametrize(
    ("code", "error"), [("200 OK", TransportError), ("404 Not Found", ApiError), ("302 Found", ApiError)]
)
async def test_a_server_that_is_not_kubernetes_is_told(files: Files, code: str, error: type[Exception]) -> None:
    page = b"<!doctype html><html><title>It works!</title></html>"
    async with (
        plain_server(page, code) as port,
        files.client({"token": "x"}, server=f"http://127.0.0.1:{port}") as client,
    ):
        for ask in (client.version(), client.discover(), client.list(NAMESPACES), client.get(NAMESPACES, "default")):
            with pytest.raises(error, match="HTML page") as told:
                await ask
            assert "\n" not in str(told.value)


@asynccontextmanager
async def plain_server(body: bytes, code: str = "200 OK") -> AsyncIterator[int]:
    """Says the same to everybody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(f"HTTP/1.1 {code}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_pods_service_account(files: Files) -> None:
    folder = files.folder / "account"
    folder.mkdir()
    (folder / "token").write_text(await files.token_of("pod"))
    (folder / "ca.crt").write_bytes(files.cluster.authority.certificate)
    (folder / "namespace").write_text("default")
    environment = {**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    environment["KUBERNETES_SERVICE_PORT"] = str(files.cluster.ports.apiserver)
    client = Client(HttpTransport(config.in_cluster(folder, environment)))
    assert await who(client) == "system:serviceaccount:default:pod"
    await client.close()
