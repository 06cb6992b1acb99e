"""docs/metrics.md has every metric, and no other."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from argosy.cli.local.probes import Probes
from argosy.control.sharding.election import ShardElection
from argosy.control.telemetry.metrics import Metrics
from argosy.control.telemetry.upstream import UpstreamMetrics

DOCS = Path(__file__).parents[3] / "docs"
PREFIX = "kubeadmiral_controller_manager_"
OWN, UPSTREAM, ABSENT = re.split(
    r"^## Under KubeAdmiral's names$|^Not there, ", (DOCS / "metrics.md").read_text(), flags=re.M
)


def served() -> set[str]:
    """By the names that Prometheus has for them, without what a histogram appends."""
    metrics = Metrics()
    nothing = cast(Any, SimpleNamespace(clusters={}, all=tuple))
    election = cast(ShardElection, SimpleNamespace(lease="", held=True, failures=0))
    families = [*metrics.registry.collect(), *UpstreamMetrics(metrics, nothing, nothing).collect()]
    families += Probes(election)._registry.collect()
    return {f"{each.name}_total" if each.type == "counter" else each.name for each in families}


def test_our_own_metrics_are_those_of_the_page() -> None:
    own = {name for name in served() if name.startswith("argosy_")}
    assert set(re.findall(r"`(argosy_\w+)`", OWN)) == own


def test_those_with_kubeadmirals_names_as_well() -> None:
    names = {name.removeprefix(PREFIX) for name in served() if name.startswith(PREFIX)}
    rows = [line.split("|")[1] for line in UPSTREAM.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names
    absent = [line.split("|")[1] for line in ABSENT.splitlines() if line.startswith("| `")]
    assert not {name for row in absent for name in re.findall(r"`(\w+)`", row)} & names
