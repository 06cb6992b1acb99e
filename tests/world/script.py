"""Scripts by seed. Each seed favours other steps and other names: what rarely meets by chance meets where little else happens."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec

from tests.world import steps
from tests.world.steps import Script, Step

__all__ = ["Layout", "laid_out", "namespace_of", "written"]

MEMBERS = ("m1", "m2", "m3")
CONTROLLERS = ("controllers-1", "controllers-2")
PLANE = "plane"
#: Whose buckets are of different shards.
NAMESPACES = ("default", "shop")
POLICIES = ("even", "weighted", "copies")
#: For workloads that request CPU: room is never exceeded, or found by trying.
LIMITED = ("within", "within", "moving")
PAUSED = ("fleet", "cluster", "deployment")
#: Virtual seconds of users and faults, before the quiet that follows.
SHORTEST, LONGEST = 30.0, 150.0
#: Of a step that comes together with the one before it: one of these by seed, and within so many seconds.
_TOGETHER, _MOMENT = (0.2, 0.35, 0.7), 0.4
#: Of workloads that need a ConfigMap, one of these by seed.
_NEEDY = (0.0, 0.3, 0.7)
#: Of a removal where another cluster has begun to answer: what it does not have is not gone.
_REMOVED = 0.6
#: Of seeds with overrides.
_DIFFERING = 1 / 3
#: The override policy's name.
DIFFERING = "differing"
#: What overrides are: another registry, or a field that is not there.
MIRROR = "mirror.local"
MIRRORED = {"image": [{"operations": [{"imageComponent": "Registry", "value": MIRROR}]}]}
WRONG = {"jsonpatch": [{"operator": "remove", "path": "/spec/nothing"}]}
#: Of seeds with policies that select, and their names. Both select the same in half of the cases.
_SELECTED = 1 / 3
SELECTING = ("selecting", "selecting-too")
#: How much more or less often than usual a seed has a kind of step.
_FAVOUR = (0.0, 0.0, 0.5, 1.0, 4.0)


class Layout(msgspec.Struct, frozen=True):
    """How the control plane is run. It is the seed's, also where a script is cut."""

    #: One controllers process of two leads, or each has its shard.
    shards: int = 1
    #: CPUs of each of a member's three nodes.
    cpu: int = 4


def laid_out(seed: str) -> Layout:
    chance = Random(f"{seed}/layout")
    return Layout(2 if chance.random() < 0.25 else 1, chance.choice((2, 4)))


def namespace_of(name: str) -> str:
    """Of a workload or a ConfigMap: half of them each."""
    return NAMESPACES[int(name.rpartition("-")[2]) % len(NAMESPACES)]


def written(seed: str, *, workloads: int = 6, pause: float = 4.0, seconds: float | None = None) -> Script:
    """The script of a seed: a step every `pause` seconds, more or less, on so many workloads."""
    chance = Random(f"{seed}/script")
    end = seconds if seconds is not None else chance.uniform(SHORTEST, LONGEST)
    script = _with_needs(_Author(chance, workloads).script(end, pause), Random(f"{seed}/needs"), end)
    others = [*_overrides(seed, workloads, end), *_selected(seed, end)]
    return tuple(sorted([*script, *others], key=lambda step: step.at))


