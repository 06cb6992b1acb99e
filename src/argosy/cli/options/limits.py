"""Options of the commands that serve: what clients may take of the API server at once."""

from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.server.http.limits import Limits

__all__ = [
    "MaxConnections",
    "MaxMutatingRequests",
    "MaxRequests",
    "MaxWatches",
    "WatchBuffer",
    "arguments",
    "limits",
]

MaxRequests = Annotated[int, typer.Option("--max-requests-inflight", min=1, help="Reads in flight; more get 429.")]
MaxMutatingRequests = Annotated[
    int, typer.Option("--max-mutating-requests-inflight", min=1, help="Writes in flight; more get 429.")
]
MaxWatches = Annotated[int, typer.Option("--max-watches", min=1, help="Open watches; more get 429.")]
MaxConnections = Annotated[
    int,
    typer.Option("--max-connections", min=1, help="Open connections; idle ones are closed to make room for new ones."),
]
WatchBuffer = Annotated[
    str,
    typer.Option(
        "--watch-buffer",
        metavar="QUANTITY",
        help="Memory to buffer what clients have not read yet, for all together; beyond it the slowest are disconnected.",
    ),
]


def limits(requests: int, mutating: int, watches: int, connections: int, watch_buffer: str) -> "Limits":
    from argosy.kube import quantity
    from argosy.server.http.limits import Limits

    try:
        buffer = quantity.parse(watch_buffer)
    except ValueError as error:
        raise Failure(f"--watch-buffer: {error}", "write it as in 256Mi", code=2) from None
    size = buffer.value()
    if size < 1024 * 1024:
        raise Failure("--watch-buffer: less than 1Mi is no room for a single object", code=2)
    return Limits(reads=requests, writes=mutating, watches=watches, connections=connections, watch_bytes=size)


def arguments(chosen: "Limits") -> list[str]:
    """As options of a command line."""
    return [
        *("--max-requests-inflight", str(chosen.reads)),
        *("--max-mutating-requests-inflight", str(chosen.writes)),
        *("--max-watches", str(chosen.watches)),
        *("--max-connections", str(chosen.connections)),
        *("--watch-buffer", str(chosen.watch_bytes)),
    ]
