"""The admission policy on stock kube-apiserver warns of what Argosy's own API server warns of, and refuses nothing."""

import copy

from argosy.api import keys, resources, rights
from argosy.api.admission import caveats
from argosy.control.install.installer import Installation, install
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.testing import CONTROL_PLANE
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.caveats import EXAMPLES, NAMESPACE, PLAIN, Example, policy
from tests.harness.eventually import eventually
from tests.harness.planes import client_of
from tests.harness.user import NAMESPACES

CONTROLLERS = "system:argosy:controllers"


async def test_every_caveat_is_told_and_nothing_else_is_said(kubernetes: Kubernetes) -> None:
    [cluster] = await kubernetes(1, CONTROL_PLANE)
    heard: list[str] = []
    admin = cluster.client()
    user = Client(admin.transport, on_warning=heard.append)
    ours = client_of(cluster.server, cluster.authority.certificate, cluster.authority.client(CONTROLLERS))
    ours = Client(ours.transport, on_warning=heard.append)

    async def told(client: Client, example: Example) -> list[str]:
        heard.clear()
        body = copy.deepcopy(example.body)
        if example.resource is NAMESPACES:
            body["metadata"]["name"] = "another"
        await client.create(example.resource, body, dry_run=True)
        return [text for text in heard if caveats.NAME in text]

    try:
        await install(admin, chosen=Installation(controllers=(rights.user(CONTROLLERS),)))
        assert await install(admin, chosen=Installation(controllers=(rights.user(CONTROLLERS),))) == 0
        await admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        # A policy comes into force a moment after it was stored.
        await eventually(lambda: told(user, EXAMPLES[0]))
        for example in EXAMPLES:
            try:
                found = await told(user, example)
            except NotFound:
                assert example.resource.group == "multicluster.x-k8s.io", example  # served where its CRD is installed
                continue
            [text] = caveats.told(example.resource, example.body)
            assert len(found) == 1, (example, found)
            assert found[0].endswith(f": {text}"), (text, found)
        for example in PLAIN:
            assert await told(user, example) == [], example

        # Whoever carries on what users wrote is not told of it.
        example = policy("", tolerations=[{"key": "a", "tolerationSeconds": 60}])
        await user.create(example.resource, example.body)
        cluster_policy = {"metadata": {"annotations": {keys.CASCADING_DELETE: "true"}}}
        made = next(each for each in EXAMPLES if keys.MEMBER_ACCESS in each.text)
        await user.create(made.resource, made.body)
        heard.clear()
        await ours.patch(resources.FEDERATED_CLUSTERS, "example", cluster_policy)
        assert heard == []
        await user.patch(resources.FEDERATED_CLUSTERS, "example", {"metadata": {"labels": {"a": "b"}}})
        assert len(heard) == 1
    finally:
        await admin.close()
        await ours.close()
