"""Copies of a shape that cannot be worked with, in one member: a failure of that member, told as one."""

from typing import Any

import msgspec
import pytest

from argosy.api.conditions import Propagation
from argosy.api.keys import MANAGED_LABEL, RETAIN_TERMINATING_FINALIZER
from argosy.api.typeconfigs import FederatedTypeConfig, manifests
from argosy.control.copies.operations import Operations
from argosy.control.members.member import Member
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.kube.objects import encode
from argosy.plan.copies.drift import Since
from argosy.plan.copies.render import RenderError

CONFIGS = {each["metadata"]["name"]: msgspec.convert(each, FederatedTypeConfig) for each in manifests()}
DEPLOYMENTS = CONFIGS["deployments.apps"]


class Knowing:
    """A member's client that holds one object, as it is."""

    name = "m1"

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    async def get(self, *_: Any, **__: Any) -> Any:
        return self.obj

    async def update(self, resource: Any, obj: Any, **_: Any) -> bytes:
        return encode(obj)


class Nothing:
    """Caches of nothing."""

    def __init__(self) -> None:
        self.clusters: dict[str, Any] = {}

    def get(self, *_: Any) -> None:
        return None

    def synced(self, *_: Any) -> bool:
        return False

    def remember(self, *_: Any) -> None:
        pass


def a_copy(levels: int, **metadata: Any) -> dict[str, Any]:
    inner: Any = 1
    for _ in range(levels):
        inner = {"a": inner}
    identity = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "5"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**identity, "labels": {MANAGED_LABEL: "true"}, **metadata},
        "spec": {"replicas": 1},
        "x": inner,
    }


def operations(copy: Any) -> tuple[Operations, Member]:
    async def confirm() -> None:
        pass

    caches: Any = Nothing()
    client: Any = Knowing(copy)
    member = Member("m1", client, Timings(), confirm, recovered=lambda name: None, faltered=lambda name: None)
    return Operations(caches, caches, Metrics()), member


@pytest.mark.parametrize("levels", [300, 900, 5000])
async def test_a_copy_that_cannot_be_written_again_is_not_released(levels: int) -> None:
    made, member = operations(a_copy(levels))
    applied = await made.remove(member, DEPLOYMENTS, "default/web", lambda annotations: True)
    assert applied.status is Propagation.RETRIEVAL_FAILED
    assert applied.error == "the object in the member is not a valid Deployment: nested deeper than 200 levels"


async def test_nor_does_it_lose_its_finalizer() -> None:
    made, member = operations(a_copy(300, finalizers=[RETAIN_TERMINATING_FINALIZER]))
    applied = await made.remove(member, DEPLOYMENTS, "default/web")
    assert (applied.status, applied.failed) == (Propagation.RETRIEVAL_FAILED, True)


@pytest.mark.parametrize("levels", [1, 300, 900, 5000])
async def test_a_copy_that_cannot_be_worked_with_is_not_updated(levels: int) -> None:
    made, member = operations(a_copy(levels))

    def render(present: Any) -> Any:
        return {**present, "spec": present["spec"]["template"]["spec"]}

    applied = await made.apply(
        member, DEPLOYMENTS, "default/web", render, lambda a, b: False, adopt=False, since=Since()
    )
    assert applied.status is Propagation.RETRIEVAL_FAILED
    assert applied.error.startswith("the object in the member is not a valid Deployment: ")


async def test_nor_is_one_whose_rendering_cannot_be_written() -> None:
    made, member = operations(a_copy(300))
    applied = await made.apply(
        member,
        DEPLOYMENTS,
        "default/web",
        lambda present: present or {},
        lambda a, b: False,
        adopt=False,
        since=Since(),
    )
    assert applied.status is Propagation.RETRIEVAL_FAILED
    assert applied.error == "the object in the member is not a valid Deployment: nested deeper than 200 levels"


async def test_what_the_template_does_wrong_is_not_the_members_fault() -> None:
    made, member = operations(a_copy(1))

    def render(present: Any) -> Any:
        raise RenderError(Propagation.APPLY_OVERRIDES_FAILED, "no such path")

    with pytest.raises(RenderError, match="no such path"):
        await made.apply(member, DEPLOYMENTS, "default/web", render, lambda a, b: False, adopt=False, since=Since())
