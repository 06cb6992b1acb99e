"""What a simulated member offers to pods and from outside: company, node labels, addresses."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import DEPLOYMENTS, FAST, condition, deployment, pods, stored, until

SERVICES = Resource("", "v1", "services", "Service")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(3),)), FAST)
    await one.open()
    yield one
    await one.close()


def with_affinity(name: str, kind: str, other: str, replicas: int) -> Any:
    made = deployment(name, replicas)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": other}}}
    made["spec"]["template"]["spec"]["affinity"] = {kind: {REQUIRED: [term]}}
    return made


def nodes_of(member: Member, app: str) -> list[str]:
    found = [pod for pod in pods(member) if pod["metadata"]["labels"].get("app") == app]
    return sorted(pod["spec"]["nodeName"] for pod in found if pod["spec"].get("nodeName"))


def refusals(member: Member) -> list[str]:
    told = [condition(pod, "PodScheduled") for pod in pods(member)]
    return [each["message"] for each in told if each.get("status") == "False"]


async def test_pods_that_avoid_each_other_take_a_node_each(member: Member) -> None:
    client = member.client()
    await client.create(DEPLOYMENTS, with_affinity("web", "podAntiAffinity", "web", 4), "default")
    await until(member, lambda: len(nodes_of(member, "web")) == 3 and refusals(member))
    assert len(set(nodes_of(member, "web"))) == 3
    assert "3 node(s) didn't match pod anti-affinity rules" in refusals(member)[0]
    await member.add_node(
        "another", {"cpu": "4", "memory": "16Gi", "pods": "110"}, {"kubernetes.io/hostname": "another"}
    )
    await until(member, lambda: len(set(nodes_of(member, "web"))) == 4)


async def test_pods_wait_for_company(member: Member) -> None:
    client = member.client()
    await client.create(DEPLOYMENTS, with_affinity("web", "podAffinity", "cache", 2), "default")
    await until(member, lambda: len(refusals(member)) == 2)
    assert "3 node(s) didn't match pod affinity rules" in refusals(member)[0]
    await client.create(DEPLOYMENTS, deployment("cache", 1), "default")
    await until(member, lambda: len(nodes_of(member, "web")) == 2)
    assert set(nodes_of(member, "web")) == set(nodes_of(member, "cache"))


async def test_nodes_have_the_labels_that_manifests_select(member: Member) -> None:
    for node in stored(member, "core/nodes"):
        labels = node["metadata"]["labels"]
        assert labels["beta.kubernetes.io/os"] == labels["kubernetes.io/os"] == "linux"
        assert labels["beta.kubernetes.io/arch"] == labels["kubernetes.io/arch"] == "amd64"
        assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]


def service(name: str, kind: str = "LoadBalancer") -> Any:
    spec = {"type": kind, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def points(member: Member, table: str) -> dict[str, list[str]]:
    return {
        each["metadata"]["name"]: [one["ip"] for one in (each["status"].get("loadBalancer") or {}).get("ingress") or ()]
        for each in stored(member, table)
        if each["metadata"]["name"] != "kubernetes"
    }


async def test_load_balancers_and_ingresses_get_addresses(member: Member) -> None:
    client = member.client()
    for name in ("one", "two"):
        await client.create(SERVICES, service(name), "default")
    await client.create(SERVICES, service("inside", "ClusterIP"), "default")
    spec = {"defaultBackend": {"service": {"name": "one", "port": {"number": 80}}}}
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}, "spec": spec}
    await client.create(INGRESSES, body, "default")
    await until(member, lambda: all(points(member, "core/services")[name] for name in ("one", "two")))
    await until(member, lambda: points(member, "networking.k8s.io/ingresses")["web"])
    found = points(member, "core/services")
    assert found["inside"] == []
    assert len({*found["one"], *found["two"], *points(member, "networking.k8s.io/ingresses")["web"]}) == 3
    await client.patch(SERVICES, "one", {"spec": {"type": "ClusterIP"}}, "default", kind=Patch.MERGE)
    await until(member, lambda: points(member, "core/services")["one"] == [])
    assert points(member, "core/services")["two"] == found["two"]
