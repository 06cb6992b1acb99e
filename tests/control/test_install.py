"""Installing, on the embedded server: what is written, what is left alone, and that it can be broken off and done twice at once.

The same on stock kube-apiserver, with the rights and the policy it installs put to use: tests/real/test_install.py.
"""

import asyncio
import contextlib

import pytest

from argosy.api import keys, resources, rights, typeconfigs
from argosy.api.admission import guard
from argosy.api.crds.upgrade import REVISION
from argosy.control.install import existing
from argosy.control.install.installer import Installation, InstallError, install, is_installed, preview
from argosy.control.install.workload_controllers import deployment_controller_runs
from argosy.control.permissions import missing
from argosy.kube.client import Patch
from argosy.kube.errors import Forbidden
from argosy.kube.resource import Resource
from argosy.server.auth.identity import User
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from tests.harness.servers import new_server

ROLES = Resource(rights.GROUP, "v1", "clusterroles", "ClusterRole", False)
BINDINGS = Resource(rights.GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
POLICIES = Resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "", False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)


@pytest.fixture
async def plane():
    server = new_server()
    await server.start()
    yield server
    await server.stop()


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def marked(client):
    found = (await client.list(CONFIGMAPS, "default")).items
    return {
        each["metadata"]["name"]
        for each in found
        if (each["metadata"].get("annotations") or {}).get(keys.NO_FEDERATED_RESOURCE)
    } - {"kube-root-ca.crt"}


async def test_a_second_time_nothing_is_written(plane):
    client = plane.client()
    told = []
    assert not await is_installed(client)
    would = await preview(client, told.append, Installation())
    assert not await is_installed(client)
    done = []
    # The server itself puts a few objects into the new namespace, which are marked as well.
    assert 0 < would <= await install(client, done.append)
    assert [line for line in told if line.startswith("created")] == [
        line for line in done if line.startswith("created")
    ]
    assert await is_installed(client)
    again = []
    assert await install(client, again.append) == 0
    assert again == []


