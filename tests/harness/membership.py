"""Membership: one member, m1, and the controllers' way into it: its secret, its conditions, and their rights there.

`Party` has an embedded server for a member; with a stock cluster for one see tests/real/hub.py.
"""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from argosy.api import keys, resources
from argosy.api.conditions import AUTHORIZED
from argosy.api.types import FederatedCluster
from argosy.control.members import join, role
from argosy.kube.resource import Resource
from argosy.server.auth.identity import Attributes, Authorizer, Decision, User
from argosy.server.embedded import EmbeddedServer
from tests.harness.commands import here
from tests.harness.federation import Federation
from tests.harness.servers import new_server
from tests.harness.user import NAMESPACES, SECRETS, exists

__all__ = [
    "ACCOUNTS",
    "RBAC",
    "RBAC_TYPES",
    "Double",
    "Membership",
    "Outsider",
    "Party",
    "changing",
    "encoded",
    "widget_type",
]

RBAC = "rbac.authorization.k8s.io"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
#: The type configs of roles and bindings: with them the controllers may grant what they do not hold, to themselves as well.
RBAC_TYPES = tuple(f"{plural}.{RBAC}" for plural in role._ESCALATIONS)
_USERS = (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY, keys.SECRET_BOOTSTRAP_TOKEN)


class Membership(Federation):
    """What can be done to m1 and seen of it, once it was asked to join."""

    patience = 30.0

    async def argosy(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """A command's exit code and what it said, by the control plane's administrator."""
        config = folder / "hub"
        config.write_text(yaml.safe_dump(self.plane.kubeconfig("hub")))
        said = await asyncio.to_thread(here, "--kubeconfig", str(config), *arguments)
        return said.code, said.out + said.err

    # Its secret.

    async def secret(self) -> dict[str, bytes]:
        found = await self.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    async def account_token(self) -> bytes:
        return (await self.secret())[keys.SECRET_SERVICE_ACCOUNT_TOKEN]

    async def put(self, **data: bytes | None) -> None:
        """Into the secret; None takes a key out."""
        taken = {key: None for key, value in data.items() if value is None}
        given = encoded({key: value for key, value in data.items() if value is not None})
        await self.client.patch(SECRETS, "m1", {"data": {**taken, **given}}, keys.SYSTEM_NAMESPACE)

    async def forget_user(self) -> None:
        """From now on there are the service account's credentials alone."""
        await self.put(**dict.fromkeys(_USERS))

    # What is said of it.

    async def cluster(self) -> FederatedCluster:
        return await self.client.get(resources.FEDERATED_CLUSTERS, "m1", into=FederatedCluster)

    async def condition(self, type: str = AUTHORIZED) -> tuple[str, str, str]:
        """Status, reason and message; empty where there is no such condition."""
        found = (await self.cluster()).condition(type)
        return (found.status, found.reason, found.message) if found is not None else ("", "", "")

    async def told(self, reason: str, *words: str, type: str = AUTHORIZED) -> str:
        """The message, once the condition is false for this reason and says these words."""

        async def probe() -> bool:
            status, found, message = await self.condition(type)
            return status == "False" and found == reason and all(word in message for word in words)

        try:
            await self.eventually(probe)
        except AssertionError:
            raise AssertionError(f"expected {reason} {words}, found {await self.condition(type)}") from None
        return (await self.condition(type))[2]

    async def granted(self) -> None:
        """Once what was told of access does not hold any more."""

        async def probe() -> bool:
            return (await self.condition())[:2] == ("True", "AccessGranted")

        try:
            await self.eventually(probe)
        except AssertionError:
            raise AssertionError(f"expected access to be granted, found {await self.condition()}") from None

    def has_left(self) -> bool:
        """No cluster is there any more."""
        return not self.inside.caches.clusters.values()

    # What is in it.

    async def role(self) -> dict[str, Any]:
        return await self.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)

    async def rules(self) -> list[dict[str, Any]]:
        return (await self.role())["rules"]

    async def has_right_to(self, plural: str) -> bool:
        return any(plural in rule.get("resources", ()) for rule in await self.rules())

    async def is_clean(self) -> bool:
        """Nothing is left in the member of what joining made."""
        made = (
            (NAMESPACES, keys.SYSTEM_NAMESPACE),
            (join.ROLES, keys.MEMBER_CLUSTER_ROLE),
            (_BINDINGS, keys.MEMBER_CLUSTER_ROLE),
        )
        return not any([await exists(self.member("m1"), resource, name) for resource, name in made])

    async def legacy_token(self) -> bytes:
        """One that never ends, of the kind that is kept in a secret in the member."""
        await self.member("m1").create(SECRETS, role.token_secret())

        async def filled() -> str:
            found = await self.member("m1").get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
            return str(found["data"]["token"])

        return base64.b64decode(await self.eventually(filled))

    async def propagates(self, name: str = "web") -> None:
        await self.deploy(name, replicas=1)
        await self.eventually_replicas({"m1": 1}, name)


@contextlib.asynccontextmanager
async def changing(fed: Membership, names: list[str]) -> AsyncIterator[None]:
    """Templates of these Deployments change all the time, and new ones come."""

    async def change() -> None:
        for number in itertools.count(1):
            await fed.set_image(f"nginx:{number}", names[number % len(names)])
            await fed.deploy(f"new-{number}", replicas=1)
            await asyncio.sleep(0.01)

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Party(Membership):
    """m1 is an embedded server, and joins with a service account unless a test wants it otherwise."""

    def __init__(self, members: int = 1, *, accounts: bool = True, **options: Any):
        super().__init__(members, **options)
        self._spec = {"useServiceAccount": True} if accounts else {}

    async def join(self, name: str, **spec: Any) -> None:
        await super().join(name, **{**self._spec, **spec})


class Outsider:
    """A cluster that is no member yet."""

    async def __aenter__(self) -> EmbeddedServer:
        self._server = new_server()
        await self._server.start()
        return self._server

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()


class Double(Outsider):
    """Another cluster that cannot be told from m1 by its certificate, and that accepts the same credentials.

    `writes` are what it was asked to change by whom m1's credentials make an administrator.
    """

    def __init__(self, of: EmbeddedServer, tokens: dict[str, User] | None = None):
        self._of = of
        self._tokens = tokens
        self.writes: list[tuple[str, str, str]] = []

    async def __aenter__(self) -> EmbeddedServer:
        self._server = server = new_server(tokens=self._tokens, authority=self._of.authority)
        server.server.authorizer = _Noting(server.rbac, self.writes)
        await server.start()
        return server


class _Noting:
    """An Authorizer that notes writes of people and service accounts."""

    def __init__(self, authorizer: Authorizer, writes: list[tuple[str, str, str]]):
        self._authorizer = authorizer
        self._writes = writes

    def authorize(self, attributes: Attributes) -> Decision:
        name = attributes.user.name
        own = name.startswith("system:") and not name.startswith(f"system:serviceaccount:{keys.SYSTEM_NAMESPACE}:")
        if not own and attributes.verb not in ("get", "list", "watch"):
            self._writes.append((attributes.verb, attributes.resource, attributes.name))
        return self._authorizer.authorize(attributes)


def encoded(data: dict[str, bytes]) -> dict[str, str]:
    """As a secret has it."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def widget_type(plural: str = "widgets") -> dict[str, Any]:
    """A type config of a kind that nobody serves."""
    source = {
        "group": "example.com",
        "version": "v1",
        "kind": plural.title(),
        "pluralName": plural,
        "scope": "Namespaced",
    }
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"sourceType": source},
    }
