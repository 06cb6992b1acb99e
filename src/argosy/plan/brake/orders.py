"""Orders: what people said about held removals, kept as one annotation of the system namespace.

A confirmation lets go what one cause holds, and what the same mistake's last arrivals would hold within a minute after it. A
planned outcome needs none. While the brake is off, nothing is held.
"""

import datetime
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from argosy.api import keys
from argosy.kube import timestamps

__all__ = ["NO_ORDERS", "Off", "Order", "Orders", "orders_of", "plan_id", "with_order"]

_LAST_ARRIVALS: Final = datetime.timedelta(seconds=60)
_PLANNED: Final = datetime.timedelta(hours=1)
#: Orders that are older say nothing any more; the newest are kept, so that the annotation stays small.
_KEPT: Final = 20


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    #: The cause it confirms, or the id of the plan.
    what: str
    at: str
    by: str = ""


class Off(msgspec.Struct, frozen=True, omit_defaults=True):
    until: str
    by: str = ""
    reason: str = ""


class Orders(msgspec.Struct, frozen=True, omit_defaults=True):
    confirmed: tuple[Order, ...] = ()
    planned: tuple[Order, ...] = ()
    #: Deletions of sources that are carried out with the copies left running.
    rescued: tuple[Order, ...] = ()
    off: Off | None = None

    def confirms(self, cause: str, since: str) -> bool:
        """Whether what has been held since then may go."""
        return any(each.what == cause and _covers(each, since) for each in self.confirmed)

    def rescues(self, since: str) -> bool:
        return any(_covers(each, since) for each in self.rescued)

    def expected(self, now: str) -> list[str]:
        """The plans of the last hour."""
        return [each.what for each in self.planned if _is_recent(each, now)]

    def until(self, latest: datetime.datetime) -> "Orders":
        """Without those that were given later."""

        def kept(given: tuple[Order, ...]) -> tuple[Order, ...]:
            return tuple(each for each in given if (at := timestamps.parse(each.at)) is not None and at <= latest)

        return Orders(kept(self.confirmed), kept(self.planned), kept(self.rescued), self.off)

    def is_off(self, now: datetime.datetime) -> bool:
        until = timestamps.parse(self.off.until) if self.off is not None else None
        return until is not None and now < until


NO_ORDERS: Final = Orders()


def _is_recent(order: Order, now: str) -> bool:
    then, at = timestamps.parse(now), timestamps.parse(order.at)
    return then is not None and at is not None and then <= at + _PLANNED


def _covers(order: Order, since: str) -> bool:
    then, at = timestamps.parse(since), timestamps.parse(order.at)
    return then is not None and at is not None and then <= at + _LAST_ARRIVALS


def orders_of(annotations: Mapping[str, str]) -> Orders:
    """What was ordered; nothing if that cannot be read."""
    try:
        return msgspec.json.decode(annotations.get(keys.BRAKE_ORDERS, "{}"), type=Orders)
    except msgspec.MsgspecError:
        return NO_ORDERS


def with_order(orders: Orders, kind: str, order: Order) -> Orders:
    """The orders with one more in `confirmed`, `planned` or `rescued`."""
    return msgspec.structs.replace(orders, **{kind: (*getattr(orders, kind), order)[-_KEPT:]})


def plan_id(removals: Iterable[tuple[str, str, str]]) -> str:
    """Of exactly these removals: type, key and cluster of each. The same plan made again has the same id."""
    lines = sorted("|".join(each) for each in set(removals))
    return blake2b("\n".join(lines).encode(), digest_size=6).hexdigest() if lines else ""
