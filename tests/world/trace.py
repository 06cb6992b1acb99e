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
        asked = f"{client} -> {server}: {request.method} {request.path} {request.query} "
        self._note(asked, [request.body, *_shown(answer)])

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        """What is heard shows in what is sent next."""

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        self._note(f"{server} -> {client}: {request.path} ", [part for event in events for part in _event(event)])

    def _note(self, text: str, parts: list[bytes]) -> None:
        """Bodies are hashed as they are: to write them out would cost more than to hash them."""
        line = b"%.6f %b%b\n" % (self._time(), text.encode(), b" ".join(parts))
        self._hash.update(line)
        if self._output is not None:
            self._output.write(line.decode(errors="backslashreplace"))


def _event(event: Event) -> tuple[bytes, bytes]:
    return event.type.encode(), event.object


def _shown(answer: object) -> list[bytes]:
    if isinstance(answer, Response):
        return [f"{answer.status} {answer.headers}".encode(), answer.body]
    if isinstance(answer, Page):
        rest = (
            answer.resource_version,
            answer.continue_token,
            answer.remaining,
            answer.shard_selector,
            answer.warnings,
        )
        return [repr(rest).encode(), *answer.items]
    return [(repr(answer) if isinstance(answer, Exception) else "a stream").encode()]
