"""The policies of docs/scheduling.md are ones the API server takes and scheduling understands."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from argosy.api import crds
from argosy.api.policies import PropagationPolicySpec
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.rules import rules_of
from argosy.server.crd.validation import compile_schema

TEXT = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text()
EXAMPLES = [yaml.safe_load(block)["spec"] for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]
SCHEMA = next(
    manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for manifest in crds.manifests()
    if manifest["spec"]["names"]["kind"] == "PropagationPolicy"
)


@pytest.mark.parametrize("spec", EXAMPLES, ids=lambda spec: list(spec)[-1])
def test_an_example_is_a_policy(spec):
    assert not compile_schema(SCHEMA)(spec)
    assert spec.keys() <= SCHEMA["properties"].keys()
    rules_of(msgspec.convert(spec, PropagationPolicySpec))


def test_every_plugin_is_described():
    for name in (*IN_TREE.filters, *IN_TREE.scores, *IN_TREE.selects):
        assert name in TEXT, name
