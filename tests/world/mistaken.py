"""Scripts of mistakes by seed: settled objects, then one mistake that would take most of them away, under faults, and undone.

Nobody else changes anything meanwhile. So members are to see no write at all.
"""

from random import Random
from typing import Any

from tests.world import steps
from tests.world.script import CONTROLLERS, MEMBERS, PLANE
from tests.world.steps import Script, Step

__all__ = ["FLEET", "MISTAKES", "mistaken"]

#: The label by which policies choose clusters, and its value.
FLEET = ("fleet", "one")
#: What `Mistake.what` may be.
MISTAKES = (
    "labels vanish",
    "another policy",
    "policy narrowed",
    "policy of nowhere",
    "profile missing",
    "cluster labels wiped",
    "taints in a loop",
    "sources pruned",
    "definitions deleted",
    "type config deleted",
    "clusters deleted",
)
_WORKLOADS, _MAPS = (4, 8), (2, 4)
#: Seconds from the beginning of a mistake until it is undone: within its settling, or long after.
_UNDONE = (1.0, 4.0, 20.0, 120.0)
_PAUSES = (0.0, 0.0, 0.05, 0.5)
#: One after the other they would be orders.
_AT_ONCE = frozenset({"taints in a loop", "sources pruned"})
#: A deletion goes on when no other was heard of for two seconds. So faults come when all of them were.
_SEEN = 2.0
#: Seconds from the first fault to the last.
_FAULTY = 60.0


def mistaken(seed: str) -> Script:
    chance = Random(f"{seed}/mistake")
    what = chance.choice(MISTAKES)
    by_label = what == "cluster labels wiped" or chance.random() < 0.2
    script: list[Step] = [steps.Label(at=0.0, cluster=name, value=FLEET[1]) for name in MEMBERS]
    script += [steps.Rule(at=0.0, policy=name, spec=_spec(name, by_label)) for name in ("even", "copies")]
    for number in range(chance.randint(*_WORKLOADS)):
        # Copies without replicas are none to speak of: each cluster is to have some.
        replicas, policy = chance.randint(3, 9), chance.choice(("even", "copies"))
        script.append(steps.Deploy(at=0.0, name=f"web-{number}", replicas=replicas, policy=policy))
    for number in range(chance.randint(*_MAPS)):
        script.append(steps.Configure(at=0.0, name=f"map-{number}", value="0", policy="copies"))
    pause = 0.0 if what in _AT_ONCE else chance.choice(_PAUSES)
    hit = tuple(sorted(chance.sample(MEMBERS, chance.choice((2, 2, 3)))))
    mistake = steps.Mistake(at=1.0, what=what, seconds=chance.choice(_UNDONE), pause=pause, clusters=hit)
    first = _SEEN if what == "sources pruned" else 1.0
    faults = [_fault(chance, first) for _ in range(chance.randint(0, 6))]
    return (*script, mistake, *sorted(faults, key=lambda step: step.at))


def _spec(policy: str, by_label: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingMode": "Duplicate" if policy == "copies" else "Divide"}
    if by_label:
        spec["clusterSelector"] = dict([FLEET])
        spec["reschedulePolicy"] = {"rescheduleWhen": {"clusterLabelsChanged": True}}
    return spec


def _fault(chance: Random, first: float) -> Step:
    """Of the controllers, the control plane, and the ways between them and to members. Members themselves run."""
    at, seconds = round(max(first, chance.uniform(0.5, _FAULTY)), 3), round(chance.uniform(0.1, 20.0), 3)
    place, server = chance.choice((PLANE, *CONTROLLERS, *CONTROLLERS)), chance.choice((PLANE, *MEMBERS))
    ends = [chance.choice(CONTROLLERS), server]
    chance.shuffle(ends)
    source, target = ends
    return chance.choice(
        (
            steps.Crash(at=at, place=place, seconds=seconds, silent=chance.random() < 0.25),
            steps.Crash(at=at, place=place, seconds=seconds),
            steps.Stop(at=at, place=place, seconds=seconds),
            steps.Cut(at=at, source=source, target=target, seconds=seconds),
            steps.Lose(at=at, source=source, target=target, share=0.3, seconds=seconds),
            steps.Slow(
                at=at, source=source, target=target, latency=round(chance.uniform(0.1, 3.0), 3), seconds=seconds
            ),
            steps.Refuse(at=at, client=chance.choice(CONTROLLERS), server=server, share=0.5, seconds=seconds),
            steps.Gap(at=at, server=server, seconds=seconds / 2),
        )
    )
