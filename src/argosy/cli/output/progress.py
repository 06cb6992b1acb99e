"""Progress while something starts: on a terminal, as plain lines elsewhere, or through a pipe to the process that waits for us.

A pipe carries one JSON object a line: `{"step": …}`, then `{"ready": true}` or `{"error": …, "hint": …}`. Its end without
either means that the process died.
"""

import json
import os
import sys
import time
from typing import Any, Protocol

from argosy.cli.output.failures import Failure

__all__ = ["Lines", "Pipe", "Progress", "Screen", "Ticker", "follow", "heard", "shown"]


class Progress(Protocol):
    def step(self, text: str) -> None:
        """What is being done now."""
        ...

    def ready(self) -> None: ...

    def failed(self, failure: Failure) -> None: ...


class Lines:
    """One line a step, on stderr: stdout is for results."""

    def step(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def ready(self) -> None:
        return

    def failed(self, failure: Failure) -> None:
        return


class Screen:
    """A spinner with the current step; the steps done stay above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status: Any = None
        self._current = ""

    def step(self, text: str) -> None:
        self._done("✓", "green")
        self._current = text
        self._status = self._console.status(text)
        self._status.start()

    def ready(self) -> None:
        self._done("✓", "green")

    def failed(self, failure: Failure) -> None:
        self._done("✗", "red")

    def _done(self, mark: str, style: str) -> None:
        if self._status is None:
            return
        from rich.text import Text

        self._status.stop()
        self._status = None
        self._console.print(Text.assemble((mark, style), " ", self._current))


class Ticker:
    """How far long work is: nothing for the first two seconds; then one line of a terminal, a line now and then elsewhere."""

    _PATIENCE = 2.0
    _BETWEEN_LINES = 10.0

    def __init__(self) -> None:
        self._next = time.monotonic() + self._PATIENCE
        self._status: Any = None

    def __enter__(self) -> "Ticker":
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def at(self, text: str) -> None:
        """To be called often."""
        if self._status is not None:
            self._status.update(text)
            return
        if time.monotonic() < self._next:
            return
        if not sys.stderr.isatty():
            self._next = time.monotonic() + self._BETWEEN_LINES
            print(text, file=sys.stderr, flush=True)
            return
        from rich.console import Console

        self._status = Console(stderr=True).status(text)
        self._status.start()


class Pipe:
    def __init__(self, descriptor: int):
        os.set_inheritable(descriptor, False)
        self._file: Any = os.fdopen(descriptor, "w", buffering=1)

    def step(self, text: str) -> None:
        self._say(step=text)

    def ready(self) -> None:
        self._say(ready=True)
        self._close()

    def failed(self, failure: Failure) -> None:
        self._say(error=failure.message, hint=failure.hint)
        self._close()

    def _say(self, **message: Any) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(message) + "\n")
        except OSError:  # nobody listens any more
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                return


def shown(descriptor: int | None = None) -> Progress:
    """For this process: through the pipe it was given, else as its terminal allows."""
    if descriptor is not None:
        return Pipe(descriptor)
    return Screen() if sys.stderr.isatty() else Lines()


def heard(line: str, progress: Progress) -> bool:
    """One line of a pipe, shown here; True when the other side is ready. Raises its Failure."""
    try:
        message = json.loads(line)
    except ValueError:
        return False
    if "error" in message:
        raise Failure(str(message["error"]), str(message.get("hint") or ""))
    if "step" in message:
        progress.step(str(message["step"]))
    return bool(message.get("ready"))


def follow(descriptor: int, progress: Progress, log: str) -> None:
    """Show what another process says until it is ready. `log` is where to look when it dies without a word."""
    with os.fdopen(descriptor) as file:
        for line in file:
            if heard(line, progress):
                return
    raise Failure("the process ended before it was ready", f"its log is in {log}")
