"""Which objects a changed fleet concerns: never one too few, and none for whom nothing can follow."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.pipeline import federate
from argosy.plan.triggers import triggers_of
from argosy.plan.wakeups import Wakeups
from tests.unit.plan.scheduling import RESCHEDULE_DEFAULTS, cluster, fleet, policy, taint
from tests.unit.plan.worlds import DEPLOYMENTS, deployment

WHEN = {"rescheduleWhen": {"clusterLabelsChanged": True, "clusterJoined": True, "clusterAPIResourcesChanged": True}}


def annotations_of(members, rule):
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
    return {keys.SCHEDULING_TRIGGERS: triggers_of(template, {}, rule, DEPLOYMENTS, members).text}


def asked(rule, before, after, **further):
    wakeups = Wakeups()
    wakeups.begin(before)
    wakeups.begin(after)
    return wakeups.concerned(rule, {**annotations_of(before, rule), **further})


def zone(name, value, **more):
    return cluster(name, labels={"zone": value}, **more)


def test_a_policy_that_does_not_reschedule_for_labels_is_left_alone():
    before, after = fleet(zone("a", "x")), fleet(zone("a", "y"))
    assert not asked(policy(reschedulePolicy=RESCHEDULE_DEFAULTS), before, after)


def test_a_label_that_no_selector_reads_concerns_nobody():
    before, after = fleet(zone("a", "x"), "b"), fleet(zone("a", "y"), "b")
    assert not asked(policy(reschedulePolicy=WHEN), before, after)
    assert not asked(policy(reschedulePolicy=WHEN, clusterSelector={"tier": "gold"}), before, after)


def test_a_label_that_a_selector_or_a_preference_reads_does():
    before, after = fleet(zone("a", "x"), "b"), fleet(zone("a", "y"), "b")
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
    for choice in (
        {"clusterSelector": {"zone": "x"}},
        {"clusterAffinity": [term]},
        {"preferredClusterAffinity": [{"weight": 5, "preference": term}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        {"schedulingProfile": "mine"},
    ):
        assert asked(policy(reschedulePolicy=WHEN, **choice), before, after), choice


def test_taints_and_joining_clusters_do():
    before = fleet("a", "b")
    assert asked(policy(reschedulePolicy=WHEN), before, fleet("a", cluster("b", taints=[taint("dedicated")])))
    assert asked(policy(reschedulePolicy=WHEN), before, fleet("a", "b", "c"))
    assert asked(policy(reschedulePolicy=WHEN), before, fleet("a"))


def test_an_object_that_is_held_comes_back_or_chooses_for_itself_is_looked_at():
    before, after = fleet(zone("a", "x")), fleet(zone("a", "y"))
    rule = policy(reschedulePolicy=WHEN)
    for annotation in (keys.HELD, keys.FAILBACK):
        assert asked(rule, before, after, **{annotation: "{}"})
    assert asked(rule, before, after, **{keys.CLUSTER_SELECTOR: '{"zone":"x"}'})
    assert asked(rule, before, after, **{keys.SCHEDULING_TRIGGERS: "{}"})
    assert asked(None, before, after)


def test_changes_that_concern_nobody_add_up_to_none_and_one_that_was_missed_is_looked_at():
    fleets = [fleet(zone("a", value), "b") for value in "xyz"]
    rule = policy(reschedulePolicy=WHEN)
    record = annotations_of(fleets[0], rule)
    wakeups = Wakeups()
    for members in fleets:
        wakeups.begin(members)
        assert not wakeups.concerned(rule, record)
    late = Wakeups()
    late.begin(fleets[1])
    late.begin(fleets[2])
    assert late.concerned(rule, record)


labels = st.dictionaries(st.sampled_from(["zone", "tier"]), st.sampled_from(["x", "y"]))
selectors = st.dictionaries(st.sampled_from(["zone", "tier"]), st.sampled_from(["x", "y"]), max_size=1)


@given(
    st.lists(labels, min_size=1, max_size=4),
    st.lists(labels, min_size=1, max_size=4),
    selectors,
    st.booleans(),
    st.sampled_from(["Duplicate", "Divide"]),
)
def test_whoever_is_left_alone_would_have_stayed(then, now, selector, reschedules, mode):
    def members(all_labels):
        return fleet(*(cluster(f"c{at}", labels=each) for at, each in enumerate(all_labels)))

    before, after = members(then), members(now)
    again = {"replicaRescheduling": {"avoidDisruption": True}, **(WHEN if reschedules else {})}
    rule = policy(schedulingMode=mode, clusterSelector=selector, reschedulePolicy=again)
    source = deployment()
    first = federate(source, None, DEPLOYMENTS, fleet=before, policy=rule).object
    if not first["spec"].get("placements"):
        return
    wakeups = Wakeups()
    wakeups.begin(before)
    wakeups.begin(after)
    if not wakeups.concerned(rule, first["metadata"]["annotations"]):
        second = federate(source, first, DEPLOYMENTS, fleet=after, policy=rule).object
        assert second is None or second["spec"] == first["spec"]
