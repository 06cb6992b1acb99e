"""Status rules: how the status of a kind is merged, and when a copy is finished, as data. In type configs, and in Argosy's rules.

Paths are dotted. Those of `merge` begin at the status, the others at the object.
"""

import msgspec

__all__ = ["Count", "HealthRules", "MergeRules", "Phase", "Reached", "StateOfCondition", "StatusRules"]


class Phase(msgspec.Struct, frozen=True, rename="camel"):
    """A text of which the worst of all members' counts: the first in `order`. `with_` come from the same member."""

    field: str
    order: tuple[str, ...]
    with_: tuple[str, ...] = msgspec.field(default=(), name="with")


class MergeRules(msgspec.Struct, frozen=True, rename="camel"):
    """Fields that are not named are merged as those of any kind (docs/kinds.md)."""

    sums: tuple[str, ...] = ()
    #: Of numbers and of times.
    highest: tuple[str, ...] = ()
    lowest: tuple[str, ...] = ()
    #: True if it is in any member.
    any_true: tuple[str, ...] = ()
    worst: tuple[Phase, ...] = ()
    #: The names of the revision that ran before, and of the newest.
    revisions: tuple[str, ...] = ()
    #: What only a member can make sense of.
    omitted: tuple[str, ...] = ()
    #: Whether it has conditions, of the shape that most kinds have.
    conditions: bool = True
    #: Types of conditions that are bad news if they are true, besides the usual ones.
    bad_news: tuple[str, ...] = ()


class Count(msgspec.Struct, frozen=True, rename="camel"):
    """A number of replicas that is to be reached, or with `surplus` not to be exceeded: the first number there is at `of`."""

    path: str
    what: str = ""
    of: tuple[str, ...] = ("spec.replicas",)
    surplus: bool = False


class StateOfCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str = "True"
    #: Whether it may be absent.
    optional: bool = False


class Reached(msgspec.Struct, frozen=True, rename="camel"):
    """A text that is one of those."""

    path: str
    one_of: tuple[str, ...]
    #: Where the reason is, if it is another one.
    message: str = ""
    #: Whether it may be absent.
    optional: bool = False


class HealthRules(msgspec.Struct, frozen=True, rename="camel"):
    """A copy is finished if all of this holds."""

    #: Its controller always reports status.observedGeneration: without it, it has not seen the object.
    observes_generation: bool = False
    #: Where it is said that nothing is to be done for now.
    suspended: str = ""
    counts: tuple[Count, ...] = ()
    phases: tuple[Reached, ...] = ()
    conditions: tuple[StateOfCondition, ...] = ()


class StatusRules(msgspec.Struct, frozen=True, rename="camel"):
    merge: MergeRules | None = None
    health: HealthRules | None = None