async def test_only_what_was_there_before_is_marked(plane):
    client = plane.client()
    await client.create(CONFIGMAPS, config_map("old"))
    await install(client)
    await client.create(CONFIGMAPS, config_map("new"))
    await client.delete(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
    await install(client)
    assert await marked(client) == {"old"}
    names = {each["metadata"]["name"] for each in (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items}
    assert names == {each["metadata"]["name"] for each in typeconfigs.manifests()} - {"configmaps"}


async def as_before(client, name):
    """As an earlier edition installed it."""
    body = {"metadata": {"annotations": None}, "spec": {"pathDefinition": None}}
    await client.patch(resources.FEDERATED_TYPE_CONFIGS, name, body, kind=Patch.MERGE)


async def test_stock_type_configs_are_brought_up_to_date_unless_users_changed_them(plane):
    client = plane.client()
    await install(client)
    for name in ("statefulsets.apps", "jobs.batch"):
        await as_before(client, name)
    theirs = {"spec": {"statusCollection": {"fields": ["status"]}}}
    await client.patch(resources.FEDERATED_TYPE_CONFIGS, "jobs.batch", theirs, kind=Patch.MERGE)
    told = []
    assert await install(client, told.append) == 1
    assert "updated FederatedTypeConfig statefulsets.apps" in told
    assert "kept FederatedTypeConfig jobs.batch: it was changed here, and is not brought up to date" in told
    stored = await client.get(resources.FEDERATED_TYPE_CONFIGS, "statefulsets.apps")
    assert stored["spec"]["pathDefinition"]["replicasSpec"] == "spec.replicas"
    assert "pathDefinition" not in (await client.get(resources.FEDERATED_TYPE_CONFIGS, "jobs.batch"))["spec"]
    # Somebody who takes the paths out again meant it.
    back = {"spec": {"pathDefinition": None}}
    await client.patch(resources.FEDERATED_TYPE_CONFIGS, "statefulsets.apps", back, kind=Patch.MERGE)
    assert await install(client) == 0


async def test_marking_that_was_broken_off_goes_on_where_it_was(plane, monkeypatch):
    client = plane.client()
    for number in range(40):
        await client.create(CONFIGMAPS, config_map(f"old-{number}"))
    mark, left = existing.mark, 20

    async def broken_off(client, resource, name, namespace):
        nonlocal left
        if resource.kind == "ConfigMap":
            left -= 1
            if left < 0:
                raise ConnectionError
        await mark(client, resource, name, namespace)

    monkeypatch.setattr(existing, "mark", broken_off)
    with pytest.raises(ConnectionError):
        await install(client)
    assert 0 < len(await marked(client)) < 40
    names = {each["metadata"]["name"] for each in (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items}
    assert "configmaps" not in names
    monkeypatch.undo()
    await install(client)
    assert len(await marked(client)) == 40


async def test_one_that_may_not_be_marked_is_named_and_its_kind_waits(plane, monkeypatch):
    client = plane.client()
    for name in ("a", "guarded", "z"):
        await client.create(CONFIGMAPS, config_map(name))
    mark = existing.mark

    async def guarding(client, resource, name, namespace):
        if name == "guarded":
            raise Forbidden(403, "Forbidden", "admission webhook says no", {})
        await mark(client, resource, name, namespace)

    monkeypatch.setattr(existing, "mark", guarding)
    with pytest.raises(InstallError, match=r"configmaps default/guarded exist already .* admission webhook says no"):
        await install(client)
    assert await marked(client) == {"a", "z"}
    names = {each["metadata"]["name"] for each in (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items}
    assert "configmaps" not in names
    monkeypatch.undo()
    await install(client)
    assert await marked(client) == {"a", "guarded", "z"}


async def test_nothing_is_marked_where_that_is_not_wanted(plane):
    client = plane.client()
    await client.create(CONFIGMAPS, config_map("old"))
    await install(client, chosen=Installation(mark_existing=False))
    assert await marked(client) == set()


async def test_two_may_install_at_once(plane):
    client = plane.client()
    await asyncio.gather(*(install(client) for _ in range(3)))
    assert await install(client) == 0


async def test_who_was_bound_once_stays_bound_and_the_policy_knows_them(plane):
    client = plane.client()
    await install(client, chosen=Installation(controllers=(rights.SERVICE_ACCOUNT, rights.user("jane"))))
    assert await install(client) == 0
    assert rights.user("jane") in (await client.get(BINDINGS, rights.CONTROLLERS))["subjects"]
    policy = await client.get(POLICIES, guard.NAME)
    assert "'jane'" in policy["spec"]["variables"][0]["expression"]


async def test_rights_that_were_taken_or_added_are_put_right(plane):
    client = plane.client()
    await install(client)
    role = await client.get(ROLES, rights.CONTROLLERS)
    extra = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await client.update(ROLES, {**role, "rules": [*role["rules"], extra]})
    told = []
    assert await install(client, told.append) == 1
    assert told == ["updated ClusterRole argosy-controllers"]
    assert (await client.get(ROLES, rights.CONTROLLERS))["rules"] == role["rules"]


async def test_a_newer_definition_is_replaced_only_when_that_is_wanted(plane):
    client = plane.client()
    await install(client)
    name = "federatedclusters.core.kubeadmiral.io"
    newer = {"metadata": {"annotations": {keys.REVISION: str(REVISION + 1)}}}
    await client.patch(CRDS, name, newer)
    told = []
    assert await install(client, told.append) == 0
    assert "it is newer" in told[0]
    assert await install(client, chosen=Installation(downgrade=True)) == 1


async def test_a_control_plane_that_runs_nothing_is_seen_as_such_and_left_as_it_was(plane):
    client = plane.client()
    assert not await deployment_controller_runs(client, patience=0.3)
    assert not (await client.list(DEPLOYMENTS)).items


async def test_a_controller_that_looks_at_deployments_is_noticed(plane):
    client = plane.client()

    async def controller():
        while True:
            for found in (await client.list(DEPLOYMENTS)).items:
                status = {"status": {"observedGeneration": 1}}
                metadata = found["metadata"]
                await client.patch(DEPLOYMENTS, metadata["name"], status, metadata["namespace"], subresource="status")
            await asyncio.sleep(0.01)

    running = asyncio.create_task(controller())
    try:
        assert await deployment_controller_runs(client, patience=30)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await running


async def test_missing_rights_are_named_by_verb_and_resource(plane):
    client = plane.client()
    await install(client)
    groups = ("system:authenticated",)
    account = plane.client(User(rights.username(rights.SERVICE_ACCOUNT), groups))
    for manifest in rights.manifests([], []):
        where = manifest["metadata"].get("namespace", "")
        assert await missing(account, manifest.get("rules", ()), where) == []
    wanted = [{"apiGroups": ["example.com"], "resources": ["widgets", "widgets/status"], "verbs": ["patch"]}]
    assert await missing(account, wanted) == ["patch widgets.example.com", "patch widgets.example.com/status"]
    in_system = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}]
    assert await missing(account, in_system) == ["create leases.coordination.k8s.io"]
    assert await missing(account, in_system, keys.SYSTEM_NAMESPACE) == []
    assert (await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE))["metadata"]["annotations"]
