"""What people said about held removals."""

import datetime

import pytest

from argosy.api import keys
from argosy.plan.brake.orders import NO_ORDERS, Off, Order, Orders, orders_of, plan_id, with_order

NOW = "2026-01-01T10:00:00Z"


@pytest.mark.parametrize(
    ("since", "confirmed"),
    [("2026-01-01T09:00:00Z", True), (NOW, True), ("2026-01-01T10:00:59Z", True), ("2026-01-01T10:01:01Z", False)],
)
def test_a_confirmation_covers_what_was_held_and_the_last_arrivals(since, confirmed):
    orders = Orders(confirmed=(Order("PolicyChanged", NOW),))
    assert orders.confirms("PolicyChanged", since) is confirmed
    assert not orders.confirms("Unknown", since)


def test_what_is_held_since_nobody_knows_when_is_not_confirmed():
    assert not Orders(confirmed=(Order("Unknown", NOW),)).confirms("Unknown", "")


def test_a_plan_is_expected_for_an_hour():
    orders = Orders(planned=(Order("abc", NOW),))
    assert orders.expected("2026-01-01T10:59:00Z") == ["abc"]
    assert orders.expected("2026-01-01T11:01:00Z") == []


def test_the_brake_is_off_until_its_time():
    orders = Orders(off=Off("2026-01-01T11:00:00Z"))
    assert orders.is_off(datetime.datetime(2026, 1, 1, 10, 59, tzinfo=datetime.UTC))
    assert not orders.is_off(datetime.datetime(2026, 1, 1, 11, 0, tzinfo=datetime.UTC))
    assert not Orders(off=Off("nonsense")).is_off(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))


def test_what_cannot_be_read_orders_nothing():
    assert orders_of({keys.BRAKE_ORDERS: "{"}) == NO_ORDERS
    assert orders_of({}) == NO_ORDERS


def test_only_the_last_orders_are_kept():
    orders = NO_ORDERS
    for number in range(30):
        orders = with_order(orders, "confirmed", Order(str(number), NOW))
    assert [each.what for each in orders.confirmed] == [str(number) for number in range(10, 30)]


def test_a_plan_has_the_same_id_in_any_order_and_another_for_anything_else():
    one, other = ("deployments.apps", "default/web", "m1"), ("deployments.apps", "default/web", "m2")
    assert plan_id([one, other]) == plan_id([other, one, one])
    assert plan_id([one]) != plan_id([other])
    assert plan_id([]) == ""


def test_orders_of_the_future_are_told_apart():
    orders = Orders(confirmed=(Order("Unknown", NOW), Order("Unknown", "9999-01-01T00:00:00Z"), Order("Unknown", "?")))
    latest = datetime.datetime(2026, 1, 1, 10, 1, tzinfo=datetime.UTC)
    assert orders.until(latest) == Orders(confirmed=(Order("Unknown", NOW),))
