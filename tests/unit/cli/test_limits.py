"""The options that bound what clients may take: their defaults are the server's own, and what makes no sense is refused."""

import inspect

import pytest

from argosy.cli.commands import server, up
from argosy.cli.options.limits import arguments, limits
from argosy.cli.output.failures import Failure
from argosy.server.http.limits import Limits

NAMES = ("max_requests_inflight", "max_mutating_requests_inflight", "max_watches", "max_connections", "watch_buffer")


@pytest.mark.parametrize("command", [server.server, up.up])
def test_the_defaults_are_the_servers_own(command: object) -> None:
    parameters = inspect.signature(command).parameters  # type: ignore[arg-type]
    assert limits(*(parameters[name].default for name in NAMES)) == Limits()


def test_what_was_chosen_is_handed_on_to_the_process_in_the_background() -> None:
    chosen = limits(1, 2, 3, 4, "5Mi")
    told = arguments(chosen)
    options = dict(zip(told[::2], told[1::2], strict=True))
    names = [f"--{name.replace('_', '-')}" for name in NAMES]
    assert list(options) == names
    numbers = [int(options[name]) for name in names[:4]]
    assert limits(numbers[0], numbers[1], numbers[2], numbers[3], options["--watch-buffer"]) == chosen


@pytest.mark.parametrize("text", ["much", "-1Mi", "1Ki", "0"])
def test_a_buffer_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Failure) as refused:
        limits(1, 1, 1, 1, text)
    assert refused.value.message.startswith("--watch-buffer: ")
    assert refused.value.code == 2
