"""Scenarios: what a federation does for its users, from the outside, told once and run on every ground.

The modules here hold the scenarios (`workloads`, `statuses`, `causes`, `drift`, `followers`, `migration`, `namespaces`,
`membership`, `outages`, `restarts`, `custom`); the fixtures `ground` and `world` come from the module that collects them:
`test_simulated` here (part of `make test`), and `tests/real/test_scenarios_*` (part of `make test-real`).
"""

import pytest

_MODULES = (
    "causes",
    "custom",
    "drift",
    "drifting",
    "followers",
    "membership",
    "migration",
    "namespaces",
    "outages",
    "removals",
    "restarts",
    "retention",
    "seen",
    "statuses",
    "workloads",
)
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES))
