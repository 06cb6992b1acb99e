"""Options of the commands that run controllers: how much they do at once, and which namespaces are left alone. Named as
KubeAdmiral's."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from argosy.cli.options.timeouts import duration_of
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.control.options import Options
    from argosy.control.timings import Timings

__all__ = [
    "ApiBurst",
    "ApiQps",
    "EnqueueDelay",
    "ExcludedNamespaces",
    "Katalyst",
    "WorkOptions",
    "Workers",
    "work_options",
]

_WORKERS, _QPS, _BURST = "--worker-count", "--kube-api-qps", "--kube-api-burst"
_DELAY, _EXCLUDE, _KATALYST = (
    "--member-object-enqueue-delay",
    "--ns-autoprop-exclude-regexp",
    "--enable-katalyst-support",
)

Workers = Annotated[
    int,
    typer.Option(
        _WORKERS, min=1, max=1000, help="How many objects federate and dispatch work on at once, each. KubeAdmiral: 1."
    ),
]
ApiQps = Annotated[float, typer.Option(_QPS, min=1, help="Requests a second to each member.")]
ApiBurst = Annotated[
    int, typer.Option(_BURST, min=1, help="Requests to each member that may exceed that for a moment.")
]
EnqueueDelay = Annotated[
    str,
    typer.Option(_DELAY, metavar="DURATION", help="How long a copy that others changed waits until it is repaired."),
]
ExcludedNamespaces = Annotated[
    str,
    typer.Option(
        _EXCLUDE,
        metavar="REGEXP",
        help="Namespaces whose names match are not propagated by themselves, as in ^dev-.",
    ),
]
Katalyst = Annotated[
    bool,
    typer.Option(_KATALYST, help="Count resources that Katalyst reclaims, in members whose annotation asks for it."),
]


class WorkOptions(NamedTuple):
    workers: int
    qps: float
    burst: int
    #: In seconds.
    delay: float
    exclude: str
    katalyst: bool

    def chosen(self, options: "Options") -> "Options":
        import msgspec

        return msgspec.structs.replace(
            options,
            workers=self.workers,
            member_qps=self.qps,
            member_burst=self.burst,
            exclude_namespaces=self.exclude,
            katalyst=self.katalyst,
        )

    def applied(self, timings: "Timings") -> "Timings":
        import msgspec

        return msgspec.structs.replace(timings, member_event=self.delay)

    def arguments(self) -> list[str]:
        """As options of a command line."""
        values = ((_WORKERS, self.workers), (_QPS, self.qps), (_BURST, self.burst), (_DELAY, f"{self.delay}s"))
        given = [part for option, value in values for part in (option, str(value))]
        return [*given, f"{_EXCLUDE}={self.exclude}", *([_KATALYST] if self.katalyst else [])]


def work_options(workers: int, qps: float, burst: int, delay: str, exclude: str, katalyst: bool) -> WorkOptions:
    """Raises Failure."""
    from argosy.kube.regexp import PatternError, compile_pattern

    try:
        compile_pattern(exclude)
    except PatternError as error:
        raise Failure(f"{_EXCLUDE}: {error}", code=2) from None
    return WorkOptions(workers, qps, burst, duration_of(_DELAY, delay), exclude, katalyst)
