"""Options of the commands that run controllers: how much may be taken away at once."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from argosy.cli.options.timeouts import duration_of

if TYPE_CHECKING:
    from argosy.control.timings import Timings
    from argosy.plan.brake.limits import Limits

__all__ = ["BrakeOptions", "BrakeSettle", "BrakeShare", "brake_options"]

_SHARE, _SETTLE = "--brake-share", "--brake-settle"

BrakeShare = Annotated[
    int,
    typer.Option(
        _SHARE,
        metavar="PERCENT",
        min=1,
        max=100,
        help="Hold removals of more than this share of the fleet's copies, or of a cluster's. 100 switches the brake off.",
    ),
]
BrakeSettle = Annotated[
    str,
    typer.Option(_SETTLE, metavar="DURATION", help="How long removals wait for more of them before they are judged."),
]


class BrakeOptions(NamedTuple):
    share: int
    #: In seconds.
    settle: float

    @property
    def limits(self) -> "Limits":
        from argosy.plan.brake.limits import Limits

        return Limits(share=self.share / 100)

    def applied(self, timings: "Timings") -> "Timings":
        import msgspec

        return msgspec.structs.replace(timings, brake_settle=self.settle)

    def arguments(self) -> list[str]:
        """As options of a command line."""
        return [_SHARE, str(self.share), _SETTLE, f"{self.settle}s"]


def brake_options(share: int, settle: str) -> BrakeOptions:
    """Raises Failure."""
    return BrakeOptions(share, duration_of(_SETTLE, settle))
