"""The alerts are ones that Prometheus understands, about metrics that there are, and each has a section of the runbooks."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from argosy.cli.local.probes import Probes
from argosy.control.sharding.election import ShardElection
from argosy.control.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
GROUPS = yaml.safe_load((ROOT / "deploy" / "alerts" / "argosy.yaml").read_text())["groups"]
RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOKS, re.MULTILINE | re.DOTALL))
#: Set by Prometheus itself.
ALWAYS = {"instance", "job"}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def labels_by_name() -> dict[str, set[str]]:
    """Every series that controllers serve."""
    election = SimpleNamespace(lease="argosy-controllers", held=True, failures=0)
    probes = Probes(cast(ShardElection, election))
    found: dict[str, set[str]] = {}
    for registry in (Metrics().registry, probes._registry):
        for family in registry.collect():
            labels = _labels(registry, family.name) or {name for sample in family.samples for name in sample.labels}
            for suffix in _SUFFIXES[family.type]:
                found[family.name + suffix] = labels
    return found


def _labels(registry: CollectorRegistry, name: str) -> set[str]:
    collector = registry._names_to_collectors.get(name)
    return set(collector._labelnames) if isinstance(collector, MetricWrapperBase) else set()


SERIES = labels_by_name()


def parts(expression: Any) -> Iterator[Any]:
    found: list[Any] = []
    promql.walk(expression, found.append)
    return iter(found)


def test_there_are_rules() -> None:
    assert len(RULES) == sum(len(group["rules"]) for group in GROUPS) >= 9


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_about_series_that_there_are(name: str) -> None:
    named = [part for part in parts(promql.parse(RULES[name]["expr"])) if isinstance(part, promql.VectorSelector)]
    assert named
    for selector in named:
        assert selector.name in SERIES, f"{selector.name} is no metric of the controllers"
        for matcher in selector.matchers.matchers:
            assert matcher.name in SERIES[selector.name] | ALWAYS


@pytest.mark.parametrize("name", RULES)
def test_a_rule_groups_and_tells_by_labels_that_there_are(name: str) -> None:
    rule = RULES[name]
    expression = promql.parse(rule["expr"])
    known = {
        label for part in parts(expression) if isinstance(part, promql.VectorSelector) for label in SERIES[part.name]
    }
    kept = known | ALWAYS
    for part in parts(expression):
        if isinstance(part, promql.AggregateExpr):
            by = set(part.modifier.labels) if part.modifier is not None else set()
            assert by <= known | ALWAYS
            kept &= by
    texts = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= kept
    assert set(re.findall(r"\{\{.*?\}\}", texts)) <= _placeholders(kept)


def _placeholders(labels: set[str]) -> set[str]:
    values = {"{{ $value }}", "{{ $value | humanizeDuration }}", "{{ $value | humanizePercentage }}"}
    return values | {f"{{{{ $labels.{label} }}}}" for label in labels}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_what_prometheus_and_people_need(name: str) -> None:
    rule = RULES[name]
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"].keys() == {"summary", "description", "runbook"}
    assert rule["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"


def test_every_rule_has_a_section_and_every_section_a_rule() -> None:
    assert list(SECTIONS) == list(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_section_says_what_it_means_what_to_look_at_and_what_to_do(name: str) -> None:
    text = SECTIONS[name]
    for part in ("**What it means.**", "**Look at**", "**Do.**"):
        assert text.count(part) == 1
    series = {part.name for part in parts(promql.parse(RULES[name]["expr"])) if isinstance(part, promql.VectorSelector)}
    assert all(each in text for each in series)
