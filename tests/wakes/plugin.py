"""A plugin of pytest that takes one declaration out of the wake table: `-p tests.wakes.plugin --without-wake WHO/SOURCE/WHY`."""

from typing import Any

from argosy.control.wake import Subscriptions
from tests.harness import eventually

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_call", "pytest_runtest_setup"]

#: Long enough for what works on a machine that is busy with nothing else.
PATIENCE = 12.0
#: Before the test itself a busy machine is more likely than a row that is missed.
SETUP_PATIENCE = 30.0


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--without-wake", help="the declaration to leave out, as who/source/why")


def pytest_configure(config: Any) -> None:
    left_out = config.getoption("--without-wake")
    if not left_out:
        return
    add = Subscriptions._add

    def added(self: Subscriptions, who: str, source: Any, handler: Any, why: str, how: str) -> None:
        if f"{who}/{source.name}/{why}" != left_out:
            add(self, who, source, handler, why, how)

    Subscriptions._add = added  # type: ignore[method-assign]


def pytest_runtest_setup(item: Any) -> None:
    if item.config.getoption("--without-wake"):
        eventually.LONGEST = SETUP_PATIENCE


def pytest_runtest_call(item: Any) -> None:
    if item.config.getoption("--without-wake"):
        eventually.LONGEST = PATIENCE
