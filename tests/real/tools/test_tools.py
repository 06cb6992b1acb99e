"""Tools that know nothing of a federation are right about federated objects: real kubectl, real helm, Argo CD's health checks.

An `argosy up` with three simulated members. Helm installs what `chart` describes, and nothing else. It is Helm 4, which waits by
statuses: Helm 3 looks for the ReplicaSets of Deployments, which are in the members.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.testing import find
from tests.harness.commands import argosy
from tests.real.helm import Helm, run
from tests.real.tools.health import health

CHART = str(Path(__file__).with_name("chart"))
MEMBERS = ("member-1", "member-2", "member-3")
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
POLICY = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "divided", "namespace": "default"},
    "spec": {"schedulingMode": "Divide"},
}
#: Polls: the watcher, which is Helm 4's default, now and then ends before what it has not looked at yet is gone.
GONE = ("--wait=legacy", "--timeout", "120s")
#: Helm tells what it waited for when it gives up.
WAIT = ("--wait", "--wait-for-jobs", "--timeout", "120s")


class Tools:
    """kubectl and helm, pointed at one federation."""

    def __init__(self, data: Path, helm: Helm):
        self._kubeconfig = str(data / "kubeconfig")
        self._kubectl = str(find().path("kubectl"))
        self._helm = helm

    async def kubectl(self, *arguments: str, context: str = "") -> str:
        where = ("--context", context) if context else ()
        return await run(self._kubectl, "--kubeconfig", self._kubeconfig, *where, *arguments)

    async def helm(self, *arguments: str) -> str:
        # Argosy's own API server has no server-side apply.
        own = ("--server-side=false",) if arguments[0] in ("install", "upgrade", "rollback") else ()
        return await self._helm("--kubeconfig", self._kubeconfig, *arguments, *own)

    async def get(self, what: str, context: str = "") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.kubectl("get", what, "-o", "json", context=context))
        return found

    async def members(self, what: str) -> list[dict[str, Any]]:
        """The copies there are."""
        found = [await self.kubectl("get", what, "-o", "json", "--ignore-not-found", context=each) for each in MEMBERS]
        return [json.loads(each) for each in found if each]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tools") / "data"
    # Without the brake: three releases in a minute are more than half of all there is.
    unbraked = ("--brake-share", "100")
    said = argosy("up", "--detach", "--members", "3", "--data", str(folder), *unbraked, timeout=150.0)
    try:
        assert said.code == 0, said.err
        yield folder
    finally:
        argosy("down", "--data", str(folder))


@pytest.fixture
async def tools(data: Path, helm4: Helm, tmp_path: Path) -> Tools:
    tools = Tools(data, helm4)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    await tools.kubectl("apply", "-f", str(tmp_path / "policy.yaml"))
    return tools


async def available(tools: Tools, name: str) -> int:
    return sum(each["status"].get("availableReplicas", 0) for each in await tools.members(f"deployment/{name}"))


async def test_helm_waits_for_all_members_and_for_the_last_copy_to_go(tools: Tools) -> None:
    await tools.helm("install", "shop", CHART, "--set", "policy=divided", *WAIT)
    assert await available(tools, "shop") == 6
    for kind in (*WORKLOADS, "Job"):
        name = "shop-1" if kind == "Job" else "shop"
        assert health(await tools.get(f"{kind}/{name}")) == "Healthy", kind
        assert all(health(each) == "Healthy" for each in await tools.members(f"{kind}/{name}")), kind
    assert len(await tools.members("configmap/shop")) == 3

    await tools.helm("upgrade", "shop", CHART, "--set", "policy=divided,image=nginx:1.30,replicas=9", *WAIT)
    assert await available(tools, "shop") == 9
    for kind in WORKLOADS:
        for copy in await tools.members(f"{kind}/shop"):
            assert copy["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.30"
            assert health(copy) == "Healthy"

    await tools.helm("uninstall", "shop", *GONE)
    for what in ("deployment", "statefulset", "daemonset", "configmap", "service"):
        assert await tools.members(f"{what}/shop") == [], what


async def test_nobody_is_told_that_a_broken_image_runs(tools: Tools) -> None:
    await tools.helm("install", "broken", CHART, "--set", "policy=divided", *WAIT)
    with pytest.raises(RuntimeError):
        await tools.helm(
            "upgrade", "broken", CHART, "--set", "policy=divided,image=nginx:bad", "--wait", "--timeout", "10s"
        )
    with pytest.raises(RuntimeError, match="timed out waiting"):
        await tools.kubectl("rollout", "status", "deployment/broken", "--timeout=3s")
    for kind in WORKLOADS:
        assert health(await tools.get(f"{kind}/broken")) == "Progressing", kind

    await tools.helm("rollback", "broken", "1", "--wait", "--timeout", "120s")
    for kind in WORKLOADS:
        await tools.kubectl("rollout", "status", f"{kind.lower()}/broken", "--timeout=3s")
        assert health(await tools.get(f"{kind}/broken")) == "Healthy", kind
    await tools.helm("uninstall", "broken", *GONE)


async def test_kubectl_waits_and_shows_what_the_members_have(tools: Tools) -> None:
    await tools.helm("install", "seen", CHART, "--set", "policy=divided")
    await tools.kubectl("wait", "--for=condition=Available", "deployment/seen", "--timeout=120s")
    assert await available(tools, "seen") == 6
    await tools.kubectl("wait", "--for=condition=Complete", "job/seen-1", "--timeout=120s")
    await tools.kubectl("rollout", "status", "statefulset/seen", "--timeout=120s")
    await tools.kubectl("rollout", "status", "daemonset/seen", "--timeout=120s")
    await tools.kubectl("rollout", "status", "deployment/seen", "--timeout=120s")

    async def columns(kind: str, name: str) -> list[str]:
        return (await tools.kubectl("get", f"{kind}/{name}", "--no-headers")).split()

    assert (await columns("deployment", "seen"))[1:4] == ["6/6", "6", "6"]
    pods = sum(each["status"]["readyReplicas"] for each in await tools.members("statefulset/seen"))
    [_, ready, *_] = await columns("statefulset", "seen")
    assert ready.partition("/")[0] == str(pods)
    nodes = [each["status"]["desiredNumberScheduled"] for each in await tools.members("daemonset/seen")]
    assert (await columns("daemonset", "seen"))[1:6] == [str(sum(nodes))] * 5
    done = sum(each["status"]["succeeded"] for each in await tools.members("job/seen-1"))
    assert (await columns("job", "seen-1"))[1] == "Complete"
    assert (await tools.get("job/seen-1"))["status"]["succeeded"] == done

    await tools.kubectl("rollout", "restart", "deployment/seen")
    await tools.kubectl("rollout", "status", "deployment/seen", "--timeout=120s")
    stamps = [each["spec"]["template"]["metadata"]["annotations"] for each in await tools.members("deployment/seen")]
    assert len({json.dumps(each, sort_keys=True) for each in stamps}) == 1
    await tools.helm("uninstall", "seen", *GONE)
