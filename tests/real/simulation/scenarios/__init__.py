"""The scenarios, each an async function of a pair, by name."""

from collections.abc import Awaitable, Callable

from tests.real.simulation.pair import Pair
from tests.real.simulation.scenarios import (
    claims,
    daemons,
    deletion,
    jobs,
    nodes,
    owners,
    rollout,
    scale,
    scheduling,
    stateful,
    upkeep,
)

Scenario = Callable[[Pair], Awaitable[None]]

#: Those that wait longest first, as all of them run side by side.
MODULES = (nodes, upkeep, jobs, rollout, scheduling, deletion, scale, stateful, claims, daemons, owners)
SCENARIOS: dict[str, Scenario] = {
    scenario.__name__.replace("_", "-"): scenario for module in MODULES for scenario in module.SCENARIOS
}
