"""Durations as options, and the ones that all commands with controllers have."""

from typing import Annotated

import typer

from argosy.cli.output.failures import Failure

__all__ = ["PluginTimeout", "duration_of", "plugin_timeout_of"]

PluginTimeout = Annotated[
    str,
    typer.Option(
        "--plugin-timeout",
        metavar="DURATION",
        help="How long a Python plugin may take to answer one question.",
    ),
]


def duration_of(option: str, text: str) -> float:
    """In seconds. Raises Failure."""
    from argosy.kube import duration

    try:
        seconds = duration.seconds(text)
    except ValueError as error:
        raise Failure(f"{option}: {error}", "write it as in 90s, 5m or 1h30m", code=2) from None
    if seconds < 0:
        raise Failure(f"{option}: must not be negative", code=2)
    return seconds


def plugin_timeout_of(text: str) -> float:
    seconds = duration_of("--plugin-timeout", text)
    if seconds == 0:
        raise Failure("--plugin-timeout: must be more than 0", code=2)
    return seconds
