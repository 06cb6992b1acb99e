"""A line of the judge: one promise, and all that a judge gets to see."""

from collections.abc import Callable

from argosy.kube.transport import Event, Request
from argosy.server.storage.base import Change

__all__ = ["Line"]


class Line:
    """Lines override what they look at. `broken` is called with a sentence for each time the promise was broken."""

    def __init__(self, broken: Callable[[str], None]):
        self.broken = broken

    def sent(self, client: str, server: str, request: Request) -> None:
        """A request, at the moment it is sent."""

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        """A request that the server has answered, whether the client will hear of it or not."""

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        """An answer that has arrived."""

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        """Events of a watch that have arrived."""

    def stored(self, server: str, change: Change) -> None:
        """A write, at the moment it is on disk."""
