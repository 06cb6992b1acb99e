"""How full a fleet gets: unequal clusters, offered nearly all they hold by workloads with dynamic weights.

An in-process fleet in columns, without API servers; decisions are the real ones (`plan.scheduling.schedule` on
`fleet.snapshot`, less `fleet.reservations`). Members' figures lag: they show a decision only after a number of further
decisions. A cluster runs as much as it holds; what was placed beyond that waits. How pods fit on nodes is not looked at.

Filled twice: with dynamic weights as KubeAdmiral has them, and with policies that also say `limitReplicasToAvailable`. Only
the latter has bars: the weights alone give small shares to the largest clusters first and leave the smallest ones empty.
"""

import random
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from argosy.fleet.member import Member
from argosy.fleet.reservations import Copy, Reservations
from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.rules import NO_RULES, Rules
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import ResourceRequest, Unit
from bench.report import Report, parser

_APIS = frozenset({("apps", "v1", "Deployment")})
_MEMORY_PER_MILLI = 4 << 20
_SMALLEST, _LARGEST = 32, 2048
_REQUESTS = (100, 250, 500, 1000, 2000)


class Workload(NamedTuple):
    name: str
    replicas: int
    #: Thousandths of a core.
    request: int


WEIGHTS_ALONE = NO_RULES
BOUNDED = Rules(within_available=True)


class Ground:
    """Clusters that run what they are told, and tell of it late."""

    def __init__(self, cores: dict[str, int], rules: Rules, lag: int):
        self.allocatable = {name: number * 1000 for name, number in cores.items()}
        self.requested = dict.fromkeys(cores, 0)
        self.placed: dict[str, dict[str, int]] = {}
        #: Replicas that no cluster had room for, by what was known.
        self.short: dict[str, int] = {}
        self._rules = rules
        self._lag = lag
        self._reported = dict(self.requested)
        self._reservations: Reservations[str] = Reservations()
        #: Decided, and not in the figures yet: what each cluster was told before and after.
        self._unseen: deque[tuple[Workload, dict[str, int], dict[str, int]]] = deque()
        self._fleet = self._snapshot()

    def decide(self, workload: Workload) -> dict[str, int]:
        before = self.placed.get(workload.name, {})
        # As the control plane does: what is limited to available room is not given its own room twice.
        own = self._rules.within_available
        reserved = self._reservations.totals if own else self._reservations.without(workload.name)
        fleet = self._fleet.with_reserved(reserved)
        decision = schedule(self._unit(workload, before), fleet)
        after = {name: number or 0 for name, number in decision.placements.items()}
        self.placed[workload.name] = after
        self.short[workload.name] = decision.waiting
        for name in before.keys() | after.keys():
            self.requested[name] += (after.get(name, 0) - before.get(name, 0)) * workload.request
        request = {"cpu": workload.request, "memory": workload.request * _MEMORY_PER_MILLI}
        self._reservations.place(workload.name, request, after, lambda name: Copy(before.get(name, 0)))
        self._unseen.append((workload, before, after))
        if len(self._unseen) >= 2 * self._lag:
            self._report(self._lag)
        return after

    def settle(self) -> None:
        """All that was decided runs, and is known to."""
        self._report(len(self._unseen))

    def rates(self) -> dict[str, float]:
        return {name: min(self.requested[name], holds) / holds for name, holds in self.allocatable.items()}

    def rate(self) -> float:
        running = sum(min(self.requested[name], holds) for name, holds in self.allocatable.items())
        return running / sum(self.allocatable.values())

    def waiting(self) -> float:
        """What does not run for want of room, as a share of what all clusters hold."""
        beyond = sum(max(self.requested[name] - holds, 0) for name, holds in self.allocatable.items())
        return beyond / sum(self.allocatable.values())

    def _report(self, decisions: int) -> None:
        for _ in range(decisions):
            workload, before, after = self._unseen.popleft()
            for name in before.keys() | after.keys():
                self._reported[name] += (after.get(name, 0) - before.get(name, 0)) * workload.request
            self._reservations.observe_all(workload.name, lambda name, seen=after: Copy(seen.get(name, 0)))
        self._fleet = self._snapshot()

    def _unit(self, workload: Workload, current: dict[str, int]) -> Unit:
        return Unit(
            group="apps",
            version="v1",
            kind="Deployment",
            namespace="default",
            name=workload.name,
            mode="Divide",
            desired_replicas=workload.replicas,
            pod_request=ResourceRequest(workload.request, workload.request * _MEMORY_PER_MILLI),
            current={**current},
            avoid_disruption=True,
            rules=self._rules,
        )

    def _snapshot(self) -> Fleet:
        return Fleet.of_members(
            Member(
                name,
                joined=True,
                ready=True,
                terminating=False,
                labels={},
                taints=(),
                apis=_APIS,
                allocatable=_amounts(holds),
                available=_amounts(holds - self._reported[name]),
                labels_digest=0,
                taints_digest=0,
                apis_digest=0,
            )
            for name, holds in self.allocatable.items()
        )


def _amounts(milli: int) -> dict[str, int]:
    return {"cpu": milli, "memory": milli * _MEMORY_PER_MILLI}


def clusters(chance: random.Random, count: int) -> dict[str, int]:
    """Cores by name; as many small ones as large ones, on a scale of doublings."""
    return {f"c{at:03}": int(_SMALLEST * (_LARGEST / _SMALLEST) ** chance.random()) for at in range(count)}


