"""`argosy status --diff`: what is typed, and what is shown."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.types import FederatedObject
from argosy.cli.commands.status import _show_differences, named
from argosy.cli.output.diff import differing
from argosy.cli.output.explanation import Facts as Placement
from argosy.cli.output.explanation import explained
from argosy.cli.output.failures import Failure
from argosy.cli.output.report import Facts, report
from argosy.fleet.snapshot import Fleet
from tests.unit.plan.worlds import DEPLOYMENTS, World, cluster, deployment, override_policy
from tests.unit.plan.worlds import named as by_name

CLUSTERS = (cluster("m1"), cluster("m2"), cluster("m3"))
TAG = {"image": [{"operations": [{"imageComponent": "Tag", "value": "2"}]}]}
WRONG = {"jsonpatch": [{"operator": "remove", "path": "/spec/nothing"}]}


@pytest.fixture
def world():
    rules = [
        {"targetClusters": {"clusters": ["m2"]}, "overriders": TAG},
        {"targetClusters": {"clusters": ["m3"]}, "overriders": WRONG},
    ]
    source = deployment(metadata={"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}})
    made = World(source=source, fleet=Fleet.of(CLUSTERS), override_policies=by_name(override_policy(*rules)))
    made.run()
    return made


def facts(world):
    return Facts(
        source=world.source,
        type_config=DEPLOYMENTS,
        federated=msgspec.convert(world.object, FederatedObject),
        collected=None,
        clusters=CLUSTERS,
        fleet_paused=False,
        warnings=(),
    )


@pytest.mark.parametrize(
    ("words", "diff", "meant"),
    [
        (("deployment/web", None, None), True, ("deployment", "web", None)),
        (("deployment/web", "m2", None), True, ("deployment", "web", "m2")),
        (("deployment", "web", None), True, ("deployment", "web", None)),
        (("deployment", "web", "m2"), True, ("deployment", "web", "m2")),
        (("deployment", "web", None), False, ("deployment", "web", None)),
    ],
)
def test_a_cluster_may_be_named_behind_it(words, diff, meant):
    assert named(*words, diff=diff) == meant


@pytest.mark.parametrize(
    ("words", "diff"),
    [
        (("deployment/web", "m2", None), False),
        (("deployment", "web", "m2"), False),
        (("deployment/web", "m2", "m3"), True),
    ],
)
def test_one_word_too_many_is_told(words, diff):
    with pytest.raises(Failure, match="one too many"):
        named(*words, diff=diff)


def test_what_is_shown_of_each_cluster(world, capsys):
    _show_differences(differing(facts(world)))
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if ".image" in line)
    assert row.split() == [
        "m2",
        "spec.template.spec.containers[web].image",
        "nginx:1",
        "nginx:2",
        *["OverridePolicy", "differ,", "overrideRules[0]"],
    ]
    assert "m3: its copy stays as it is: OverridePolicy differ, overrideRules[1], cluster m3: jsonpatch: " in shown


def test_only_clusters_it_is_placed_in_have_an_answer(world):
    assert [each.cluster for each in differing(facts(world), "m2")] == ["m2"]
    with pytest.raises(Failure, match="it is not placed in m9: it is placed in m1, m2, m3"):
        differing(facts(world), "m9")


def test_the_report_names_why_a_copy_is_held(world):
    made = report(facts(world))
    (held,) = (each for each in made.clusters if each.name == "m3")
    assert held.propagation == "ApplyOverridesFailed"
    assert held.error.startswith("OverridePolicy differ, overrideRules[1], cluster m3: ")


def test_explain_names_fields_rules_and_held_clusters(world):
    known = Placement(world.source, DEPLOYMENTS, world.object, None, CLUSTERS, ())
    told = explained(known).overrides
    assert told[0] == "m2: spec.template.spec.containers[web].image by OverridePolicy differ, overrideRules[0]"
    assert told[1].startswith("m3: its copy stays as it is: OverridePolicy differ, overrideRules[1]: jsonpatch: ")
    assert explained(known, "m2").overrides == told[:1]
