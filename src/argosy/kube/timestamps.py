"""Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds (Time) or microseconds (MicroTime).

`now` reads the clock; the others are pure, and decisions use only those.
"""

from datetime import UTC, datetime
from functools import lru_cache

from argosy.kube import clock

__all__ = ["micro_timestamp", "now", "parse", "timestamp"]


def timestamp(moment: datetime) -> str:
    """A time of metadata, status and events. `moment` must have a time zone."""
    return _text(moment, "seconds")


def micro_timestamp(moment: datetime) -> str:
    """A time of leases. `moment` must have a time zone."""
    return _text(moment, "microseconds")


def now() -> str:
    """The present second."""
    return _second(int(clock.time()))


@lru_cache(maxsize=64)
def _second(since_1970: int) -> str:
    return timestamp(datetime.fromtimestamp(since_1970, UTC))


def parse(text: str | None) -> datetime | None:
    """The time in UTC; None if there is none, or the text is not a time with a zone."""
    if not text or "T" not in text.upper():
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _text(moment: datetime, precision: str) -> str:
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