def _selected(seed: str, end: float) -> Iterator[Step]:
    """Of one seed in three: Deployments without a label, and policies that select them, select others, or are deleted."""
    chance = Random(f"{seed}/selected")
    if chance.random() >= _SELECTED:
        return
    names = [f"sel-{number}" for number in range(chance.randint(1, 3))]

    def later() -> float:
        return round(chance.uniform(1.0, end), 3)

    for name in names:
        at = chance.choice((0.0, later()))
        yield steps.Deploy(at=at, name=name, replicas=chance.randint(0, 6), policy="")
        yield steps.Scale(at=later(), name=name, replicas=chance.randint(0, 9))
        if chance.random() < 0.3:
            yield steps.Release(at=later(), name=name, released=True)
            if chance.random() < 0.5:
                yield steps.Release(at=later(), name=name, released=False)
        if chance.random() < 0.3:
            yield steps.Delete(at=later(), kind="Deployment", name=name)
            yield steps.Deploy(at=later(), name=name, replicas=chance.randint(0, 6), policy="")
    yield steps.Rule(at=0.0, policy=SELECTING[0], spec=_selecting(chance, names))
    for _ in range(chance.randint(1, 6)):
        spec = None if chance.random() < 0.15 else _selecting(chance, names)
        yield steps.Rule(at=later(), policy=chance.choice(SELECTING), spec=spec)


def _selecting(chance: Random, names: list[str]) -> dict[str, Any]:
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    named = [{**kind, "name": name} for name in names if chance.random() < 0.5]
    spec: dict[str, Any] = {
        "schedulingMode": chance.choice(("Duplicate", "Divide")),
        "resourceSelectors": chance.choice(([kind], [kind], named, named)),
        "priority": chance.choice((0, 0, 1)),
    }
    if chance.random() < 0.3:
        spec["placement"] = [{"cluster": name} for name in sorted(chance.sample(MEMBERS, 2))]
    return spec


