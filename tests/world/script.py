"""The script: what users do and what goes wrong, as a list of steps that follows from a seed and can be cut and replayed."""

from random import Random
from typing import Any

import msgspec

__all__ = ["Script", "Step", "dump", "load", "written"]

MEMBERS = ("m1", "m2", "m3")
CONTROLLERS = ("controllers-1", "controllers-2")
PLANE = "plane"
POLICIES = ("even", "weighted", "copies")
PAUSED = ("fleet", "cluster", "deployment")
#: Virtual seconds of users and faults, before the quiet that follows.
SHORTEST, LONGEST = 30.0, 150.0


class _At(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    #: Virtual seconds after the world has opened.
    at: float


# Users.


class Deploy(_At, frozen=True):
    name: str
    replicas: int
    policy: str


class Configure(_At, frozen=True):
    """Create or change a ConfigMap."""

    name: str
    value: str
    policy: str


class Scale(_At, frozen=True):
    name: str
    replicas: int


class Roll(_At, frozen=True):
    name: str
    image: str


class Delete(_At, frozen=True):
    kind: str
    name: str


class Follow(_At, frozen=True):
    """Name another policy."""

    name: str
    policy: str


class Rule(_At, frozen=True):
    """Create or change a policy; without a spec it is deleted."""

    policy: str
    spec: dict[str, Any] | None


class Taint(_At, frozen=True):
    """Without an effect the taint is taken away."""

    cluster: str
    effect: str


class Tamper(_At, frozen=True):
    """Somebody changes a copy in a member: to this many replicas, or deletes it."""

    member: str
    name: str
    replicas: int | None


class Replace(_At, frozen=True):
    """Somebody puts a Deployment of his own in a copy's place, and takes it away again."""

    member: str
    name: str
    seconds: float


class Pause(_At, frozen=True):
    """The fleet, a cluster or a Deployment is paused, and resumed."""

    what: str
    name: str
    seconds: float


# Faults. Those with seconds end by themselves.


class Crash(_At, frozen=True):
    place: str
    seconds: float


class Stop(_At, frozen=True):
    place: str
    seconds: float


class Cut(_At, frozen=True):
    """Nothing arrives, in one direction."""

    source: str
    target: str
    seconds: float


class Lose(_At, frozen=True):
    """Some requests, answers and streams are lost, with their connections."""

    source: str
    target: str
    share: float
    seconds: float


class Refuse(_At, frozen=True):
    """Some requests are answered with 429 or 503."""

    client: str
    server: str
    share: float
    seconds: float


class Slow(_At, frozen=True):
    source: str
    target: str
    latency: float
    seconds: float


class Impostor(_At, frozen=True):
    """Something that is no API server answers in its place: 404 to everything."""

    server: str
    seconds: float


class Forget(_At, frozen=True):
    """A server compacts its history: watches that resume get 410."""

    server: str


class SetClock(_At, frozen=True):
    place: str
    seconds: float


class FillDisk(_At, frozen=True):
    seconds: float


Step = (
    Deploy
    | Configure
    | Scale
    | Roll
    | Delete
    | Follow
    | Rule
    | Taint
    | Tamper
    | Replace
    | Pause
    | Crash
    | Stop
    | Cut
    | Lose
    | Refuse
    | Slow
    | Impostor
    | Forget
    | SetClock
    | FillDisk
)
Script = tuple[Step, ...]


def dump(script: Script) -> str:
    """One line for each step."""
    return "\n".join(msgspec.json.encode(step).decode() for step in script)


def load(text: str) -> Script:
    decoder = msgspec.json.Decoder(Step)
    return tuple(decoder.decode(line) for line in text.splitlines() if line.strip())


def written(seed: str, *, workloads: int = 6, pause: float = 4.0) -> Script:
    """The script of a seed: a step every `pause` seconds, more or less, on so many workloads."""
    chance = Random(f"{seed}/script")
    names = [f"web-{number}" for number in range(workloads)]
    maps = [f"map-{number}" for number in range(max(1, workloads // 3))]
    steps: list[Step] = [Rule(at=0.0, policy=policy, spec=_spec(chance, policy)) for policy in POLICIES]
    steps += [
        Deploy(at=0.0, name=name, replicas=chance.randint(0, 9), policy=chance.choice(POLICIES)) for name in names
    ]
    steps += [Configure(at=0.0, name=name, value="0", policy=chance.choice(POLICIES)) for name in maps]
    end, now = chance.uniform(SHORTEST, LONGEST), 1.0
    while (now := now + chance.expovariate(1 / pause)) < end:
        steps.append(_step(chance, round(now, 3), names, maps))
    return tuple(steps)


def _spec(chance: Random, policy: str) -> dict[str, Any]:
    if policy == "copies":
        return {"schedulingMode": "Duplicate", **({"maxClusters": 2} if chance.random() < 0.3 else {})}
    spec: dict[str, Any] = {"schedulingMode": "Divide"}
    if policy == "weighted":
        chosen = chance.sample(MEMBERS, chance.randint(1, 3))
        weights = [{"cluster": name, "preferences": {"weight": chance.randint(1, 5)}} for name in sorted(chosen)]
        spec["placement"] = weights
    if chance.random() < 0.5:
        spec["reschedulePolicy"] = {"replicaRescheduling": {"avoidDisruption": chance.random() < 0.5}}
    return spec


def _step(chance: Random, at: float, names: list[str], maps: list[str]) -> Step:
    name, seconds = chance.choice(names), round(chance.uniform(0.1, 40.0), 3)
    source, target = chance.choice(_ways(chance))
    place = chance.choice((PLANE, *MEMBERS, *CONTROLLERS, *CONTROLLERS))
    steps: list[tuple[float, Step]] = [
        (4, Scale(at=at, name=name, replicas=chance.randint(0, 12))),
        (2, Roll(at=at, name=name, image=f"nginx:{chance.randint(1, 99)}")),
        (2, Deploy(at=at, name=name, replicas=chance.randint(0, 9), policy=chance.choice(POLICIES))),
        (2, Delete(at=at, kind="Deployment", name=name)),
        (1, Configure(at=at, name=chance.choice(maps), value=str(at), policy=chance.choice(POLICIES))),
        (1, Delete(at=at, kind="ConfigMap", name=chance.choice(maps))),
        (1, Follow(at=at, name=name, policy=chance.choice(POLICIES))),
        (2, _rule(chance, at)),
        (1, Taint(at=at, cluster=chance.choice(MEMBERS), effect=chance.choice(("", "NoSchedule", "NoExecute")))),
        (1, Tamper(at=at, member=chance.choice(MEMBERS), name=name, replicas=chance.choice((None, 0, 7)))),
        (1, Replace(at=at, member=chance.choice(MEMBERS), name=name, seconds=seconds)),
        (1, Pause(at=at, what=(what := chance.choice(PAUSED)), name=_paused(chance, what, name), seconds=seconds)),
        (3, Crash(at=at, place=place, seconds=seconds)),
        (2, Stop(at=at, place=place, seconds=seconds)),
        (2, Cut(at=at, source=source, target=target, seconds=seconds)),
        (2, Lose(at=at, source=source, target=target, share=chance.choice((0.05, 0.3)), seconds=seconds)),
        (1, Refuse(at=at, client=source, server=target, share=chance.choice((0.1, 0.5)), seconds=seconds)),
        (1, Slow(at=at, source=source, target=target, latency=round(chance.uniform(0.1, 5.0), 3), seconds=seconds)),
        (1, Impostor(at=at, server=chance.choice(MEMBERS), seconds=seconds)),
        (1, Forget(at=at, server=chance.choice((PLANE, *MEMBERS)))),
        (1, SetClock(at=at, place=place, seconds=round(chance.uniform(-120, 120), 3))),
        (1, FillDisk(at=at, seconds=seconds)),
    ]
    return chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]


def _paused(chance: Random, what: str, name: str) -> str:
    return {"fleet": "", "cluster": chance.choice(MEMBERS), "deployment": name}[what]


def _rule(chance: Random, at: float) -> Rule:
    policy = chance.choice(POLICIES)
    return Rule(at=at, policy=policy, spec=None if chance.random() < 0.15 else _spec(chance, policy))


def _ways(chance: Random) -> list[tuple[str, str]]:
    """Between controllers and servers, there or back."""
    ways = [(client, server) for client in CONTROLLERS for server in (PLANE, *MEMBERS)]
    return ways if chance.random() < 0.5 else [(server, client) for client, server in ways]
