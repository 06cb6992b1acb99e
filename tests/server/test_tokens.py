"""Tokens of service accounts that no request file can show, as it takes a controller that is not always there."""

import base64

from argosy.server.embedded import EmbeddedServer
from tests.server.conftest import HttpClient, until

SECRETS = "/api/v1/namespaces/default/secrets"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def test_the_token_in_a_secret_dies_with_the_secret(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as admin:
        secret = {
            "metadata": {"name": "bot", "annotations": {"kubernetes.io/service-account.name": "default"}},
            "type": "kubernetes.io/service-account-token",
        }
        assert (await admin.post(SECRETS, secret)).code == 201
        filled = await until(lambda: admin.get(f"{SECRETS}/bot"), lambda answer: "token" in answer.body.get("data", {}))
        token = base64.b64decode(filled.body["data"]["token"]).decode()
        async with HttpClient(memory_server, token) as bot:
            answer = await bot.post(WHO, {})
            assert answer.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
            assert (await admin.delete(f"{SECRETS}/bot")).code == 200
            assert (await bot.post(WHO, {})).code == 401
