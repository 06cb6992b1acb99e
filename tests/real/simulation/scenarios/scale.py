"""Deployments and ReplicaSets are scaled: up, down, to none, and in the middle of a roll-out."""

from collections.abc import Callable

from tests.real.simulation import view
from tests.real.simulation.build import (
    GOOD,
    NEXT,
    complete,
    deployment,
    gated,
    ready,
    replica_set,
    rolling,
    sizes,
    with_image,
)
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import DEPLOYMENTS, REPLICASETS


async def up_down_and_to_none(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2))
    for replicas in (6, 3, 0, 1):
        await pair.agree(f"before {replicas}", complete())
        await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}})
    await pair.agree("scaled", complete())
    pair.same("steps", view.steps)


async def up_in_the_middle(pair: Pair) -> None:
    await _to_the_middle(pair)
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
    await pair.agree("scaled by proportion", sizes(11, 7))
    pair.same("steps", view.steps)
    await pair.open_gates(3, GOOD)
    await pair.agree("as many as there were", ready("Deployment", 11))
    for number, available, each in ((1, 12, (11, 7)), (2, 13, (11, 7)), (3, 13, (10, 8)), (4, 13, (9, 9))):
        await pair.open_gates(1, NEXT)
        await pair.agree(f"{number} through", _both(ready("Deployment", available), sizes(*each)))
    pair.same("steps", view.steps)


def _both(one: Callable[[Side], bool], other: Callable[[Side], bool]) -> Callable[[Side], bool]:
    return lambda side: one(side) and other(side)


async def down_in_the_middle(pair: Pair) -> None:
    await _to_the_middle(pair)
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
    # By proportion five and three; two old ones more than needed are then replaced.
    await pair.agree("scaled", sizes(3, 5))
    pair.same("steps", view.steps)


async def to_none_in_the_middle(pair: Pair) -> None:
    await _to_the_middle(pair)
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
    await pair.agree("none left", sizes(0, 0))
    pair.same("steps", view.steps)


async def _to_the_middle(pair: Pair) -> None:
    """Ten, three more, two less: eight old and five new ones."""
    await pair.create(DEPLOYMENTS, deployment(10, strategy=rolling(3, 2), template=gated()))
    await pair.agree("started", sizes(10))
    await pair.open_gates(10, GOOD)
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))
    await pair.agree("in the middle", sizes(8, 5))


async def replica_set_alone(pair: Pair) -> None:
    await pair.create(REPLICASETS, replica_set(3))
    for replicas in (5, 1, 0, 2):
        await pair.agree(f"before {replicas}", _settled)
        await pair.patch(REPLICASETS, "web", {"spec": {"replicas": replicas}})
    await pair.agree("scaled", lambda side: _settled(side) and ready("ReplicaSet", 2)(side))


def _settled(side: Side) -> bool:
    obj = side.one("ReplicaSet", "web")
    status, wanted = obj.get("status") or {}, obj["spec"].get("replicas", 0)
    return ready("ReplicaSet", wanted)(side) and status.get("replicas") == wanted == len(side.all("Pod"))


SCENARIOS = (up_down_and_to_none, up_in_the_middle, down_in_the_middle, to_none_in_the_middle, replica_set_alone)
