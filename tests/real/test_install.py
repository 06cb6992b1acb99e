"""`argosy install` on stock kube-apiserver: from nothing, again, over older and newer versions, and with what exists already;
and that the rights it grants are enough for the controllers and keep everybody else out."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from argosy.api import crds, keys, resources, rights, typeconfigs
from argosy.api.admission import guard
from argosy.api.crds.upgrade import REVISION
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, Forbidden, NotFound
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from argosy.testing import CONTROL_PLANE, Cluster
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, EVENTS, NAMESPACES, SECRETS, add_node, deployment

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
ROLES = Resource(rights.GROUP, "v1", "clusterroles", "ClusterRole", False)
BINDINGS = Resource(rights.GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
POLICIES = Resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "", False)
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")

#: With every request in it, reads as well: a right that is missing shows there, whatever became of it.
AUDIT_ALL = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
PATIENCE = 60.0


class Said(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


async def argosy(kubeconfig: Path, *arguments: str) -> Said:
    command = [sys.executable, "-m", "argosy.cli", "--kubeconfig", str(kubeconfig), *arguments]
    run = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    out, err = await run.communicate()
    return Said(run.returncode or 0, out.decode(), err.decode())


async def install(cluster: Cluster, *arguments: str) -> str:
    said = await argosy(cluster.kubeconfig, "install", *arguments)
    assert said.code == 0, said
    return said.out


def config_map(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def is_marked(obj: dict[str, Any]) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(keys.NO_FEDERATED_RESOURCE))


@contextlib.asynccontextmanager
async def client_of(kubeconfig: Path) -> AsyncIterator[Client]:
    client = Client(HttpTransport(config.load(str(kubeconfig))))
    try:
        yield client
    finally:
        await client.close()


async def test_a_control_plane_from_nothing_and_again_and_over_other_versions(kubernetes: Kubernetes) -> None:
    [cluster] = await kubernetes(1, msgspec.structs.replace(CONTROL_PLANE, audit=True))
    async with client_of(cluster.kubeconfig) as client:
        await client.create(NAMESPACES, namespace("before"))
        old = [config_map(f"old-{number}", "before") for number in range(600)]  # more than a page
        await asyncio.gather(*(client.create(CONFIGMAPS, each, into=bytes) for each in old))

        began = len(cluster.audit)
        said, shown = await asyncio.gather(install(cluster, "--dry-run"), install(cluster, "--dry-run", "-o", "yaml"))
        assert "objects would be written" in said
        assert "whether a Deployment controller runs here is not looked at" in said
        assert len(cluster.audit) == began
        kinds = [manifest["kind"] for manifest in yaml.safe_load_all(shown)]
        assert kinds.count("CustomResourceDefinition") == len(crds.manifests())
        assert kinds.count("FederatedTypeConfig") == len(typeconfigs.manifests())

        said = await install(cluster)
        [count] = re.findall(r"marked (\d+) configmaps that exist already", said)
        assert int(count) >= 600
        assert all(is_marked(each) for each in (await client.list(CONFIGMAPS, "before")).items)
        assert is_marked(await client.get(NAMESPACES, "before"))
        assert all(is_marked(each) for each in (await client.list(ROLES)).items)
        stored = {each["metadata"]["name"] for each in (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items}
        assert stored == {manifest["metadata"]["name"] for manifest in typeconfigs.manifests()}
        assert not (await client.list(DEPLOYMENTS)).items

        # What came afterwards is a user's, and not marked; what users did to type configs stays done.
        await client.create(CONFIGMAPS, config_map("new", "before"))
        change = {"spec": {"statusCollection": {"enabled": False}}}
        await client.patch(resources.FEDERATED_TYPE_CONFIGS, "configmaps", change)
        await client.delete(resources.FEDERATED_TYPE_CONFIGS, "pods")
        await install(cluster)  # `pods` are no concern of the controllers' any more
        began = len(cluster.audit)
        for said in await asyncio.gather(install(cluster), install(cluster, "--dry-run")):
            assert "nothing to do" in said
        assert len(cluster.audit) == began
        assert not is_marked(await client.get(CONFIGMAPS, "new", "before"))
        edited = await client.get(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
        assert edited["spec"]["statusCollection"]["enabled"] is False
        assert "pods" not in {
            e["metadata"]["name"] for e in (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items
        }
        sources = await client.get(ROLES, rights.SOURCES)
        assert not any("pods" in rule["resources"] for rule in sources["rules"])

        await _a_newer_definition_is_left_alone(cluster, client)
        await _the_manifests_can_be_applied(cluster, shown)
        await _an_older_definition_is_brought_up_to_date(cluster, client)


async def _an_older_definition_is_brought_up_to_date(cluster: Cluster, client: Client) -> None:
    name = "federatedtypeconfigs.core.kubeadmiral.io"
    found = await client.get(CRDS, name)
    del found["metadata"]["annotations"]
    [version] = found["spec"]["versions"]
    loose = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    found["spec"]["versions"] = [
        {**version, "schema": loose, "storage": False},
        {"name": "v1beta9", "served": True, "storage": True, "schema": loose},
    ]
    await client.update(CRDS, found)
    assert f"updated CustomResourceDefinition {name}" in await install(cluster)
    after = await client.get(CRDS, name)
    versions = {version["name"]: version for version in after["spec"]["versions"]}
    assert "properties" in versions["v1alpha1"]["schema"]["openAPIV3Schema"]
    assert versions["v1beta9"]["storage"] is True
    assert after["status"]["storedVersions"] == ["v1alpha1", "v1beta9"]
    assert len((await client.list(resources.FEDERATED_TYPE_CONFIGS)).items) == len(typeconfigs.manifests())


async def _a_newer_definition_is_left_alone(cluster: Cluster, client: Client) -> None:
    name = "schedulingprofiles.core.kubeadmiral.io"
    change = {
        "metadata": {"annotations": {keys.REVISION: str(REVISION + 1)}},
        "spec": {"names": {"shortNames": ["future"]}},
    }
    await client.patch(CRDS, name, change)
    said = await install(cluster)
    assert f"kept CustomResourceDefinition {name}: it is newer" in said
    assert (await client.get(CRDS, name))["spec"]["names"]["shortNames"] == ["future"]
    assert f"updated CustomResourceDefinition {name}" in await install(cluster, "--force")
    assert (await client.get(CRDS, name))["spec"]["names"]["shortNames"] == ["sp"]


async def _the_manifests_can_be_applied(cluster: Cluster, manifests: str) -> None:
    run = await asyncio.create_subprocess_exec(
        *cluster.kubectl,
        *["apply", "--server-side", "--force-conflicts", "-f", "-"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await run.communicate(manifests.encode())
    assert run.returncode == 0, said.decode()


async def test_a_control_plane_that_would_run_the_templates_is_refused_and_left_as_it_was(
    kubernetes: Kubernetes,
) -> None:
    cluster = await kubernetes.shared()
    async with client_of(cluster.kubeconfig) as client:
        said = await argosy(cluster.kubeconfig, "install")
        assert said.code == 1
        [error, hint] = said.err.splitlines()
        assert error.startswith("error: this control plane has a Deployment controller of its own")
        assert "--allow-workload-controllers" in hint
        probes = "argosy-probe-"
        await eventually(lambda: _none_named(client, DEPLOYMENTS, probes), PATIENCE)
        assert await _none_named(client, REPLICASETS, probes)
        assert not [crd for crd in (await client.list(CRDS)).items if crd["spec"]["group"] == keys.GROUP]


async def _none_named(client: Client, resource: Resource, prefix: str) -> bool:
    found = (await client.list(resource, "default")).items
    return not [each for each in found if each["metadata"]["name"].startswith(prefix)]


async def test_the_controllers_work_with_the_rights_granted_and_nobody_else_writes_federated_objects(
    kubernetes: Kubernetes, tmp_path: Path
) -> None:
    policy = tmp_path / "audit.yaml"
    policy.write_text(yaml.safe_dump(AUDIT_ALL))
    options = msgspec.structs.replace(CONTROL_PLANE, audit=True, apiserver_arguments=(f"--audit-policy-file={policy}",))
    [cluster] = await kubernetes(1, options)
    await install(cluster)
    async with client_of(cluster.kubeconfig) as client:
        kubeconfig = await _account_kubeconfig(cluster, client, tmp_path)
        member = EmbeddedServer()
        await member.start()
        try:
            await add_node(member.client(), "node", cpu=16)
            async with _controllers(kubeconfig, tmp_path / "log"):
                await _join(client, member)
                await _scenario(client, member.client())
                await _others_are_kept_out(cluster, client)
                await _a_forged_template_reaches_no_member(client, member.client())
                await _a_new_type_config_asks_for_its_rights(cluster, client, member.client())
        finally:
            await member.stop()
        log = (tmp_path / "log").read_text()
        expected = "widgets"  # until its rights were granted
        assert not [line for line in log.splitlines() if "orbidden" in line.lower() and expected not in line], log
        refused = [
            event
            for event in cluster.audit
            if event["user"].get("username") == rights.username(rights.SERVICE_ACCOUNT)
            and event.get("responseStatus", {}).get("code") == 403
            and event["objectRef"]["resource"] != expected
        ]
        assert not refused
        await _kubernetes_own_controllers_still_work(client)


async def _account_kubeconfig(cluster: Cluster, client: Client, folder: Path) -> Path:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = await client.create(ACCOUNTS, request, keys.SYSTEM_NAMESPACE, name=rights.CONTROLLERS, subresource="token")
    content = {**cluster.config, "users": [{"name": "admin", "user": {"token": answer["status"]["token"]}}]}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@contextlib.asynccontextmanager
async def _controllers(kubeconfig: Path, log: Path) -> AsyncIterator[None]:
    """`argosy controllers`, a process of its own."""
    command = ["controllers", "--no-install", "--port", "0"]
    with log.open("w") as output:
        run = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "argosy.cli", "--kubeconfig", str(kubeconfig), *command],
            stdout=output,
            stderr=output,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        yield
        assert run.returncode is None, "the controllers ended by themselves"
    finally:
        if run.returncode is None:
            run.terminate()
            await run.wait()


async def _join(client: Client, member: EmbeddedServer) -> None:
    entry = member.kubeconfig("m1")
    user, server = entry["users"][0]["user"], entry["clusters"][0]["cluster"]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "m1", "namespace": keys.SYSTEM_NAMESPACE},
        "data": {
            keys.SECRET_CA: server["certificate-authority-data"],
            keys.SECRET_CLIENT_CERTIFICATE: user["client-certificate-data"],
            keys.SECRET_CLIENT_KEY: user["client-key-data"],
        },
    }
    await client.create(SECRETS, secret)
    spec = {"apiEndpoint": member.url, "secretRef": {"name": "m1"}}
    body = {"apiVersion": keys.API_VERSION, "kind": "FederatedCluster", "metadata": {"name": "m1"}, "spec": spec}
    await client.create(resources.FEDERATED_CLUSTERS, body)

    async def ready() -> bool:
        cluster = await client.get(resources.FEDERATED_CLUSTERS, "m1")
        conditions = {each["type"]: each["status"] for each in cluster["status"]["conditions"]}
        return conditions.get("Ready") == conditions.get("Joined") == "True"

    await eventually(ready, PATIENCE, "the member is ready")


async def _scenario(client: Client, member: Client) -> None:
    await client.create(NAMESPACES, namespace("shop"))
    spec = {"schedulingMode": "Duplicate"}
    for kind, where in (("PropagationPolicy", "shop"), ("ClusterPropagationPolicy", None)):
        resource = resources.PROPAGATION_POLICIES if where else resources.CLUSTER_PROPAGATION_POLICIES
        metadata = {"name": "all", **({"namespace": where} if where else {})}
        await client.create(
            resource, {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        )
    await client.create(DEPLOYMENTS, deployment("web", 2, "all", "shop"))
    # More than the controllers may do themselves: marking it must not count as granting it.
    role = {
        "apiVersion": f"{rights.GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "exec", "labels": {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "all"}},
        "rules": [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}],
    }
    await client.create(ROLES, role)
    await eventually(lambda: member.get(NAMESPACES, "shop"), PATIENCE, "the namespace is in the member")
    await eventually(lambda: member.get(DEPLOYMENTS, "web", "shop"), PATIENCE, "the Deployment is in the member")
    await eventually(lambda: member.get(ROLES, "exec"), PATIENCE, "the role is in the member")
    await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, "shop")

    async def scaled() -> bool:
        return bool((await member.get(DEPLOYMENTS, "web", "shop"))["spec"]["replicas"] == 3)

    await eventually(scaled, PATIENCE, "the Deployment is scaled")
    status = {"status": {"replicas": 3, "readyReplicas": 3, "observedGeneration": 9}}
    await member.patch(DEPLOYMENTS, "web", status, "shop", subresource="status")

    async def reported() -> bool:
        return bool((await client.get(DEPLOYMENTS, "web", "shop"))["status"].get("readyReplicas") == 3)

    await eventually(reported, PATIENCE, "the status is back")

    async def told() -> bool:
        return any(each["involvedObject"].get("name") == "m1" for each in (await client.list(EVENTS)).items)

    await eventually(told, PATIENCE, "there is an event")
    await client.delete(ROLES, "exec")
    await client.delete(DEPLOYMENTS, "web", "shop")
    await eventually(lambda: _gone(client, DEPLOYMENTS, "web", "shop"), PATIENCE, "the source is gone")
    await eventually(lambda: _gone(client, ROLES, "exec"), PATIENCE, "the role is gone")
    assert await _gone(member, DEPLOYMENTS, "web", "shop")
    assert await _gone(member, ROLES, "exec")


async def _gone(client: Client, resource: Resource, name: str, where: str | None = None) -> bool:
    try:
        await client.get(resource, name, where)
    except NotFound:
        return True
    return False


def _federated(name: str, where: str, **metadata: Any) -> dict[str, Any]:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": where}}
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedObject",
        "metadata": {"name": name, "namespace": where, **metadata},
        "spec": {"template": template},
    }


async def _a_forged_template_reaches_no_member(client: Client, member: Client) -> None:
    """Stored by an administrator, whom nothing keeps from it."""
    binding = {
        "apiVersion": f"{rights.GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "root"},
        "subjects": [rights.user("mallory")],
        "roleRef": {"apiGroup": rights.GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    }
    name = f"root-clusterrolebindings.{rights.GROUP}"
    forged = _federated(name, "shop", annotations={keys.PENDING_CONTROLLERS: "[]"})
    placed = [{"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": "m1"}]}]
    await client.create(resources.FEDERATED_OBJECTS, {**forged, "spec": {"template": binding, "placements": placed}})

    async def refused() -> bool:
        conditions = (await client.get(resources.FEDERATED_OBJECTS, name, "shop"))["status"]["conditions"]
        return any(each.get("reason") == "TemplateRefused" for each in conditions)

    await eventually(refused, PATIENCE, "the forged template is refused")
    assert await _gone(member, BINDINGS, "root")
    await client.delete(resources.FEDERATED_OBJECTS, name, "shop")
    await eventually(lambda: _gone(client, resources.FEDERATED_OBJECTS, name, "shop"), PATIENCE)


async def _others_are_kept_out(cluster: Cluster, client: Client) -> None:
    """Somebody who was given every right, but is neither the controllers nor in system:masters."""
    rules: Sequence[dict[str, Any]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    body = {"apiVersion": f"{rights.GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "all"}, "rules": rules}
    await client.create(ROLES, body)
    binding = {
        "apiVersion": f"{rights.GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "all"},
        "subjects": [rights.user("mallory")],
        "roleRef": {"apiGroup": rights.GROUP, "kind": "ClusterRole", "name": "all"},
    }
    await client.create(BINDINGS, binding)
    await client.create(DEPLOYMENTS, deployment("kept", 1, "all", "shop"))
    name = "kept-deployments.apps"
    await eventually(lambda: client.get(resources.FEDERATED_OBJECTS, name, "shop"), PATIENCE)

    async def annotate(who: Client, annotations: dict[str, str | None]) -> None:
        await who.patch(resources.FEDERATED_OBJECTS, name, {"metadata": {"annotations": annotations}}, "shop")

    async with client_of(cluster.kubeconfig_of("mallory")) as mallory:
        await eventually(lambda: mallory.get(resources.FEDERATED_OBJECTS, name, "shop"), PATIENCE)
        for write in (
            lambda: mallory.create(resources.FEDERATED_OBJECTS, _federated("mine", "shop")),
            lambda: mallory.patch(resources.FEDERATED_OBJECTS, name, {"spec": {"placements": []}}, "shop"),
            lambda: mallory.patch(
                resources.FEDERATED_OBJECTS, name, {"status": {"clusters": []}}, "shop", subresource="status"
            ),
            lambda: mallory.delete(resources.FEDERATED_OBJECTS, name, "shop"),
            lambda: mallory.patch(resources.FEDERATED_OBJECTS, name, {"metadata": {"finalizers": []}}, "shop"),
            lambda: annotate(mallory, {keys.CONFIRM_DELETION: "true", keys.HELD: "{}"}),
            lambda: annotate(mallory, {keys.CONFIRM_DELETION: "true", keys.PENDING_CONTROLLERS: None}),
        ):
            with pytest.raises(Forbidden, match="written by Argosy's controllers alone") as refused:
                await write()
            assert guard.NAME in refused.value.message
        # What the controllers ask of users, they may do.
        await annotate(mallory, {keys.CONFIRM_DELETION: "true"})
        await annotate(mallory, {keys.CONFIRM_DELETION: None})
    # Administrators may, and what the controllers wrote stays right.
    await client.patch(resources.FEDERATED_OBJECTS, name, {"metadata": {"labels": {"seen": "yes"}}}, "shop")


async def _a_new_type_config_asks_for_its_rights(cluster: Cluster, client: Client, member: Client) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    for each in (client, member):
        await each.create(CRDS, definition)
    source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    type_config = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"sourceType": source, "controllers": [[keys.GLOBAL_SCHEDULER]]},
    }
    await client.create(resources.FEDERATED_TYPE_CONFIGS, type_config)

    async def told() -> bool:
        events = [each for each in (await client.list(EVENTS, "default")).items if each["reason"] == "MissingRights"]
        return any("may not get widgets.example.com, list widgets.example.com" in each["message"] for each in events)

    await eventually(told, PATIENCE, "the type config has an event that says what is missing")
    assert "updated ClusterRole argosy-controllers-sources" in await install(cluster)
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "labels": {keys.PROPAGATION_POLICY_LABEL: "all"}},
    }
    await client.create(WIDGETS, widget)
    await eventually(lambda: member.get(WIDGETS, "w", "shop"), PATIENCE, "the widget is in the member")


async def _kubernetes_own_controllers_still_work(client: Client) -> None:
    """The garbage collector and the namespace controller delete federated objects; ours have been stopped."""
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, namespace("doomed"))
    owner = await client.create(CONFIGMAPS, config_map("owner", "doomed"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = _federated("owned", "doomed", ownerReferences=[reference])
    await client.create(resources.FEDERATED_OBJECTS, owned)
    await client.create(resources.FEDERATED_OBJECTS, _federated("other", "doomed"))
    await client.delete(CONFIGMAPS, "owner", "doomed")
    await eventually(
        lambda: _gone(client, resources.FEDERATED_OBJECTS, "owned", "doomed"), PATIENCE, "it was collected"
    )
    await client.delete(NAMESPACES, "doomed")
    await eventually(lambda: _gone(client, NAMESPACES, "doomed"), PATIENCE, "the namespace is gone")
