"""Options of the commands that run controllers: when a cluster has failed, and how fast its workloads leave it."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from argosy.cli.options.timeouts import duration_of

if TYPE_CHECKING:
    from argosy.control.timings import Timings
    from argosy.plan.failover.pacing import Pacing

__all__ = [
    "FailbackAfter",
    "FailoverAfter",
    "FailoverMostUnready",
    "FailoverOptions",
    "FailoverShare",
    "failover_options",
]

_AFTER, _BACK = "--failover-after", "--failback-after"

FailoverAfter = Annotated[
    str,
    typer.Option(
        _AFTER,
        metavar="DURATION",
        help="Move workloads away from a cluster that has not been ready for this long, as in 10s.",
    ),
]
FailbackAfter = Annotated[
    str,
    typer.Option(
        _BACK, metavar="DURATION", help="Let workloads return to such a cluster once it has been ready for this long."
    ),
]
FailoverShare = Annotated[
    int,
    typer.Option(
        "--failover-share",
        metavar="PERCENT",
        min=1,
        max=100,
        help="Of the copies in a zone, at most this share leaves failed clusters in a minute. 100: all at once.",
    ),
]
FailoverMostUnready = Annotated[
    int,
    typer.Option(
        "--failover-most-unready",
        metavar="PERCENT",
        min=0,
        max=100,
        help="While more than this share of the clusters is unready, nothing leaves them.",
    ),
]


class FailoverOptions(NamedTuple):
    #: In seconds; None: never.
    after: float | None
    back: float
    share: int
    most_unready: int

    @property
    def pacing(self) -> "Pacing":
        from argosy.plan.failover.pacing import Pacing

        return Pacing(share=self.share / 100, unready=self.most_unready / 100)

    def applied(self, timings: "Timings") -> "Timings":
        import msgspec

        return msgspec.structs.replace(timings, failover_after=self.after, failback_after=self.back)


def failover_options(after: str, back: str, share: int, most_unready: int) -> FailoverOptions:
    """Raises Failure."""
    from argosy.api import keys

    seconds = None if after == keys.NEVER else duration_of(_AFTER, after)
    return FailoverOptions(seconds, duration_of(_BACK, back), share, most_unready)
