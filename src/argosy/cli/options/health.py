"""Options of the commands that run controllers: how members' health is watched. Named as KubeAdmiral's."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from argosy.cli.options.timeouts import duration_of
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.control.timings import Timings

__all__ = ["HealthCheckPeriod", "HealthOptions", "JoinTimeout", "StatusThreshold", "health_options"]

_PERIOD, _THRESHOLD, _JOIN = "--cluster-health-check-period", "--cluster-status-threshold", "--cluster-join-timeout"
#: More often would only be load.
_SHORTEST = 1.0

HealthCheckPeriod = Annotated[str, typer.Option(_PERIOD, metavar="DURATION", help="How often members are probed.")]
StatusThreshold = Annotated[
    str,
    typer.Option(
        _THRESHOLD,
        metavar="DURATION",
        help="How long a member must be ready or not before it counts as such. That it is silent is shown at once.",
    ),
]
JoinTimeout = Annotated[
    str, typer.Option(_JOIN, metavar="DURATION", help="How long a cluster that cannot join is tried.")
]


class HealthOptions(NamedTuple):
    """In seconds."""

    period: float
    threshold: float
    join_timeout: float

    def applied(self, timings: "Timings") -> "Timings":
        import msgspec

        return msgspec.structs.replace(
            timings,
            health_period=self.period,
            health_threshold=self.threshold,
            join_timeout=self.join_timeout,
        )

    def arguments(self) -> list[str]:
        """As options of a command line."""
        values = zip((_PERIOD, _THRESHOLD, _JOIN), self, strict=True)
        return [part for option, seconds in values for part in (option, f"{seconds}s")]


def health_options(period: str, threshold: str, join_timeout: str) -> HealthOptions:
    """Raises Failure."""
    chosen = HealthOptions(
        duration_of(_PERIOD, period), duration_of(_THRESHOLD, threshold), duration_of(_JOIN, join_timeout)
    )
    if chosen.period < _SHORTEST:
        raise Failure(f"{_PERIOD}: must be at least {_SHORTEST:g}s", code=2)
    return chosen
