"""What fails, when and for how long: drawn from a seed before the storm begins, so that a seed repeats it."""

import random
from enum import StrEnum

import msgspec

__all__ = ["HELD", "LEADER", "PLANE", "STANDBY", "Fault", "Kind", "plan"]

PLANE, LEADER, STANDBY = "plane", "leader", "standby"


class Kind(StrEnum):
    #: SIGKILL of the process, of kube-apiserver alone for a cluster; started again afterwards.
    KILL = "killed"
    #: ... with its etcd.
    KILL_ALL = "killed with etcd"
    #: SIGSTOP, and SIGCONT afterwards.
    PAUSE = "paused"
    #: So long that somebody else leads by then.
    OUTSLEEP = "paused beyond the lease"
    #: Its connections are reset and new ones are refused.
    CUT = "cut off"
    #: Nothing gets through, and nobody is told; afterwards what was on its way arrives.
    SILENCE = "silenced"


#: Faults after which a request may arrive that was sent long before.
HELD = frozenset({Kind.PAUSE, Kind.OUTSLEEP, Kind.SILENCE})
_SECONDS = {
    Kind.KILL: (1.0, 10.0),
    Kind.KILL_ALL: (1.0, 10.0),
    Kind.PAUSE: (1.0, 12.0),
    Kind.OUTSLEEP: (20.0, 28.0),
    Kind.CUT: (1.0, 15.0),
    Kind.SILENCE: (3.0, 25.0),
}
_MEMBER = (Kind.KILL, Kind.KILL_ALL, Kind.PAUSE, Kind.CUT, Kind.SILENCE)
#: By ground.
_PLANE = {"b": (Kind.KILL, Kind.PAUSE), "c": (Kind.KILL, Kind.KILL_ALL, Kind.PAUSE)}
_LEADER = (Kind.KILL, Kind.PAUSE, Kind.OUTSLEEP, Kind.CUT, Kind.SILENCE)
_STANDBY = (Kind.KILL, Kind.PAUSE)
#: Seconds from the beginning until somebody else leads for certain: the lease, a look or two, and a busy machine.
_TAKEN_OVER = 23.0
#: Seconds between the beginnings of two faults.
_GAP = (1.0, 6.0)


class Fault(msgspec.Struct, frozen=True):
    #: Seconds after the storm's beginning.
    at: float
    target: str
    kind: Kind
    seconds: float


def plan(seed: int, ground: str, members: list[str], seconds: float) -> list[Fault]:
    """However short the storm, the control plane is hit in it, and on (c) a leader sleeps while another takes its lease."""
    chance = random.Random(seed)
    faults = [_fault(chance, 2.0, LEADER, (Kind.OUTSLEEP,))] if ground == "c" else []
    undisturbed = _TAKEN_OVER if ground == "c" else 0.0
    faults.append(_fault(chance, max(undisturbed, seconds * chance.uniform(0.3, 0.8)), PLANE, _PLANE[ground]))
    at = chance.uniform(1.0, 3.0)
    while at < seconds:
        target = _target(chance, ground, members) if at >= undisturbed else chance.choice(members)
        kinds = {PLANE: _PLANE[ground], LEADER: _LEADER, STANDBY: _STANDBY}.get(target, _MEMBER)
        faults.append(_fault(chance, at, target, kinds))
        at += chance.uniform(*_GAP)
    return sorted(faults, key=lambda fault: fault.at)


def _target(chance: random.Random, ground: str, members: list[str]) -> str:
    if chance.random() < 0.5:
        return chance.choice(members)
    return PLANE if ground == "b" else chance.choice((PLANE, LEADER, LEADER, LEADER, STANDBY))


def _fault(chance: random.Random, at: float, target: str, kinds: tuple[Kind, ...]) -> Fault:
    kind = chance.choice(kinds)
    return Fault(at, target, kind, chance.uniform(*_SECONDS[kind]))
