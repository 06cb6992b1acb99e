"""The steps of a script: what users do, and what goes wrong. A script is a list of them, to be stored, cut and replayed."""

from typing import Any

import msgspec

__all__ = ["Script", "Step", "dump", "load"]


class _At(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    #: Virtual seconds after the world has opened.
    at: float


# Users.


class Deploy(_At, frozen=True):
    name: str
    replicas: int
    policy: str
    #: What each pod requests.
    cpu: str = ""
    #: The ConfigMap that its pods need.
    needs: str = ""


class Configure(_At, frozen=True):
    """Create or change a ConfigMap."""

    name: str
    value: str
    policy: str


class Provide(_At, frozen=True):
    """Create or change a ConfigMap that names no policy: it goes where it is needed."""

    name: str
    value: str


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


class Release(_At, frozen=True):
    """A Deployment is not to be selected, or may be again."""

    name: str
    released: bool


class Rule(_At, frozen=True):
    """Create or change a policy; without a spec it is deleted."""

    policy: str
    spec: dict[str, Any] | None


class Override(_At, frozen=True):
    """Create or change the override policy; without rules it is deleted."""

    rules: list[dict[str, Any]] | None


class Differ(_At, frozen=True):
    """A Deployment names the override policy, or names it no more."""

    name: str
    differs: bool


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


class Leave(_At, frozen=True):
    """A cluster leaves, and joins again."""

    cluster: str
    seconds: float


class Label(_At, frozen=True):
    """Set a cluster's label; without a value it is taken away."""

    cluster: str
    value: str | None


class Mistake(_At, frozen=True):
    """Something that would take many copies away. It is undone after so many seconds; until then nobody else changes anything.

    With `pause` what it consists of comes one after the other.
    """

    what: str
    seconds: float
    pause: float = 0.0
    #: Whom it hits, where it is about clusters. If that is not all, copies could move.
    clusters: tuple[str, ...] = ()


# Faults. Those with seconds end by themselves.


class Crash(_At, frozen=True):
    """With `silent` the whole machine is gone: who has a connection to it is not told."""

    place: str
    seconds: float
    silent: bool = False


class Restore(_At, frozen=True):
    """A member's store is copied, and put back so many seconds later. Its versions go on, as etcd's do with --bump-revision."""

    server: str
    age: float


class Suspend(_At, frozen=True):
    """The whole machine sleeps: nothing runs, and of its clocks only `elapsed` and the time of day go on."""

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
    """Some requests are answered with 429, 500 or 503."""

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


class Gap(_At, frozen=True):
    """A server's watches tell nothing for a while and then end. It has compacted its history: who resumes gets 410."""

    server: str
    seconds: float


class SetClock(_At, frozen=True):
    place: str
    seconds: float


class FillDisk(_At, frozen=True):
    seconds: float


Step = (
    Deploy
    | Configure
    | Provide
    | Scale
    | Roll
    | Delete
    | Follow
    | Release
    | Rule
    | Override
    | Differ
    | Taint
    | Tamper
    | Replace
    | Pause
    | Leave
    | Label
    | Mistake
    | Crash
    | Restore
    | Stop
    | Suspend
    | Cut
    | Lose
    | Refuse
    | Slow
    | Impostor
    | Gap
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
