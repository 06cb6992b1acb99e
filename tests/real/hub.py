"""Hub: an embedded control plane and one stock cluster to join as m1, by whatever credentials a test likes."""

from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.resource import Resource
from argosy.testing import Cluster, Options
from argosy.testing.certificates import Authority
from tests.harness.federation import QUICK
from tests.harness.membership import Membership, encoded
from tests.harness.user import SECRETS, cluster_secret, federated_cluster

__all__ = ["ACCOUNT", "CALM", "MEMBER", "Hub"]

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
#: Nothing has to run; the writes are looked at.
MEMBER = Options(nodes=0, audit=True)
#: Time to answer for processes that share two cores.
CALM = msgspec.structs.replace(QUICK, health_period=1.0, health_threshold=5.0, apis_kept=5.0)
ACCOUNT = f"system:serviceaccount:{keys.SYSTEM_NAMESPACE}:{keys.MEMBER_SERVICE_ACCOUNT}"


class Hub(Membership):
    """Left, the member is as it was, and can be joined by the next one."""

    #: Stock clusters on a busy machine.
    patience = 180.0

    def __init__(self, cluster: Cluster, timings: Timings = CALM):
        super().__init__(0, timings=timings)
        self.stock = cluster
        self._member = cluster.client()

    async def __aenter__(self) -> "Hub":
        await super().__aenter__()
        self.names = ["m1"]
        await self.policy()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.leave()
        finally:
            await self._member.close()
            await super().__aexit__()

    def member(self, name: str) -> Client:
        return self._member

    def certificate(self, user: str = "admin", authority: Authority | None = None, **options: Any) -> dict[str, bytes]:
        pair = (authority or self.stock.authority).client(user, ["system:masters"], **options)
        return {keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key}

    def token(self) -> dict[str, bytes]:
        return {keys.SECRET_BOOTSTRAP_TOKEN: self.stock.token.encode()}

    async def ask_to_join(self, credentials: dict[str, bytes], **spec: Any) -> None:
        data = {keys.SECRET_CA: self.stock.authority.certificate, **credentials}
        await self.client.create(SECRETS, cluster_secret("m1", encoded(data)))
        endpoint = spec.pop("apiEndpoint", self.stock.server)
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster("m1", endpoint, **spec))

    async def take_in(self, credentials: dict[str, bytes], **spec: Any) -> None:
        await self.ask_to_join(credentials, **spec)
        await self.eventually(lambda: self.ready_clusters() == ["m1"], "m1 is ready")

    async def leave(self) -> None:
        """With everything of ours in it; then it can be joined again."""
        for cluster in (await self.client.list(resources.FEDERATED_CLUSTERS)).items:
            name = cluster["metadata"]["name"]
            await self.annotate(resources.FEDERATED_CLUSTERS, name, None, **{keys.CASCADING_DELETE: "true"})
            await self.client.delete(resources.FEDERATED_CLUSTERS, name)
        await self.eventually(self.has_left, "all clusters have left")
        await self.eventually(self.is_clean, "the member is as it was")

    async def eventually_refused(self, verb: str, group: str, resource: str) -> None:
        """Until the member's API server, which follows its roles in its own time, would refuse the account this."""
        attributes = {"verb": verb, "group": group, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": ACCOUNT, "groups": ["system:authenticated"], "resourceAttributes": attributes},
        }

        async def refused() -> bool:
            return not (await self._member.create(REVIEWS, body))["status"]["allowed"]

        await self.eventually(refused, f"{verb} {resource} is refused")

    def token_of(self, name: str) -> str:
        """Which of its tokens the account had when it made the Deployment, by the member's audit log."""
        made = [
            event
            for event in self.stock.audit
            if event["user"].get("username") == ACCOUNT
            and event["stage"] == "ResponseComplete"
            and event["verb"] == "create"
            and event["objectRef"].get("name") == name
        ]
        return str(made[-1]["user"]["extra"]["authentication.kubernetes.io/credential-id"])