def _overrides(seed: str, workloads: int, end: float) -> Iterator[Step]:
    """Of one seed in three: objects that are to differ in a cluster, rightly or by a rule that cannot be applied."""
    chance = Random(f"{seed}/overrides")
    if chance.random() >= _DIFFERING:
        return
    names = [f"web-{number}" for number in range(workloads - workloads // 2)]
    for number in range(chance.randint(2, 5)):
        at = 0.0 if number == 0 else round(chance.uniform(1.0, end), 3)
        cluster = chance.choice(MEMBERS)
        rules = chance.choice((MIRRORED, MIRRORED, WRONG, WRONG, None))
        yield steps.Override(at=at, rules=None if rules is None and number else overriding(cluster, rules or MIRRORED))
    for name in names:
        if chance.random() < 0.7:
            yield steps.Differ(at=round(chance.uniform(1.0, end), 3), name=name, differs=True)
        if chance.random() < 0.3:
            yield steps.Differ(at=round(chance.uniform(1.0, end), 3), name=name, differs=False)


def overriding(cluster: str, overriders: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"targetClusters": {"clusters": [cluster]}, "overriders": overriders}]


def _with_needs(script: list[Step], chance: Random, end: float) -> list[Step]:
    """Some workloads need the one ConfigMap of their namespace, which is there before or after them, and changes."""
    share = chance.choice(_NEEDY)
    needy = [
        msgspec.structs.replace(step, needs=_need_of(step.name))
        if isinstance(step, steps.Deploy) and chance.random() < share
        else step
        for step in script
    ]
    names = sorted({step.needs for step in needy if isinstance(step, steps.Deploy) and step.needs})
    provided = [
        steps.Provide(at=round(at, 3), name=name, value=str(number))
        for name in names
        for number, at in enumerate((chance.choice((0.0, chance.uniform(0.0, end))), chance.uniform(0.0, end)))
    ]
    return [*needy, *provided]


def _need_of(name: str) -> str:
    return f"need-{int(name.rpartition('-')[2]) % len(NAMESPACES)}"


class _Author:
    def __init__(self, chance: Random, workloads: int):
        self._chance = chance
        limited = workloads // 2
        self._free = [f"web-{number}" for number in range(workloads - limited)]
        self._limited = [f"fit-{number}" for number in range(limited)]
        self._maps = [f"map-{number}" for number in range(max(1, workloads // 3))]
        self._leaves = chance.random() < 0.5
        self._together = chance.choice(_TOGETHER)
        self._favour = {make: weight * chance.choice(_FAVOUR) for make, weight in self._kinds().items()}
        #: What the last step was about: one that comes together with it is about the same, where it can.
        self._name = chance.choice(self._names)
        self._member = chance.choice(MEMBERS)

    @property
    def _names(self) -> list[str]:
        return self._free + self._limited

    def script(self, end: float, pause: float) -> list[Step]:
        chance = self._chance
        script: list[Step] = [
            steps.Rule(at=0.0, policy=each, spec=self._spec(each)) for each in (*POLICIES, *sorted({*LIMITED}))
        ]
        # Half of them from the beginning, the others when everything is under way.
        later = chance.sample(self._names, len(self._names) // 2)
        script += [self._deploy(0.0, name) for name in self._names if name not in later]
        script += [self._configure(0.0, name) for name in self._maps]
        now = 1.0
        while True:
            if chance.random() < self._together:
                now += chance.uniform(0.0, _MOMENT)
            else:
                now += chance.expovariate((1 - self._together) / pause)
                self._name, self._member = chance.choice(self._names), chance.choice(MEMBERS)
            if now >= end:
                return script
            if self._name in later:
                later.remove(self._name)
                script.append(self._deploy(round(now, 3), self._name))
                continue
            script.append(self._next(round(now, 3), script[-1]))

    def _next(self, at: float, last: Step) -> Step:
        chance = self._chance
        if isinstance(last, steps.Impostor) and at - last.at < _MOMENT and chance.random() < _REMOVED:
            return chance.choice(self._removals)(at)
        kinds = list(self._favour)
        return chance.choices(kinds, [self._favour[kind] or 0.02 for kind in kinds])[0](at)

    @property
    def _removals(self) -> list[Callable[[float], Step]]:
        return [
            lambda at: steps.Delete(at=at, kind="Deployment", name=self._name),
            lambda at: steps.Taint(at=at, cluster=self._member, effect="NoExecute"),
        ]

    def _kinds(self) -> dict[Callable[[float], Step], float]:
        chance = self._chance
        return {
            lambda at: steps.Scale(at=at, name=self._name, replicas=chance.randint(0, 12)): 4,
            lambda at: steps.Roll(at=at, name=self._name, image=f"nginx:{chance.randint(1, 99)}"): 2,
            lambda at: self._deploy(at, self._name): 2,
            lambda at: steps.Delete(at=at, kind="Deployment", name=self._name): 2,
            lambda at: self._configure(at, chance.choice(self._maps)): 1,
            lambda at: steps.Delete(at=at, kind="ConfigMap", name=chance.choice(self._maps)): 1,
            lambda at: steps.Follow(at=at, name=self._name, policy=self._policy(self._name)): 2,
            self._rule: 2,
            lambda at: steps.Taint(
                at=at, cluster=self._member, effect=chance.choice(("", "NoSchedule", "NoExecute"))
            ): 1,
            lambda at: steps.Tamper(
                at=at, member=self._member, name=self._name, replicas=chance.choice((None, None, 0, 7))
            ): 1,
            lambda at: steps.Replace(at=at, member=self._member, name=self._name, seconds=self._seconds()): 1,
            self._pause: 1,
            self._leave_or_restore: 0.6,
            lambda at: steps.Crash(
                at=at, place=self._place(), seconds=self._seconds(), silent=chance.random() < 0.25
            ): 3,
            lambda at: steps.Stop(at=at, place=self._place(), seconds=self._seconds()): 2,
            lambda at: steps.Suspend(at=at, place=chance.choice(CONTROLLERS), seconds=self._seconds()): 1,
            lambda at: steps.Cut(at=at, **self._way(), seconds=self._seconds()): 2,
            lambda at: steps.Lose(at=at, **self._way(), share=chance.choice((0.05, 0.3)), seconds=self._seconds()): 2,
            self._refuse: 1,
            lambda at: steps.Slow(
                at=at, **self._way(), latency=round(chance.uniform(0.1, 5.0), 3), seconds=self._seconds()
            ): 1.5,
            lambda at: steps.Impostor(at=at, server=self._member, seconds=self._seconds()): 1,
            lambda at: steps.Gap(at=at, server=self._server(), seconds=self._seconds() / 2): 1.5,
            lambda at: steps.SetClock(at=at, place=self._place(), seconds=round(chance.uniform(-60, 60), 3)): 1,
            lambda at: steps.FillDisk(at=at, seconds=self._seconds()): 0.5,
        }

    # Users.

    def _policy(self, name: str) -> str:
        return self._chance.choice(LIMITED if name in self._limited else POLICIES)

    def _deploy(self, at: float, name: str) -> steps.Deploy:
        cpu = "1" if name in self._limited else ""
        return steps.Deploy(at=at, name=name, replicas=self._chance.randint(0, 9), policy=self._policy(name), cpu=cpu)

    def _configure(self, at: float, name: str) -> steps.Configure:
        return steps.Configure(at=at, name=name, value=str(at), policy=self._chance.choice(POLICIES))

    def _rule(self, at: float) -> steps.Rule:
        policy = self._chance.choice((*POLICIES, *LIMITED))
        return steps.Rule(at=at, policy=policy, spec=None if self._chance.random() < 0.15 else self._spec(policy))

    def _spec(self, policy: str) -> dict[str, Any]:
        chance = self._chance
        if policy == "copies":
            return {"schedulingMode": "Duplicate", **({"maxClusters": 2} if chance.random() < 0.3 else {})}
        spec: dict[str, Any] = {"schedulingMode": "Divide"}
        if policy == "weighted":
            chosen = chance.sample(MEMBERS, chance.randint(1, 3))
            spec["placement"] = [
                {"cluster": name, "preferences": {"weight": chance.randint(1, 5)}} for name in sorted(chosen)
            ]
        if policy == "within":
            spec["limitReplicasToAvailable"] = True
        if policy == "moving":
            when = {"podUnschedulableFor": chance.choice(("5s", "30s"))}
            spec["autoMigration"] = {"when": when, "keepUnschedulableReplicas": chance.random() < 0.3}
        if chance.random() < 0.5:
            spec["reschedulePolicy"] = {
                "replicaRescheduling": {"avoidDisruption": chance.random() < 0.5},
                **({"rescheduleWhen": {"policyContentChanged": True}} if chance.random() < 0.7 else {}),
            }
        if chance.random() < 0.05:  # mistakes
            spec.update(chance.choice(({"clusterSelector": {"no": "such"}}, {"schedulingProfile": "missing"})))
        return spec

    def _pause(self, at: float) -> steps.Pause:
        what = self._chance.choice(PAUSED)
        name = {"fleet": "", "cluster": self._member, "deployment": self._name}[what]
        return steps.Pause(at=at, what=what, name=name, seconds=self._seconds())

    # Faults.

    def _leave_or_restore(self, at: float) -> Step:
        """A backup of a member that has left since brings back a membership that is over."""
        if self._leaves:
            return steps.Leave(at=at, cluster=self._member, seconds=self._seconds())
        return steps.Restore(at=at, server=self._member, age=self._seconds())

    def _seconds(self) -> float:
        return round(self._chance.uniform(0.1, 40.0), 3)

    def _server(self) -> str:
        return self._chance.choice((PLANE, self._member))

    def _place(self) -> str:
        return self._chance.choice((PLANE, self._member, *CONTROLLERS, *CONTROLLERS))

    def _refuse(self, at: float) -> steps.Refuse:
        client, server = self._chance.choice(CONTROLLERS), self._server()
        return steps.Refuse(
            at=at, client=client, server=server, share=self._chance.choice((0.1, 0.5)), seconds=self._seconds()
        )

    def _way(self) -> dict[str, str]:
        """Between controllers and a server, there or back."""
        ends = [self._chance.choice(CONTROLLERS), self._server()]
        self._chance.shuffle(ends)
        return {"source": ends[0], "target": ends[1]}
