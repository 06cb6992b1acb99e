"""The further rules of a policy: read from its YAML's shape, and refused with the field's path where they make no sense."""

import msgspec
import pytest

from argosy.api import crds
from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm, PreferredTerm, PropagationPolicySpec
from argosy.plan.scheduling.rules import NO_RULES, RuleError, rules_of
from argosy.plan.scheduling.unit import UnitError, unit_of
from argosy.server.crd.validation import compile_schema
from tests.unit.plan.scheduling import policy, template, type_config

REGION = "topology.kubernetes.io/region"
TERM = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": REGION}


def rules(**spec):
    return rules_of(msgspec.convert(spec, PropagationPolicySpec))


def test_a_policy_without_rules_has_none():
    assert rules() is NO_RULES
    assert unit_of(template(), {}, {}, policy(), type_config()).rules is NO_RULES


def test_rules_reach_the_unit():
    stated = policy(
        topologySpreadConstraints=[{"topologyKey": REGION, "minDomains": 2, "maxSkew": 1}],
        workloadAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        workloadAffinity={
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "workloadAffinityTerm": TERM}]
        },
        cost={"maxPricePerCoreHour": "0.04"},
        computePower={},
        locality={"near": [{"topologyKey": REGION, "value": "eu"}]},
        failureDomain={"topologyKey": REGION},
    )
    found = unit_of(template(), {}, {}, stated, type_config()).rules
    assert (found.spread[0].min_domains, found.spread[0].when_unsatisfiable) == (2, "DoNotSchedule")
    assert found.anti_affinity[0].selector.matches({"app": "cache"})
    assert found.affinity == ()
    assert found.preferred[0].weight == 7
    assert (found.cost.prefer_lowest, found.cost.max_price) == (True, 40_000_000)
    assert found.compute_power.normalize_capacity
    assert found.failure_domain.max_unready_percent == 50


def test_preferred_cluster_affinity_of_the_policy_is_replaced_by_the_annotation():
    term = {"matchExpressions": [{"key": "ssd", "operator": "Exists", "values": []}]}
    stated = policy(preferredClusterAffinity=[{"weight": 10, "preference": term}])
    affinity = unit_of(template(), {}, {}, stated, type_config()).affinity
    requirement = ClusterSelectorRequirement("ssd", "Exists")
    assert affinity.preferred == (PreferredTerm(10, ClusterSelectorTerm((requirement,))),)
    assert affinity.required is None
    annotation = {"kubeadmiral.io/affinity": '{"clusterAffinity":{}}'}
    assert unit_of(template(), annotation, {}, stated, type_config()).affinity.preferred == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"topologySpreadConstraints": [{"topologyKey": REGION, "minDomains": 3, "maxDomains": 2}]},
            "topologySpreadConstraints[0].minDomains: 3 is greater than maxDomains, 2",
        ),
        ({"topologySpreadConstraints": [{"topologyKey": REGION}]}, "one of minDomains, maxDomains and maxSkew"),
        ({"topologySpreadConstraints": [{"topologyKey": "a b", "maxSkew": 1}]}, "[0].topologyKey: 'a b'"),
        ({"topologySpreadConstraints": [{"topologyKey": REGION, "maxSkew": 0}]}, "[0].maxSkew: 0 is less than 1"),
        (
            {"topologySpreadConstraints": [{"topologyKey": REGION, "maxSkew": 1, "whenUnsatisfiable": "Never"}]},
            "whenUnsatisfiable: 'Never' is neither",
        ),
        (
            {"workloadAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": REGION}]}},
            "workloadAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: required",
        ),
        (
            {
                "workloadAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "workloadAffinityTerm": TERM}]
                }
            },
            "[0].weight: 0 is not between 1 and 100",
        ),
        (
            {
                "workloadAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}
                    ]
                }
            },
            "not a valid label selector operator",
        ),
        ({"cost": {"maxPricePerCoreHour": "dear"}}, "cost.maxPricePerCoreHour: 'dear' is not a price"),
        ({"locality": {}}, "locality.near: at least one label is needed"),
        ({"failureDomain": {"topologyKey": REGION, "maxUnreadyPercent": 100}}, "failureDomain.maxUnreadyPercent"),
        ({"failureDomain": {}}, "failureDomain.topologyKey"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_by_its_path(spec, message):
    with pytest.raises(RuleError) as refused:
        rules(**spec)
    assert message in str(refused.value)
    with pytest.raises(UnitError, match="PropagationPolicy web: spec"):
        unit_of(template(), {}, {}, policy(**spec), type_config())


def test_katalyst_resources_count_only_where_support_is_on():
    reclaimed = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
    asks = template(resources={"requests": {reclaimed: "1k"}})
    assert unit_of(asks, {}, {}, policy(), type_config()).request.scalars == {}
    assert unit_of(asks, {}, {}, policy(), type_config(), katalyst=True).request.scalars == {reclaimed: 1000}


EVERYTHING = {
    "schedulingMode": "Divide",
    "preferredClusterAffinity": [{"weight": 1, "preference": {"matchExpressions": []}}],
    "topologySpreadConstraints": [{"topologyKey": REGION, "minDomains": 1, "maxDomains": 2, "maxSkew": 1}],
    "workloadAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
    "workloadAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "workloadAffinityTerm": TERM}]
    },
    "computePower": {"normalizeCapacity": True, "preferConsistent": False},
    "cost": {"preferLowest": False, "maxPricePerCoreHour": "0.04"},
    "locality": {"near": [{"topologyKey": REGION, "value": "eu"}]},
    "failureDomain": {"topologyKey": REGION, "maxUnreadyPercent": 30, "whenExceeded": "DoNotSchedule"},
}


@pytest.mark.parametrize("kind", ["PropagationPolicy", "ClusterPropagationPolicy"])
def test_the_schemas_of_both_policies_know_every_rule(kind):
    [manifest] = [crd for crd in crds.manifests() if crd["spec"]["names"]["kind"] == kind]
    schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    check = compile_schema(schema)
    assert not check(EVERYTHING)
    assert EVERYTHING.keys() <= schema["properties"].keys()
    wrong = {**EVERYTHING, "topologySpreadConstraints": [{"topologyKey": "", "maxSkew": 0}]}
    assert len(check(wrong)) == 2
    rules(**EVERYTHING)
