"""Our strategic merge and three-way apply give the objects that kube-apiserver and kubectl give, for generated workloads."""

import asyncio
import copy
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from argosy.cli.client.manifests import Manifest
from argosy.cli.commands.apply import LAST_APPLIED, apply_all
from argosy.cli.output.failures import Failure
from argosy.kube import strategic
from argosy.kube.client import Client, Patch
from argosy.kube.discovery import Discovery
from argosy.kube.errors import ApiError, Invalid
from argosy.kube.resource import Resource
from argosy.kube.schema import Type, load
from argosy.testing import API_SERVER
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.user import new_namespace
from tests.real import merges

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
RESOURCES = {
    "Deployment": Resource("apps", "v1", "deployments", "Deployment"),
    "Service": Resource("", "v1", "services", "Service"),
    "Pod": Resource("", "v1", "pods", "Pod"),
}
#: Of each kind; hypothesis is told to draw the same in every run.
PATCHES = 100
SEQUENCES = 12


@pytest.fixture
def client(client: Client) -> Client:
    return Remembering(client.transport)


@pytest.fixture
async def namespaces(client: Client) -> AsyncIterator[list[str]]:
    async with new_namespace(client, "merge-") as one, new_namespace(client, "merge-") as other:
        for name in (one, other):
            await eventually(lambda name=name: client.get(ACCOUNTS, "default", name), 60)
        yield [one, other]


class Remembering(Client):
    """Asks only once what there is: `argosy apply` asks for each object."""

    found: Discovery | None = None

    async def discover(self) -> Discovery:
        self.found = self.found or await super().discover()
        return self.found


def type_of(kind: str) -> Type:
    resource = RESOURCES[kind]
    found = load().kind(resource.group, resource.version, kind)
    assert found is not None
    return found


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from write to write."""
    moving = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "namespace")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in moving}
    annotations = dict(metadata.get("annotations") or {})
    if LAST_APPLIED in annotations:
        applied = orjson.loads(annotations[LAST_APPLIED])
        applied["metadata"].pop("namespace", None)
        annotations[LAST_APPLIED] = applied
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}


async def outcome(answer: Any) -> Any:
    """The object, or what was refused and where."""
    try:
        return bare(await answer)
    except Invalid as error:
        # That the patch as such cannot be taken is told by us without a field, or by whoever reads what comes of it.
        fields = sorted({cause.get("field", "") for cause in error.causes} - {"patch"})
        return f"refused: {fields}" if fields else "refused"
    except ApiError:
        return "refused"


@pytest.mark.parametrize("kind", merges.KINDS)
@settings(
    max_examples=PATCHES,
    derandomize=True,
    deadline=None,
    database=None,
    # Each try is four requests: what fails is shown as it is, for making it small takes minutes.
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
@given(chance=st.randoms(use_true_random=False))
async def test_a_strategic_merge_patch_does_here_what_it_does_there(
    client: Client, namespaces: list[str], kind: str, chance: random.Random
) -> None:
    """The server patches; we patch what is stored and have the server put it: both are dry runs on the same object."""
    resource, namespace, type = RESOURCES[kind], namespaces[0], type_of(kind)
    body = merges.manifest(chance, kind, "x")
    body["metadata"] = {"generateName": f"{kind.lower()}-"}
    if chance.random() < 0.3:
        body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    stored = await client.create(resource, body, namespace)
    name = stored["metadata"]["name"]
    try:
        change = merges.patch(chance, stored, type)
        note(f"stored: {orjson.dumps(stored['spec']).decode()}")
        note(f"patch: {orjson.dumps(change).decode()}")
        before = copy.deepcopy((stored, change))
        there = await outcome(client.patch(resource, name, change, namespace, kind=Patch.STRATEGIC, dry_run=True))
        try:
            merged = strategic.apply(stored, change, type)
        except strategic.StrategicPatchError:
            here: Any = "refused"
        else:
            here = await outcome(client.update(resource, merged, namespace, dry_run=True))
        assert here == there
        assert (stored, change) == before, "the inputs are not changed"
    finally:
        await client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
        await client.delete(resource, name, namespace, grace_period=0)


async def test_applying_a_sequence_does_what_kubectl_does(
    client: Client, namespaces: list[str], kubernetes: Kubernetes
) -> None:
    """Three manifests one after the other with somebody else's change in between: by kubectl, and by us."""
    chance = random.Random(5)
    kubectl = (await kubernetes.shared(API_SERVER)).kubectl
    theirs, ours = namespaces
    first = [
        merges.manifest(chance, kind, f"{kind.lower()}-{number}")
        for kind in merges.KINDS
        for number in range(SEQUENCES)
    ]
    second = [again(chance, obj) for obj in first]
    third = [again(chance, obj) for obj in second]
    for step, manifests in enumerate([first, second, second, third]):
        await asyncio.gather(by_kubectl(kubectl, manifests, theirs), by_us(client, manifests, ours))
        await compare(client, manifests, theirs, ours, step)
        await disturb(client, manifests, random.Random(step), theirs, ours)


def again(chance: random.Random, obj: dict[str, Any]) -> dict[str, Any]:
    return merges.pod_change(chance, obj) if obj["kind"] == "Pod" else merges.modified(chance, obj)


async def by_kubectl(kubectl: list[str], manifests: list[dict[str, Any]], namespace: str) -> None:
    text = b"\n---\n".join(map(orjson.dumps, manifests))
    process = await asyncio.create_subprocess_exec(
        *kubectl,
        "apply",
        f"--namespace={namespace}",
        "--filename=-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(text)


async def by_us(client: Client, manifests: list[dict[str, Any]], namespace: str) -> None:
    async def one(obj: dict[str, Any]) -> None:
        async with turns:
            with suppress(Failure):
                await apply_all(client, [Manifest(obj, "generated")], namespace, lambda _: None)

    turns = asyncio.Semaphore(8)
    await asyncio.gather(*map(one, manifests))


async def compare(client: Client, manifests: list[dict[str, Any]], theirs: str, ours: str, step: int) -> None:
    for kind in merges.KINDS:
        found = [
            {one["metadata"]["name"]: bare(one) for one in (await client.list(RESOURCES[kind], namespace)).items}
            for namespace in (theirs, ours)
        ]
        assert (
            found[0].keys() == found[1].keys() == {obj["metadata"]["name"] for obj in manifests if obj["kind"] == kind}
        )
        for name, wanted in found[0].items():
            assert found[1][name] == wanted, f"step {step}: {name}"


async def disturb(client: Client, manifests: list[dict[str, Any]], chance: random.Random, *namespaces: str) -> None:
    """Somebody else changes what nobody applied: the same in both places."""
    for obj in manifests:
        change: dict[str, Any] = {"metadata": {"labels": {"stranger": chance.choice("xy")}}}
        if obj["kind"] == "Deployment":
            sidecar = {"name": "sidecar", "image": "side:1", "env": [{"name": "Z", "value": "1"}]}
            first = {
                "name": obj["spec"]["template"]["spec"]["containers"][0]["name"],
                "env": [{"name": "Z", "value": "2"}],
            }
            change["spec"] = {
                "replicas": 4,
                "template": {"spec": {"containers": chance.choice([[sidecar], [first], []])}},
            }
        elif obj["kind"] == "Service":
            change["spec"] = {"ports": [{"name": "stranger", "port": 9999}], "selector": {"stranger": "1"}}
        patches = [
            outcome(client.patch(RESOURCES[obj["kind"]], obj["metadata"]["name"], change, each, kind=Patch.STRATEGIC))
            for each in namespaces
        ]
        assert await patches[0] == await patches[1]
