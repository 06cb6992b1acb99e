"""Pods that fit nowhere say so, and start once there is room."""

from collections.abc import Callable

from tests.real.simulation import view
from tests.real.simulation.build import complete, deployment, template
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import DEPLOYMENTS

_REFUSED = "False Unschedulable"


def _refused(count: int) -> Callable[[Side], bool]:
    def holds(side: Side) -> bool:
        return sum(view.conditions(pod).get("PodScheduled") == _REFUSED for pod in side.all("Pod")) == count

    return holds


async def too_big_until_a_node_comes(pair: Pair) -> None:
    pod = template(cpu="5", **pair.only())
    await pair.create(DEPLOYMENTS, deployment(2, template=pod))
    await pair.agree("no node for either", _refused(2))
    await pair.add_node("first")
    await pair.agree("room for one", _refused(1))
    await pair.add_node("second")
    await pair.agree("room for both", complete())


async def full_until_another_goes(pair: Pair) -> None:
    await pair.add_node("first")
    await pair.create(DEPLOYMENTS, deployment(1, "large", template=template(cpu="6", **pair.only())))
    await pair.agree("full", complete("large"))
    await pair.create(DEPLOYMENTS, deployment(2, "small", template=template(cpu="3", **pair.only())))
    await pair.agree("no room", _refused(2))
    await pair.delete(DEPLOYMENTS, "large", "Background")
    await pair.agree("room", complete("small"))


async def no_node_is_selected(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(1, template=template(nodeSelector={"disk": "none-has-this"})))
    await pair.agree("no such node", _refused(1))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    await pair.agree("any will do", complete())


async def taints_keep_away(pair: Pair) -> None:
    await pair.add_node("first")
    await pair.create(DEPLOYMENTS, deployment(1, template=template(nodeSelector={"only": pair.namespace})))
    await pair.agree("kept away", _refused(1))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": pair.only()}}})
    await pair.agree("tolerated", complete())


async def scaled_down_while_pending(pair: Pair) -> None:
    await pair.add_node("first")
    await pair.create(DEPLOYMENTS, deployment(4, template=template(cpu="3", **pair.only())))
    await pair.agree("two run, two wait", _refused(2))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
    await pair.agree("those that wait go first", complete())


SCENARIOS = (
    too_big_until_a_node_comes,
    full_until_another_goes,
    no_node_is_selected,
    taints_keep_away,
    scaled_down_while_pending,
)
