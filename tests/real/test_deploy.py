"""The Helm chart with real helm: linted, rendered, installed on stock Kubernetes, upgraded, uninstalled; and that the package
which the image is made of installs by the commands in the Containerfile."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.api import crds, keys, resources, rights, typeconfigs
from argosy.api.admission import caveats, guard
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.kube.resource import Resource
from argosy.testing import CONTROL_PLANE, Cluster
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, NAMESPACES
from tests.real.helm import Helm, run

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "argosy"
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
ROLES = Resource(rights.GROUP, "v1", "clusterroles", "ClusterRole", False)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
POLICIES = Resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "", False)
SYSTEM = ("-n", keys.SYSTEM_NAMESPACE)


async def template(helm: Helm, *arguments: str) -> list[dict[str, Any]]:
    text = await helm("template", "argosy", str(CHART), *arguments)
    return [document for document in yaml.safe_load_all(text) if document]


def kinds(documents: list[dict[str, Any]]) -> list[str]:
    return [document["kind"] for document in documents]


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    [found] = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


async def test_the_chart_renders_by_its_values(helm: Helm) -> None:
    assert "0 chart(s) failed" in await helm("lint", "--strict", str(CHART), *SYSTEM)

    here = await template(helm, *SYSTEM, "--include-crds")
    assert kinds(here).count("CustomResourceDefinition") == len(crds.manifests())
    assert kinds(here).count("FederatedTypeConfig") == len(typeconfigs.manifests())
    [deployment] = [each for each in here if each["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    assert {"--no-install", "--leader-elect", "--probe-address=0.0.0.0"} <= set(container(deployment)["args"])
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == rights.CONTROLLERS

    bare = await template(
        helm,
        *SYSTEM,
        *["--set", "rights.create=false,admissionPolicy.create=false,typeConfigs.create=false,replicas=1"],
    )
    assert kinds(bare) == ["Deployment"]

    more = await template(
        helm, *SYSTEM, "--set", "rights.extraTypes[0].group=example.com,rights.extraTypes[0].plural=widgets"
    )
    [extra] = [each for each in more if each["metadata"]["name"] == "argosy-controllers-extra" and "rules" in each]
    assert extra["rules"][0] == {
        "apiGroups": ["example.com"],
        "resources": ["widgets"],
        "verbs": ["get", "list", "watch", "patch"],
    }

    assert "PrometheusRule" not in kinds(here)
    watched = await template(helm, *SYSTEM, "--set", "prometheusRule.create=true,prometheusRule.labels.team=ops")
    [rule] = [each for each in watched if each["kind"] == "PrometheusRule"]
    assert rule["metadata"]["labels"]["team"] == "ops"
    # Prometheus' own placeholders are as they were.
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy" / "alerts" / "argosy.yaml").read_text())

    elsewhere = await template(helm, "-n", "hosting", "--set", "controlPlane.kubeconfigSecret=hub,shards=3")
    assert sorted(kinds(elsewhere)) == ["Deployment"] * 3 + ["PodDisruptionBudget"] * 3 + ["ServiceAccount"]
    parts = [container(each)["args"] for each in elsewhere if each["kind"] == "Deployment"]
    assert sorted(argument for each in parts for argument in each if "--shard" in argument) == [
        "--shard=0/3",
        "--shard=1/3",
        "--shard=2/3",
    ]
    assert all("--kubeconfig=/control-plane/kubeconfig" in each for each in parts)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-n", "default"], "kube-admiral-system"),
        ([*SYSTEM, "--set", "replicas=many"], "replicas"),
        ([*SYSTEM, "--set", "replica=3"], "replica"),
        ([*SYSTEM, "--set", "shards=0"], "shards"),
    ],
)
async def test_values_that_make_no_sense_are_refused(helm: Helm, arguments: list[str], told: str) -> None:
    with pytest.raises(RuntimeError, match=told):
        await template(helm, *arguments)


async def test_every_argument_the_chart_gives_is_one_the_controllers_take(helm: Helm) -> None:
    values = "controlPlane.kubeconfigSecret=hub,controlPlane.context=x,shards=2,federateAll=true"
    [first, *_] = [each for each in await template(helm, "--set", values) if each["kind"] == "Deployment"]
    command, *arguments = container(first)["args"]
    shown = await run(sys.executable, "-m", "argosy.cli", command, "--help")
    for argument in arguments:
        assert re.search(rf"{re.escape(argument.partition('=')[0])}\b", shown), argument


async def test_a_release_comes_is_upgraded_and_goes_and_leaves_what_objects_depend_on(
    kubernetes: Kubernetes, helm: Helm
) -> None:
    [cluster] = await kubernetes(1, CONTROL_PLANE)
    client = cluster.client()
    at = ["--kubeconfig", str(cluster.kubeconfig), *SYSTEM]
    try:
        await helm("install", "argosy", str(CHART), *at, "--create-namespace")
        for manifest in crds.manifests():
            await _established(client, manifest["metadata"]["name"])
        deployment = await client.get(DEPLOYMENTS, "argosy-controllers", keys.SYSTEM_NAMESPACE)
        assert deployment["spec"]["replicas"] == 2
        assert (await client.get(BUDGETS, "argosy-controllers", keys.SYSTEM_NAMESPACE))["spec"]["minAvailable"] == 1
        assert await _type_configs(client) == len(typeconfigs.manifests())
        await _accepted_by_argosy(cluster, client)

        change = {"spec": {"statusCollection": {"enabled": False}}}
        await client.patch(resources.FEDERATED_TYPE_CONFIGS, "configmaps", change)
        await helm("upgrade", "argosy", str(CHART), *at, "--set", "replicas=3,shards=2")
        found = {each["metadata"]["name"]: each for each in (await client.list(DEPLOYMENTS)).items}
        assert {name: each["spec"]["replicas"] for name, each in found.items()} == {
            "argosy-controllers-0": 3,
            "argosy-controllers-1": 3,
        }
        edited = await client.get(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
        assert edited["spec"]["statusCollection"]["enabled"] is False

        await helm("uninstall", "argosy", *at)
        assert not (await client.list(DEPLOYMENTS)).items
        for resource, name in ((ROLES, rights.CONTROLLERS), (POLICIES, guard.NAME), (POLICIES, caveats.NAME)):
            with pytest.raises(NotFound):
                await client.get(resource, name)
        assert await _type_configs(client) == len(typeconfigs.manifests())

        await helm("install", "argosy", str(CHART), *at)
        assert await client.get(ROLES, rights.CONTROLLERS)

        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hosting"}})
        hosted = [
            "--kubeconfig",
            str(cluster.kubeconfig),
            "-n",
            "hosting",
            "--set",
            "controlPlane.kubeconfigSecret=hub",
        ]
        await helm("install", "second", str(CHART), "--skip-crds", *hosted)
        assert await client.get(DEPLOYMENTS, "second-controllers", "hosting")
    finally:
        await client.close()


async def _established(client: Client, name: str) -> None:
    async def probe() -> bool:
        conditions = (await client.get(CRDS, name))["status"]["conditions"]
        return {"type": "Established", "status": "True"}.items() <= _by_type(conditions)["Established"].items()

    await eventually(probe, 60.0, f"{name} is established")


def _by_type(conditions: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in conditions}


async def _type_configs(client: Client) -> int:
    return len((await client.list(resources.FEDERATED_TYPE_CONFIGS)).items)


async def _accepted_by_argosy(cluster: Cluster, client: Client) -> None:
    """Objects of the kinds are taken, and `argosy install` finds CRDs, rights and policy as it would make them."""
    policy = {
        "apiVersion": keys.API_VERSION,
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "all"},
        "spec": {"schedulingMode": "Duplicate"},
    }
    await client.create(resources.CLUSTER_PROPAGATION_POLICIES, policy)
    argosy = [sys.executable, "-m", "argosy.cli", "--kubeconfig", str(cluster.kubeconfig)]
    said = await run(*argosy, "install", "--dry-run")
    changes = [line for line in said.splitlines() if line.endswith("(dry run)")]
    # Helm made the namespace, and notes nothing on it.
    assert set(changes) == {f"updated Namespace {keys.SYSTEM_NAMESPACE} (dry run)"}


async def test_the_package_installs_as_the_image_does_it(tmp_path: Path) -> None:
    commands = re.findall(
        r"^RUN /argosy/bin/python -m (pip install .+)$", (ROOT / "deploy" / "Containerfile").read_text(), re.MULTILINE
    )
    requirements, package = (command.split() for command in commands)
    # Everything is there already, so that nothing is fetched; what the lock file says is read and resolved all the same.
    said = await run(sys.executable, "-m", *requirements[:-1], str(ROOT / requirements[-1]), "--dry-run", "--no-index")
    assert "Would install" not in said
    await run(sys.executable, "-m", *package[:-1], "--target", str(tmp_path), str(ROOT))
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    where = "import argosy, pathlib; print(pathlib.Path(argosy.__file__).parent)"
    folder = Path((await run(sys.executable, "-c", where, env=env)).strip())
    assert folder.is_relative_to(tmp_path)
    assert (folder / "examples").is_dir()
    assert "argosy" in await run(str(tmp_path / "bin" / "argosy"), "--version", env=env)
