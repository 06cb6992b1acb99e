"""A node falls silent: it is tainted, its pods are no longer ready and leave after the time they tolerate; then it is back."""

from tests.harness.eventually import eventually
from tests.real.simulation import view
from tests.real.simulation.build import complete, deployment, template
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import DEPLOYMENTS, NODES

_UNREACHABLE = "node.kubernetes.io/unreachable"


async def node_is_lost_and_found(pair: Pair) -> None:
    await pair.add_node("first")
    only = pair.only()
    only["tolerations"] += [{"key": _UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]
    await pair.create(DEPLOYMENTS, deployment(2, template=template(**only)))
    await pair.agree("both on the first", complete())
    for side in pair.sides:
        await side.world.lose_node(f"{pair.namespace}-first")
    await pair.agree("replaced, and nowhere to go", _replaced)
    nodes = [await side.world.client.get(NODES, f"{pair.namespace}-first") for side in pair.sides]
    lost = [_node(one) for one in nodes]
    assert lost[0] == lost[1]
    assert "NoExecute " + _UNREACHABLE in lost[0]["taints"]
    await pair.add_node("second")
    await pair.agree(
        "both on the second", lambda side: view.conditions(side.one("Deployment", "web"))["Available"][0] == "T"
    )
    for side in pair.sides:
        await side.world.recover_node(f"{pair.namespace}-first")
    await pair.agree("the old ones are gone", complete())

    async def found() -> bool:
        nodes = [await side.world.client.get(NODES, f"{pair.namespace}-first") for side in pair.sides]
        back = [_node(one) for one in nodes]
        return back[0] == back[1] and back[0]["conditions"]["Ready"].startswith("True")

    await eventually(found, 60, "the node is back")


def _replaced(side: Side) -> bool:
    pods = side.all("Pod")
    leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    return len(leaving) == 2 and len(pods) == 4


def _node(obj: dict) -> dict:
    kept = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    return {
        "conditions": {key: value for key, value in view.conditions(obj).items() if key in kept},
        "taints": sorted(f"{one['effect']} {one['key']}" for one in obj["spec"].get("taints") or ()),
    }


SCENARIOS = (node_is_lost_and_found,)
