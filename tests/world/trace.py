"""The trace: one hash over everything that was said. The same seed gives the same on one machine.

Events name the host that reports them, so that another machine gives another hash.
"""

import hashlib
from collections.abc import Callable
from typing import TextIO

from argosy.kube.transport import Event, Page, Request, Response

__all__ = ["Trace"]


class Trace:
    def __init__(self, time: Callable[[], float], output: TextIO | None = None):
        """`output` gets a line for each request and each watch event."""
        self._time = time
        self._output = output
        self._hash = hashlib.sha256()
        self.requests = 0

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def sent(self, client: str, server: str, request: Request) -> None:
        """What is sent shows in its answer."""

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        self.requests += 1
        asked = f"{request.method} {request.path} {request.query} {request.body!r}"
        self._note(f"{client} -> {server}: {asked}: {_shown(answer)}")

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        """What is heard shows in what is sent next."""

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        self._note(f"{server} -> {client}: {request.path}: {events}")

    def _note(self, text: str) -> None:
        line = f"{self._time():.6f} {text}\n"
        self._hash.update(line.encode())
        if self._output is not None:
            self._output.write(line)


def _shown(answer: object) -> str:
    if isinstance(answer, Response | Page):
        return repr(answer)
    return repr(answer) if isinstance(answer, Exception) else "a stream"
