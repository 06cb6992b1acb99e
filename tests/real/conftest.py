"""Everything in this folder runs against stock Kubernetes: `make test-real`."""

from pathlib import Path

import pytest

from argosy.testing.pytest_plugin import kubernetes, kubernetes_session  # noqa: F401


#: The files that take longest: workers begin with these, so that none is left alone with one at the end.
LONGEST = (
    "test_scenarios_stock.py",
    "test_scenarios_embedded.py",
    "test_faults.py",
    "test_kube_informer.py",
    "test_leader.py",
    "test_install.py",
    "test_shards.py",
    "test_join.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
