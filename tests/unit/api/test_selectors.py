"""What a policy's resourceSelectors name."""

import msgspec
import pytest

from argosy.api.policies import PropagationPolicySpec
from argosy.api.selectors import named_kinds, selects_any_kind


def spec(*selectors):
    return msgspec.convert({"resourceSelectors": list(selectors)}, PropagationPolicySpec)


@pytest.mark.parametrize(
    ("selectors", "named", "any_kind"),
    [
        ([], set(), False),
        ([{}], set(), True),
        ([{"apiVersion": "*", "kind": "*"}], set(), True),
        ([{"kind": "Deployment"}], set(), True),
        ([{"apiVersion": "apps/v1"}], set(), True),
        ([{"apiVersion": "apps/*", "kind": "*"}], set(), True),
        ([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}], {("apps", "Deployment")}, False),
        ([{"apiVersion": "apps/*", "kind": "Deployment"}], {("apps", "Deployment")}, False),
        ([{"apiVersion": "v1", "kind": "Secret"}], {("", "Secret")}, False),
        ([{"apiVersion": "v1", "kind": "Secret"}, {"kind": "*"}], {("", "Secret")}, True),
    ],
)
def test_kinds_that_are_named_in_full_and_all_others(selectors, named, any_kind):
    assert named_kinds(spec(*selectors)) == named
    assert selects_any_kind(spec(*selectors)) is any_kind
