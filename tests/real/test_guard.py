"""The admission policy on stock kube-apiserver keeps out whom Argosy's own API server keeps out, and lets in the same."""

import contextlib

from argosy.api import rights
from argosy.control.install.installer import Installation, install
from argosy.kube.client import Client
from argosy.testing import CONTROL_PLANE
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness import guarding
from tests.harness.planes import client_of


async def test_others_are_kept_out_and_further_steps_write_what_is_theirs(kubernetes: Kubernetes) -> None:
    [cluster] = await kubernetes(1, CONTROL_PLANE)
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Client] = {}

        def as_(user: str) -> Client:
            if user not in clients:
                pair = cluster.authority.client(user)
                clients[user] = client_of(cluster.server, cluster.authority.certificate, pair)
                stack.push_async_callback(clients[user].close)
            return clients[user]

        admin = cluster.client()
        stack.push_async_callback(admin.close)
        await install(admin, chosen=Installation(controllers=(rights.user("system:argosy:controllers"),)))
        await guarding.prepare(admin, as_)
        await guarding.enforced(as_)
        await guarding.refuses(admin, as_)
