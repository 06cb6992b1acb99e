"""StatefulSets start, scale and update in order, or all at once."""

from collections.abc import Callable

from tests.real.simulation import view
from tests.real.simulation.build import NEXT, ready, stateful_set, with_image
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import STATEFULSETS


def _settled(replicas: int, updated: int) -> Callable[[Side], bool]:
    def holds(side: Side) -> bool:
        status = side.one("StatefulSet", "web").get("status") or {}
        counts = [status.get(field, 0) for field in ("replicas", "availableReplicas", "updatedReplicas")]
        return ready("StatefulSet", replicas)(side) and counts == [replicas, replicas, updated]

    return holds


async def ordered(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(3))
    await pair.agree("started", _settled(3, 3))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    await pair.agree("fewer", _settled(1, 1))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 2}})
    await pair.agree("more", _settled(2, 2))
    await pair.patch(STATEFULSETS, "web", with_image(NEXT))
    await pair.agree("updated", lambda side: _settled(2, 2)(side) and _images(side) == {NEXT})
    pair.same("order", view.starts)


async def ordered_with_patience(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(2, minReadySeconds=2))
    await pair.agree("started", _settled(2, 2))
    await pair.patch(STATEFULSETS, "web", with_image(NEXT))
    await pair.agree("updated", lambda side: _settled(2, 2)(side) and _images(side) == {NEXT})
    pair.same("order", view.starts)


async def parallel(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(3, podManagementPolicy="Parallel"))
    await pair.agree("started", _settled(3, 3))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 5}})
    await pair.agree("more", _settled(5, 5))
    await pair.patch(STATEFULSETS, "web", {"spec": {"replicas": 2}})
    await pair.agree("fewer", _settled(2, 2))
    await pair.patch(STATEFULSETS, "web", with_image(NEXT))
    await pair.agree("updated", lambda side: _settled(2, 2)(side) and _images(side) == {NEXT})


async def partition(pair: Pair) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await pair.create(STATEFULSETS, stateful_set(3, updateStrategy=strategy))
    await pair.agree("started", _settled(3, 3))
    await pair.patch(STATEFULSETS, "web", with_image(NEXT))
    await pair.agree("one updated", _settled(3, 1))
    await pair.patch(STATEFULSETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await pair.agree("all updated", lambda side: _settled(3, 3)(side) and _images(side) == {NEXT})
    pair.same("order", view.starts)


async def on_delete(pair: Pair) -> None:
    await pair.create(STATEFULSETS, stateful_set(2, updateStrategy={"type": "OnDelete"}))
    await pair.agree("started", ready("StatefulSet", 2))
    await pair.patch(STATEFULSETS, "web", with_image(NEXT))
    await pair.agree("nothing moves", ready("StatefulSet", 2))


def _images(side: Side) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in side.all("Pod")}


SCENARIOS = (ordered, ordered_with_patience, parallel, partition, on_delete)
