"""DaemonSets have a pod on every node they may use, and replace them node by node."""

from tests.real.simulation.build import NEXT, daemon_set, ready, template, with_image
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import DAEMONSETS, NODES


async def on_every_node(pair: Pair) -> None:
    await pair.create(DAEMONSETS, daemon_set())
    await pair.agree("everywhere", ready("DaemonSet", 3, "numberAvailable"))
    await pair.patch(DAEMONSETS, "web", with_image(NEXT))
    await pair.agree(
        "replaced", lambda side: ready("DaemonSet", 3, "numberAvailable")(side) and _images(side) == {NEXT}
    )


async def nodes_come_and_go(pair: Pair) -> None:
    await pair.create(DAEMONSETS, daemon_set(template=template(**pair.only())))
    await pair.agree("no node yet", ready("DaemonSet", 0, "desiredNumberScheduled"))
    await pair.add_node("first")
    await pair.agree("one", ready("DaemonSet", 1, "numberAvailable"))
    await pair.add_node("second")
    await pair.agree("two", ready("DaemonSet", 2, "numberAvailable"))
    for side in pair.sides:
        await side.world.client.patch(NODES, f"{pair.namespace}-first", {"metadata": {"labels": {"only": None}}})
    await pair.agree(
        "one again", lambda side: ready("DaemonSet", 1, "numberAvailable")(side) and len(side.all("Pod")) == 1
    )


def _images(side: Side) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in side.all("Pod")}


SCENARIOS = (on_every_node, nodes_come_and_go)
