"""Nothing unforeseen happens: no exception is logged that nobody expected, and none gets lost."""

import logging
from collections.abc import Callable

__all__ = ["UnexpectedErrors"]


class UnexpectedErrors(logging.Handler):
    """For the root logger."""

    def __init__(self, broken: Callable[[str], None]):
        super().__init__(logging.WARNING)
        self._broken = broken

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._broken(f"{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")
