"""Whoever may write FederatedClusters does not get to see secrets: credentials go only where their secret lets them."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.api import keys, resources
from argosy.server.auth.certificates import Authority
from argosy.server.embedded import ADMIN
from tests.harness.federation import SECRETS
from tests.harness.membership import Party, encoded
from tests.harness.servers import new_server
from tests.harness.user import cluster_secret, exists, federated_cluster

pytestmark = pytest.mark.real_time("whoever would like to have credentials listens on a socket")

TOKEN = "the-token-of-a-member"


class Listener:
    """A server of somebody who would like to have credentials: he notes what he is sent."""

    def __init__(self) -> None:
        self.heard = b""
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                self.heard += data
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Listener]:
    pair = Authority.ephemeral().server_pair(("127.0.0.1",))
    (tmp_path / "pair").write_bytes(pair.certificate + b"\n" + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair")
    listening = Listener()
    server = await asyncio.start_server(listening.serve, "127.0.0.1", 0, ssl=context)
    listening.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield listening
    server.close()


class Tokens(Party):
    """m1 is reached with a token, whose secret has an authority or has none."""

    def __init__(self, *, verified: bool = True, **options: Any):
        super().__init__(accounts=False, **options)
        self._verified = verified
        self.servers["m1"] = new_server(tokens={TOKEN: ADMIN})

    async def join(self, name: str, **spec: Any) -> None:
        data = {keys.SECRET_BOOTSTRAP_TOKEN: TOKEN.encode()}
        if self._verified:
            data[keys.SECRET_CA] = self.servers[name].authority.certificate
        await self.client.create(SECRETS, cluster_secret(name, encoded(data)))
        spec = {**spec, **({} if self._verified else {"insecure": True})}
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, self.servers[name].url, **spec))

    async def bound(self) -> str:
        secret = await self.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
        return str((secret["metadata"].get("annotations") or {}).get(keys.BOUND_TO, ""))

    async def eventually_bound(self) -> None:
        async def probe() -> bool:
            return await self.bound() == f"m1={self.servers['m1'].url}"

        await self.eventually(probe)

    async def covet(self, listener: Listener, name: str = "evil", **spec: Any) -> None:
        """A FederatedCluster that names m1's secret and an address of one's own."""
        wanted = federated_cluster(name, listener.url, **{"secretRef": {"name": "m1"}, **spec})
        await self.client.create(resources.FEDERATED_CLUSTERS, wanted)

    async def joined(self, name: str) -> tuple[str, str]:
        found = await self.client.get(resources.FEDERATED_CLUSTERS, name)
        conditions = (found.get("status") or {}).get("conditions") or ()
        joined = next((each for each in conditions if each["type"] == "Joined"), {})
        return joined.get("status", ""), joined.get("message", "")

    async def eventually_refused(self, name: str, *words: str) -> None:
        async def probe() -> bool:
            status, message = await self.joined(name)
            return status == "False" and all(word in message for word in words)

        await self.eventually(probe)
        await self.eventually(lambda: self.events("JoinClusterError"))


@pytest.mark.parametrize("verified", [True, False])
async def test_first_use_binds_and_the_yaml_of_kubeadmiral_works(verified):
    async with Tokens(verified=verified) as fed:
        await fed.eventually_bound()
        await fed.policy()
        await fed.propagates()


@pytest.mark.parametrize("insecure", [True, False])
async def test_another_cluster_does_not_get_the_secret_of_a_member(listener, insecure):
    async with Tokens() as fed:
        await fed.eventually_bound()
        await fed.covet(listener, insecure=insecure)
        await fed.eventually_refused("evil", 'secret "m1" serves m1', "kubectl annotate")
        assert listener.connections == 0


async def test_nor_one_that_no_member_uses_yet(listener):
    async with Tokens(members=1) as fed:
        data = {keys.SECRET_BOOTSTRAP_TOKEN: b"fresh", keys.SECRET_CA: fed.servers["m1"].authority.certificate}
        await fed.client.create(SECRETS, cluster_secret("fresh", encoded(data)))
        await fed.covet(listener, "fresh", insecure=True, secretRef={"name": "fresh"})
        await fed.eventually_refused("fresh", "is not bound to this cluster", "spec.insecure")
        assert listener.connections == 0


async def test_a_verified_server_must_have_a_certificate_of_the_authority_in_the_secret(listener):
    async with Tokens() as fed:
        data = {keys.SECRET_BOOTSTRAP_TOKEN: b"fresh", keys.SECRET_CA: fed.servers["m1"].authority.certificate}
        await fed.client.create(SECRETS, cluster_secret("fresh", encoded(data)))
        await fed.covet(listener, "fresh", secretRef={"name": "fresh"})
        await fed.eventually_refused("fresh", "certificate verify failed")
        assert listener.heard == b""


async def test_nor_is_anything_sent_in_the_clear_to_whoever_listens():
    """Without TLS there is no certificate that an authority in the secret could vouch for."""
    listening = Listener()
    server = await asyncio.start_server(listening.serve, "127.0.0.1", 0)
    listening.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Tokens() as fed:
        data = {keys.SECRET_BOOTSTRAP_TOKEN: b"fresh", keys.SECRET_CA: fed.servers["m1"].authority.certificate}
        await fed.client.create(SECRETS, cluster_secret("fresh", encoded(data)))
        await fed.covet(listening, "fresh", secretRef={"name": "fresh"})
        await fed.eventually_refused("fresh", "is not bound to this cluster", "http://")
        await fed.eventually_bound()
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"apiEndpoint": listening.url}})
        await fed.told("CredentialsWithheld", "is bound to", fed.servers["m1"].url)
        assert listening.connections == 0


@pytest.mark.parametrize("verified", [True, False])
async def test_a_member_whose_address_is_changed_does_not_carry_its_secret_there(listener, verified):
    """Its earlier connection goes on."""
    async with Tokens(verified=verified) as fed:
        await fed.eventually_bound()
        await fed.policy()
        change = {"spec": {"apiEndpoint": listener.url, "insecure": True}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", change)
        await fed.told("CredentialsWithheld", "is bound to", fed.servers["m1"].url, "previous ones stay in use")
        await fed.propagates()
        assert listener.connections == 0
        await fed.eventually(lambda: fed.events("CredentialsWithheld"))


async def test_nor_in_two_steps(listener):
    """The first one fails, as it should; nor does it have the secret bound to where the second one wants it."""
    async with Tokens() as fed:
        await fed.eventually_bound()
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"apiEndpoint": listener.url}})
        await fed.told("NotHeardOf", listener.url, "certificate verify failed", type="Responding")
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"insecure": True}})
        await fed.told("CredentialsWithheld", "is bound to", fed.servers["m1"].url)
        assert listener.heard == b""


async def test_nor_do_controllers_that_start_send_it_there(listener):
    async with Tokens() as fed:
        await fed.eventually_bound()
        await fed.stop_controllers()
        change = {"spec": {"apiEndpoint": listener.url, "insecure": True}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", change)
        await fed.start_controllers()
        await fed.told("CredentialsWithheld", "is bound to", fed.servers["m1"].url)
        assert listener.connections == 0


async def test_whoever_may_write_the_secret_says_where_it_goes():
    async with Tokens() as fed:
        await fed.eventually_bound()
        server = fed.servers["m1"]
        await fed.client.patch(SECRETS, "m1", {"data": {keys.SECRET_CA: None}}, keys.SYSTEM_NAMESPACE)
        change = {"spec": {"apiEndpoint": server.url.replace("127.0.0.1", "localhost"), "insecure": True}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", change)
        await fed.told("CredentialsWithheld", "is bound to")
        elsewhere = {keys.BOUND_TO: f"m1={change['spec']['apiEndpoint']}"}
        await fed.annotate(SECRETS, "m1", keys.SYSTEM_NAMESPACE, **elsewhere)
        await fed.granted()
        assert fed.inside.access.in_use("m1").insecure


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [("https://169.254.169.254", "link-local"), ("http://10.0.0.1:8080", "in the clear"), ("https://a@b", "a user")],
)
async def test_addresses_that_are_no_members_are_refused(endpoint, why):
    async with Tokens() as fed:
        token = base64.b64encode(b"x").decode()
        ca = base64.b64encode(fed.servers["m1"].authority.certificate).decode()
        data = {keys.SECRET_BOOTSTRAP_TOKEN: token, keys.SECRET_CA: ca}
        secret = cluster_secret("odd", data)
        secret["metadata"]["annotations"] = {keys.BOUND_TO: f"odd={endpoint}"}
        await fed.client.create(SECRETS, secret)
        await fed.client.create(resources.FEDERATED_CLUSTERS, federated_cluster("odd", endpoint))
        await fed.eventually_refused("odd", why)


async def test_who_was_refused_a_secret_takes_nothing_out_of_it_when_he_goes(listener):
    async with Party() as fed:
        token = await fed.account_token()
        wanted = federated_cluster("evil", listener.url, secretRef={"name": "m1"}, useServiceAccount=True)
        await fed.client.create(resources.FEDERATED_CLUSTERS, wanted)
        await fed.eventually(lambda: fed.events("JoinClusterError"))
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "evil")

        async def gone() -> bool:
            return not await exists(fed.client, resources.FEDERATED_CLUSTERS, "evil")

        await fed.eventually(gone)
        assert await fed.account_token() == token
