"""Real kubectl against the embedded server: what it discovers, prints, explains, compares and refuses."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.server.embedded import EmbeddedServer
from tests.server.test_crd import widgets_crd
from tests.unit.server.crd.builders import widget

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
pytestmark = [pytest.mark.kubectl, pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl")]

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}, {"name": "d", "image": "redis"}]},
        },
    },
}


class Result:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


Kubectl = Callable[..., Awaitable[Result]]


@pytest.fixture
async def kubectl(memory_server: EmbeddedServer, tmp_path: Path) -> Kubectl:
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(memory_server.kubeconfig("test")))
    config.chmod(0o600)
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}

    async def run(*arguments: str, stdin: Any = None) -> Result:
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        documents = stdin if isinstance(stdin, list) else [stdin] if stdin else []
        text = yaml.safe_dump_all(documents).encode() if documents else None
        out, err = await asyncio.wait_for(process.communicate(text), 30)
        return Result(process.returncode or 0, out.decode(), err.decode())

    return run


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("waited ten seconds in vain")


async def test_it_finds_every_resource(kubectl: Kubectl) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=widgets_crd())).code == 0
    found = await kubectl("api-resources")
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in found.lines
    assert ["widgets", "example.com/v1", "true", "Widget"] in found.lines
    versions = (await kubectl("api-versions")).out.split()
    assert {"v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "example.com/v1"} <= set(versions)


async def test_it_explains_built_in_and_custom_fields(kubectl: Kubectl) -> None:
    crd = widgets_crd()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["replicas"]["description"] = "How many are wanted."
    assert (await kubectl("apply", "-f", "-", stdin=crd)).code == 0
    strategy = (await kubectl("explain", "deployment.spec.strategy")).out
    assert "rollingUpdate\t<RollingUpdateDeployment>" in strategy
    assert 'Type of deployment. Can be "Recreate" or "RollingUpdate".' in strategy
    spec = (await kubectl("explain", "widget.spec")).out
    assert "name\t<string> -required-" in spec
    assert "How many are wanted." in spec
    older = (await kubectl("explain", "widget.spec.replicas", "--output=plaintext-openapiv2")).out
    assert "replicas <integer>" in older


async def test_a_typo_is_refused(kubectl: Kubectl) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=widgets_crd())).code == 0
    typo = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicsa": 3}}
    refused = await kubectl("apply", "-f", "-", stdin=typo)
    assert refused.code == 1
    assert 'unknown field "spec.replicsa"' in refused.err
    refused = await kubectl("apply", "-f", "-", stdin=widget({"name": "ab", "nmae": "x"}))
    assert 'unknown field "spec.nmae"' in refused.err
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dta": {}}
    listed = await kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [item]})
    assert 'unknown field "dta"' in listed.err


async def test_an_object_before_its_definition_waits_for_it_only(kubectl: Kubectl) -> None:
    """kubectl validates what it does not know against OpenAPI 2; that must not be what fails."""
    both = [widgets_crd(), widget({"name": "ab"})]
    first = await kubectl("apply", "-f", "-", stdin=both)
    assert "created" in first.out
    assert first.code == 0 or "ensure CRDs are installed first" in first.err
    again = await kubectl("apply", "-f", "-", stdin=both)
    assert again.code == 0, again.err
    assert (await kubectl("get", "widget", "w", "-o", "jsonpath={.spec.replicas}")).out == "1"


async def test_it_prints_the_usual_columns(kubectl: Kubectl) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=[DEPLOYMENT, widgets_crd()])).code == 0
    assert (await kubectl("apply", "-f", "-", stdin=widget({"name": "ab"}))).code == 0
    short = await kubectl("get", "deployments")
    assert short.lines[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert short.lines[1][:4] == ["web", "0/3", "0", "0"]
    wide = await kubectl("get", "deploy", "web", "-o", "wide")
    assert wide.lines[1][5:] == ["c,d", "nginx,redis", "app=web"]
    assert (await kubectl("get", "widgets")).lines[1][:2] == ["w", "1"]
    assert (await kubectl("get", "crd")).lines[0] == ["NAME", "CREATED", "AT"]
    assert (await kubectl("get", "deploy", "web", "-o", "name")).out == "deployment.apps/web\n"
    assert yaml.safe_load((await kubectl("get", "deploy", "web", "-o", "yaml")).out)["spec"]["replicas"] == 3
    described = (await kubectl("describe", "deployment", "web")).out
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in described
    assert "Replicas:  1" in (await kubectl("describe", "widget", "w")).out


async def test_apply_changes_only_what_was_changed(kubectl: Kubectl) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=[DEPLOYMENT, widgets_crd()])).code == 0
    assert (await kubectl("apply", "-f", "-", stdin=widget({"name": "ab", "mode": "Divide"}))).code == 0
    assert (await kubectl("scale", "deployment/web", "--replicas=7")).code == 0
    changed: dict[str, Any] = yaml.safe_load(yaml.safe_dump(DEPLOYMENT))
    changed["spec"]["template"]["spec"]["containers"] = [{"name": "c", "image": "nginx:2"}]
    compared = await kubectl("diff", "-f", "-", stdin=changed)
    assert compared.code == 1
    assert "+      - image: nginx:2" in compared.out
    assert (await kubectl("apply", "-f", "-", stdin=changed)).out == "deployment.apps/web configured\n"
    images = await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
    assert images.out == "nginx:2"
    applied = await kubectl("apply", "-f", "-", stdin=widget({"name": "cd"}))
    assert applied.out == "widget.example.com/w configured\n", applied.err
    assert (await kubectl("get", "widget", "w", "-o", "jsonpath={.spec}")).out == '{"name":"cd","replicas":1}'
    again = await kubectl("diff", "-f", "-", stdin=widget({"name": "cd"}))
    assert (again.code, again.out) == (0, "")


async def test_it_watches_as_a_table(kubectl: Kubectl, memory_server: EmbeddedServer) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=widgets_crd())).code == 0
    assert (await kubectl("apply", "-f", "-", stdin=widget({"name": "ab"}))).code == 0
    others = set(memory_server.server.watchers)
    watching = asyncio.create_task(kubectl("get", "widgets", "-w", "--output-watch-events", "--request-timeout=4s"))
    await until(lambda: bool(memory_server.server.watchers - others))
    assert (await kubectl("scale", "widget/w", "--replicas=4")).code == 0
    assert (await kubectl("delete", "widget/w", "--wait=false")).code == 0
    lines = (await watching).lines
    assert lines[0] == ["EVENT", "NAME", "REPLICAS", "AGE"]
    assert [line[:3] for line in lines[1:]] == [["ADDED", "w", "1"], ["MODIFIED", "w", "4"], ["DELETED", "w", "4"]]