def workloads(chance: random.Random, count: int, milli: int) -> list[Workload]:
    """So many that together ask for about so much; most are small."""
    shapes = [(100 ** chance.random(), chance.choice(_REQUESTS)) for _ in range(count)]
    factor = milli / sum(replicas * request for replicas, request in shapes)
    sizes = [(max(1, round(replicas * factor)), request) for replicas, request in shapes]
    excess = sum(replicas * request for replicas, request in sizes) - milli
    made = []
    for at, (replicas, request) in enumerate(sizes):
        fewer = min(replicas - 1, max(excess, 0) // request)
        excess -= fewer * request
        made.append(Workload(f"w{at:05}", replicas - fewer, request))
    chance.shuffle(made)
    return made


def scale(ground: Ground, chance: random.Random, some: list[Workload], most: float) -> tuple[int, int]:
    """Each up or down at random. How many replicas started and stopped, and how many of those without need: with scale-out
    nothing may stop anywhere, with scale-in nothing may start."""
    needed = needless = 0
    limit = most * sum(ground.allocatable.values())
    for workload in some:
        wanted = chance.randint(1, 2 * workload.replicas)
        if sum(ground.requested.values()) + (wanted - workload.replicas) * workload.request > limit:
            wanted = chance.randint(1, workload.replicas)
        before = ground.placed[workload.name]
        after = ground.decide(workload._replace(replicas=wanted))
        changes = [after.get(name, 0) - before.get(name, 0) for name in before.keys() | after.keys()]
        started, stopped = sum(c for c in changes if c > 0), -sum(c for c in changes if c < 0)
        needed += started + stopped
        needless += stopped if wanted >= workload.replicas else started
        needless += abs(wanted - sum(after.values()) - ground.short[workload.name])
    return needed, needless


def chart(grounds: dict[str, Ground], path: Path) -> None:
    """A picture of all clusters' rates, the smallest cluster first, one colour a run."""
    width, height, margin = 960, 360, 48
    colours = ("#c0504d", "#2c6fbb", "#4f9153")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    inner_width, inner_height = width - 2 * margin, height - 2 * margin
    for percent in (0, 25, 50, 75, 95, 100):
        y = height - margin - inner_height * percent / 100
        line = "#888" if percent == 95 else "#ddd"
        parts.append(f'<line x1="{margin}" x2="{width - margin}" y1="{y:.1f}" y2="{y:.1f}" stroke="{line}"/>')
        parts.append(f'<text x="{margin - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for number, (title, ground) in enumerate(grounds.items()):
        colour, rates = colours[number % len(colours)], ground.rates()
        by_size = sorted(rates, key=lambda name: (ground.allocatable[name], name))
        for at, name in enumerate(by_size):
            x = margin + inner_width * (at + 0.5) / len(by_size)
            y = height - margin - inner_height * rates[name]
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>')
        parts.append(f'<text x="{margin + 300 * number}" y="24" fill="{colour}">{title}</text>')
    axis = "clusters, from the smallest to the largest; requested of allocatable"
    parts.append(f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">{axis}</text></svg>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n")


def filled(cores: dict[str, int], offered: list[Workload], rules: Rules, lag: int) -> tuple[Ground, float]:
    """The ground after all workloads came, and decisions a second."""
    ground = Ground(cores, rules, lag)
    started = time.perf_counter()
    for workload in offered:
        ground.decide(workload)
    seconds = time.perf_counter() - started
    ground.settle()
    return ground, len(offered) / seconds


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--clusters", type=int, help="200 unless told otherwise")
    options.add_argument("--workloads", type=int, help="20,000 unless told otherwise")
    options.add_argument("--lag", type=int, default=64, help="decisions after which figures show a decision, at least")
    options.add_argument("--chart", metavar="FILE", default=".cache/waterlevel.svg", help="where the picture goes")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    count = arguments.clusters or (40 if arguments.quick else 200)
    many = arguments.workloads or (2000 if arguments.quick else 20_000)
    scaled = min(many // 20, 1000)
    chance = random.Random(arguments.seed)
    cores = clusters(chance, count)
    held = sum(cores.values()) * 1000
    offered = workloads(chance, many, int(0.98 * held))
    share = sum(each.replicas * each.request for each in offered) / held
    report = Report(
        "waterlevel",
        {"clusters": count, "workloads": many, "lag": arguments.lag, "cores": held // 1000, "seed": arguments.seed},
    )
    report.add("offered, of all allocatable", 100 * share, "%")
    report.add("replicas", sum(each.replicas for each in offered), "")

    alone, _ = filled(cores, offered, WEIGHTS_ALONE, arguments.lag)
    report.add("weights alone: deployment rate overall", 100 * alone.rate(), "%")
    report.add("weights alone: in the emptiest cluster", 100 * min(alone.rates().values()), "%")

    ground, speed = filled(cores, offered, BOUNDED, arguments.lag)
    report.add("deployment rate overall", 100 * ground.rate(), "%", bar=97)
    report.add("in the emptiest cluster", 100 * min(ground.rates().values()), "%", bar=95)
    report.add("waiting for room, of all allocatable", 100 * ground.waiting(), "%", "lower")
    report.add("decisions", speed, "per s")
    chart({"dynamic weights alone": alone, "with limitReplicasToAvailable": ground}, Path(arguments.chart))

    changed, needless = scale(ground, chance, chance.sample(offered, scaled), 0.98)
    ground.settle()
    report.add(f"replicas that started or stopped while {scaled} were scaled", changed, "")
    report.add("of these without need", needless, "", "lower", bar=0)
    report.add("deployment rate afterwards", 100 * ground.rate(), "%")
    report.finish(arguments)


if __name__ == "__main__":
    main()
