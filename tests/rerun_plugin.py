"""The plugin by which `tests.rerun` learns which tests failed. Under xdist only the process that reports has it."""

from typing import Any

from tests.rerun import OPTION, Reports

__all__ = ["pytest_addoption", "pytest_configure"]


def pytest_addoption(parser: Any) -> None:
    parser.addoption(OPTION, help="a file that gets the names of the tests that failed, as JSON")


def pytest_configure(config: Any) -> None:
    target = config.getoption(OPTION)
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reports(target), "failures of this run")
