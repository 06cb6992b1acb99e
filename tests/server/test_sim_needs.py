"""Pods on a simulated member wait for what they need, as a real kubelet and a real API server let them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.resource import Resource
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import DEPLOYMENTS, FAST, condition, deployment, is_ready, pods, stored, until

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(1),)), FAST)
    await one.open()
    yield one
    await one.close()


def needing(envs: tuple[str, ...] = (), volumes: tuple[str, ...] = (), *, optional: bool = False, **spec: Any) -> Any:
    made = deployment(replicas=1)
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": name, "optional": optional}} for name in envs]
    pod["volumes"] = [{"name": name, "secret": {"secretName": name, "optional": optional}} for name in volumes]
    pod.update(spec)
    return made


def waiting(member: Member) -> str:
    return next(
        (
            each["state"]["waiting"]["reason"]
            for pod in pods(member)
            for each in (pod.get("status") or {}).get("containerStatuses") or ()
            if "waiting" in each["state"]
        ),
        "",
    )


def events(member: Member, reason: str) -> list[str]:
    return [each["message"] for each in stored(member, "core/events") if each["reason"] == reason]


async def test_a_container_waits_for_the_config_map_of_its_environment(member: Member) -> None:
    await member.client().create(DEPLOYMENTS, needing(envs=("settings",)), "default")
    await until(member, lambda: waiting(member) == "CreateContainerConfigError")
    await until(member, lambda: events(member, "Failed"))
    assert events(member, "Failed") == ['Error: configmap "settings" not found']
    assert [pod["status"]["phase"] for pod in pods(member)] == ["Pending"]
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    await member.client().create(CONFIGMAPS, body, "default")
    await until(member, lambda: [is_ready(pod) for pod in pods(member)] == [True])


async def test_a_pod_waits_for_the_secret_of_its_volume(member: Member) -> None:
    await member.client().create(DEPLOYMENTS, needing(envs=("settings",), volumes=("password",)), "default")
    await until(member, lambda: waiting(member) == "ContainerCreating")
    await until(member, lambda: events(member, "FailedMount"))
    assert events(member, "FailedMount") == [
        'MountVolume.SetUp failed for volume "password" : secret "password" not found'
    ]
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}}
    await member.client().create(SECRETS, body, "default")
    await until(member, lambda: waiting(member) == "CreateContainerConfigError")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    await member.client().create(CONFIGMAPS, body, "default")
    await until(member, lambda: [is_ready(pod) for pod in pods(member)] == [True])
    [pod] = pods(member)
    assert condition(pod, "PodReadyToStartContainers")["status"] == "True"


async def test_an_init_container_holds_up_the_others(member: Member) -> None:
    init = {"name": "prepare", "image": "nginx:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}
    await member.client().create(DEPLOYMENTS, needing(initContainers=[init]), "default")
    await until(member, lambda: waiting(member) == "PodInitializing")
    [pod] = pods(member)
    assert pod["status"]["initContainerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert condition(pod, "Initialized")["status"] == "False"


async def test_what_is_optional_is_not_waited_for(member: Member) -> None:
    await member.client().create(DEPLOYMENTS, needing(("settings",), ("password",), optional=True), "default")
    await until(member, lambda: [is_ready(pod) for pod in pods(member)] == [True])


async def test_no_pod_is_made_for_an_account_that_does_not_exist(member: Member) -> None:
    await member.client().create(DEPLOYMENTS, needing(serviceAccountName="app"), "default")

    def refused() -> bool:
        return any(
            condition(each, "ReplicaFailure").get("status") == "True" for each in stored(member, "apps/replicasets")
        )

    await until(member, refused)
    assert pods(member) == []
    await until(member, lambda: events(member, "FailedCreate"))
    assert 'serviceaccount "app" not found' in events(member, "FailedCreate")[0]
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app"}}
    await member.client().create(ACCOUNTS, body, "default")
    await until(member, lambda: [is_ready(pod) for pod in pods(member)] == [True])
