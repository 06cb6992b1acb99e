"""ReplicaSets adopt pods that match, let go of those that no longer do, and stop what is too much."""

from tests.real.simulation.build import ready, replica_set, template
from tests.real.simulation.pair import Pair
from tests.real.simulation.record import PODS, REPLICASETS, Object


def _pod(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, **_spec()}


def _spec() -> Object:
    return {"spec": template()["spec"]}


async def adopts_what_is_there(pair: Pair) -> None:
    await pair.create(PODS, _pod("alone"))
    await pair.agree("runs", lambda side: (side.one("Pod", "alone")["status"]).get("phase") == "Running")
    await pair.create(REPLICASETS, replica_set(2))
    await pair.agree("adopted, and one more", lambda side: ready("ReplicaSet", 2)(side) and len(side.all("Pod")) == 2)


async def stops_what_is_too_much(pair: Pair) -> None:
    await pair.create(REPLICASETS, replica_set(1))
    await pair.agree("there", ready("ReplicaSet", 1))
    await pair.create(PODS, _pod("alone"))
    await pair.agree("the newcomer goes", lambda side: ready("ReplicaSet", 1)(side) and len(side.all("Pod")) == 1)


async def lets_go(pair: Pair) -> None:
    await pair.create(REPLICASETS, replica_set(2))
    await pair.agree("there", ready("ReplicaSet", 2))
    for side in pair.sides:
        name = min(pod["metadata"]["name"] for pod in side.all("Pod"))
        await side.world.client.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}}, pair.namespace)
    await pair.agree("replaced, and free", lambda side: ready("ReplicaSet", 2)(side) and len(side.all("Pod")) == 3)


SCENARIOS = (adopts_what_is_there, stops_what_is_too_much, lets_go)
