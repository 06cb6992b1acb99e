"""Whole applications as they are published, each under one policy that selects what is theirs: everything arrives and is ready.

`examples/shop` is one of them. Others are given as a folder with a folder for each application: `make test-applications
FOLDER=...`. No file of theirs is changed, and none is kept here.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from argosy.cli.client import manifests
from argosy.cli.client.kinds import of_object
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from tests.harness.commands import Said, argosy, here

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
GIVEN = os.environ.get("ARGOSY_APPLICATIONS", "")
FOLDERS = [SHOP, *(sorted(each for each in Path(GIVEN).iterdir() if each.is_dir()) if GIVEN else ())]
MEMBERS = ("member-1", "member-2")
#: What comes from elsewhere: a secret that the instructions have the user make, and one that an init container makes when it
#: runs, which it does not in a simulated member.
SECRETS = {"wordpress": "mysql-pass", "argo-cd": "argocd-redis"}
SECRET = Resource("", "v1", "secrets", "Secret")
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
#: Seconds for the largest of them, on a machine with other work.
PATIENCE = 240.0
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
POLICIES = ("PropagationPolicy", "ClusterPropagationPolicy")

Object = dict[str, Any]


class Application(NamedTuple):
    """`namespace` is that of objects that name none."""

    name: str
    folder: Path
    namespace: str
    objects: list[Object]

    @classmethod
    def of(cls, folder: Path) -> "Application":
        found = [each.object for each in manifests.read([str(folder)])]
        return cls(folder.name, folder, folder.name, found)

    @property
    def carried(self) -> list[Object]:
        """All but policies."""
        return [each for each in self.objects if each["kind"] not in POLICIES]

    def is_like_the_systems_own(self, obj: Object) -> bool:
        """A policy has to name it."""
        return self.namespace_of(obj) == "kube-system" or obj["metadata"]["name"].startswith("system:")

    @property
    def has_policy(self) -> bool:
        return any(each["kind"] in POLICIES for each in self.objects)

    def namespace_of(self, obj: Object) -> str:
        return obj["metadata"].get("namespace") or self.namespace


class Fleet:
    def __init__(self, data: Path, plane: Client, members: dict[str, Client]):
        self.kubeconfig = str(data / "kubeconfig")
        self.plane = plane
        self.members = members

    def run(self, *arguments: str) -> Said:
        return here("--kubeconfig", self.kubeconfig, *arguments)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("applications") / "data"
    # Without the brake: an application is more than half of all there is.
    unbraked = ("--brake-share", "100")
    said = argosy("up", "--detach", "--members", str(len(MEMBERS)), "--data", str(folder), *unbraked, timeout=150.0)
    try:
        assert said.code == 0, said.err
        yield folder
    finally:
        argosy("down", "--data", str(folder))


@pytest.fixture
async def fleet(data: Path) -> AsyncIterator[Fleet]:
    path = str(data / "kubeconfig")
    async with AsyncExitStack() as stack:

        def client(context: str | None = None) -> Client:
            made = Client(HttpTransport(config.load(path, context)))
            stack.push_async_callback(made.close)
            return made

        yield Fleet(data, client(), {name: client(name) for name in MEMBERS})


async def policy_for(fleet: Fleet, application: Application, tmp_path: Path) -> Path:
    """One policy that selects the application by its kinds, and those without a namespace by their names, too."""
    selectors: list[Object] = []
    for obj in application.carried:
        selector = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        if await is_namespaced(fleet, application, obj):
            selector["namespaceSelector"] = {
                "matchLabels": {"kubernetes.io/metadata.name": application.namespace_of(obj)}
            }
        if "namespaceSelector" not in selector or application.is_like_the_systems_own(obj):
            selector["name"] = obj["metadata"]["name"]
        if selector not in selectors:
            selectors.append(selector)
    body = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": application.name},
        "spec": {"schedulingMode": "Duplicate", "resourceSelectors": selectors},
    }
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


async def is_namespaced(fleet: Fleet, application: Application, obj: Object) -> bool:
    """A definition among its objects says it of its own kind, which may not be served yet."""
    for each in application.objects:
        if each["kind"] == "CustomResourceDefinition" and each["spec"]["names"]["kind"] == obj["kind"]:
            return bool(each["spec"]["scope"] == "Namespaced")
    return (await of_object(fleet.plane, obj["apiVersion"], obj["kind"])).namespaced


async def missing(fleet: Fleet, application: Application) -> list[str]:
    """What is not in some member yet."""
    found = []
    for obj in application.carried:
        resource = await of_object(fleet.plane, obj["apiVersion"], obj["kind"])
        namespace = application.namespace_of(obj) if resource.namespaced else None
        for name, member in fleet.members.items():
            try:
                await member.get(resource, obj["metadata"]["name"], namespace)
            except NotFound:
                found.append(f"{obj['kind']} {obj['metadata']['name']} is not in {name}")
    return found


async def unready(fleet: Fleet, application: Application) -> list[str]:
    """Pods in the members that are neither ready nor done; and members that run none."""
    found = []
    namespaces = {application.namespace_of(obj) for obj in application.carried}
    for name, member in fleet.members.items():
        pods = [pod for each in namespaces for pod in (await member.list(PODS, each)).items]
        if not pods:
            found.append(f"there are no pods in {name}")
        for pod in pods:
            status = pod.get("status") or {}
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
            if not ready and status.get("phase") != "Succeeded":
                found.append(f"{pod['metadata']['name']} is not ready in {name}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_an_application_arrives_and_is_ready(fleet: Fleet, folder: Path, tmp_path: Path) -> None:
    application = Application.of(folder)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": application.namespace}}
    if not application.has_policy:
        with suppress(AlreadyExists):
            await fleet.plane.create(NAMESPACE, namespace)
        policy = await policy_for(fleet, application, tmp_path)
        said = await asyncio.to_thread(fleet.run, "apply", "-f", str(policy))
        assert said.code == 0, said.err
    if (secret := SECRETS.get(application.name)) is not None:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret},
            "stringData": {"password": "x", "auth": "x"},
        }
        await fleet.plane.create(SECRET, body, application.namespace)

    said = await asyncio.to_thread(fleet.run, "apply", "-n", application.namespace, "-f", str(folder))
    assert said.code == 0, said.err

    deadline = time.monotonic() + PATIENCE
    # Seldom: to look at a whole application keeps the processes under test busy.
    while lacking := await missing(fleet, application) or await unready(fleet, application):
        if time.monotonic() > deadline:
            pytest.fail("\n".join(lacking), pytrace=False)
        await asyncio.sleep(1.0)
    for obj in application.carried:
        if obj["kind"] in WORKLOADS:
            name = f"{obj['kind'].lower()}/{obj['metadata']['name']}"
            told = ("status", name, "-n", application.namespace_of(obj), "--wait", "--timeout", "120")
            said = await asyncio.to_thread(fleet.run, *told)
            assert said.code == 0, f"{name}\n{said.out}{said.err}"
