"""Everything in this folder runs against stock Kubernetes: `make test-real`."""

from pathlib import Path

import pytest

from argosy.testing.pytest_plugin import kubernetes, kubernetes_session  # noqa: F401


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
