"""Observation: what is known of an object in one member; all of them together are the input of a status merge."""

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.api.federated import Cause, FederatedObject
from argosy.plan.fields import Json
from argosy.plan.kinds.lack import About, Lack

__all__ = ["Aggregation", "Observation", "observed_in"]

#: Of a 64-bit number.
_DIGITS: Final = 19


class Observation(msgspec.Struct, frozen=True):
    """The object in one cluster.

    `object` is what was last seen, None if it was absent. A cluster that is unreachable now keeps what was last seen. If
    nothing ever was (`known` is False), its number of replicas is unknown.
    """

    cluster: str
    object: Json | None = None
    reachable: bool = True
    known: bool = True
    #: Generation of the member's object when it was last written.
    last_written_generation: int = 0
    #: When the cluster was heard of last, if it is not now.
    silent_since: str = ""
    #: Why pods of it are not ready.
    cause: Cause | None = None


class Aggregation(msgspec.Struct, frozen=True):
    """Everything a status merge may read. `now` is the time for conditions that change."""

    source: Json
    observations: Sequence[Observation]
    #: Whether the federated object reflects the source and every cluster has it.
    up_to_date: bool
    now: str
    federated: FederatedObject | None = None
    #: What is missing until the object is as wanted (`plan.status.wanted`): no condition may say that it is complete.
    lacking: Sequence[Lack] = ()

    def lacks(self, *about: About) -> list[Lack]:
        """What is missing of these."""
        return [each for each in self.lacking if each.about in about]

    @property
    def causes(self) -> dict[str, Cause]:
        return {each.cluster: each.cause for each in self.observations if each.cause is not None}

    @property
    def status(self) -> Json:
        return self.source.get("status") or {}

    @property
    def generation(self) -> int:
        return int(self.source["metadata"].get("generation") or 0)

    @property
    def present(self) -> list[Observation]:
        return [each for each in self.observations if each.object is not None]

    @property
    def unreachable(self) -> list[Observation]:
        return [each for each in self.observations if not each.reachable]

    @property
    def unknown(self) -> list[Observation]:
        """Those that cannot be read, and not only because the cluster is silent just now."""
        return [each for each in self.unreachable if not each.silent_since]

    @property
    def complete(self) -> bool:
        """Whether the object's state is known for every cluster."""
        return all(each.known for each in self.observations)

    @property
    def observed_generation(self) -> int | None:
        """The source's generation once every member has observed the last write; until then the previous one."""
        caught_up = self.up_to_date and all(
            each.object is not None and _observed(each.object) == each.last_written_generation
            for each in self.observations
        )
        if caught_up and self.observations:
            return self.generation
        return observed_in(self.status)


def _observed(obj: Json) -> int:
    """Raises ValueError if a member tells what is no number."""
    status = obj.get("status") or {}
    observed = observed_in(status)
    if observed is None and status.get("observedGeneration"):
        raise ValueError("observedGeneration is no number")
    return observed or 0


def observed_in(status: Json) -> int | None:
    """The generation that a status tells of, None if none. Some kinds have the number as text."""
    observed = status.get("observedGeneration")
    if isinstance(observed, str) and observed.isascii() and observed.isdigit():
        return int(observed[:_DIGITS])
    return observed if isinstance(observed, int) and not isinstance(observed, bool) else None
