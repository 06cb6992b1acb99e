"""Which objects a changed fleet concerns: never one too few, and none for whom nothing can follow."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.copies.placement import placed as placed_in
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.scheduling.triggers import triggers_of
from argosy.plan.scheduling.wakeups import Concern, Wakeups
from tests.unit.plan.scheduling import RESCHEDULE_DEFAULTS, cluster, fleet, policy, taint
from tests.unit.plan.worlds import DEPLOYMENTS, deployment

WHEN = {"rescheduleWhen": {"clusterLabelsChanged": True, "clusterJoined": True, "clusterAPIResourcesChanged": True}}


def annotations_of(members, rule, annotations=None):
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
    return {keys.SCHEDULING_TRIGGERS: triggers_of(template, annotations or {}, rule, DEPLOYMENTS, members).text}


def asked(rule, before, after, **further):
    annotations = {**annotations_of(before, rule, further), **further}
    return Wakeups(after).concern(rule, annotations, frozenset(before.names)) is not Concern.NONE


def concerned(rule, after, annotations):
    return Wakeups(after).concern(rule, annotations, frozenset(after.names)) is not Concern.NONE


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


def test_a_record_that_read_all_labels_is_concerned_by_any():
    """As records were made before they said what they read."""
    before, after = fleet(zone("a", "x")), fleet(zone("a", "y"))
    rule = policy(reschedulePolicy=WHEN)
    record = msgspec.json.decode(annotations_of(before, rule)[keys.SCHEDULING_TRIGGERS])
    record |= {"clusters": before.hashes.fingerprint, "reads": None}
    assert concerned(rule, after, {keys.SCHEDULING_TRIGGERS: msgspec.json.encode(record).decode()})


def test_a_policy_that_reads_another_label_than_the_last_decision_did_counts_by_what_that_read():
    before, after = fleet(zone("a", "x"), "b"), fleet(zone("a", "y"), "b")
    then, now = policy(reschedulePolicy=WHEN, clusterSelector={"zone": "x"}), policy(reschedulePolicy=WHEN)
    assert concerned(now, after, annotations_of(before, then))
    assert not concerned(then, after, annotations_of(before, now))


def test_who_stays_is_told_from_who_moves():
    members = [zone("a", "x"), zone("b", "x"), zone("c", "y")]
    before, after = fleet(*members), fleet(members[0], zone("b", "y"), members[2])
    divided = policy(
        clusterSelector={"zone": "x"},
        schedulingMode="Divide",
        reschedulePolicy={**WHEN, "replicaRescheduling": {"avoidDisruption": True}},
    )
    copied = policy(clusterSelector={"zone": "x"}, schedulingMode="Duplicate", reschedulePolicy=WHEN)
    best = policy(clusterSelector={"zone": "x"}, schedulingMode="Duplicate", reschedulePolicy=WHEN, maxClusters=1)

    def concern(rule, *clusters):
        return Wakeups(after).concern(rule, annotations_of(before, rule), frozenset(clusters))

    assert concern(divided, "a") is Concern.RECORD
    assert concern(divided, "a", "b") is Concern.PLACEMENT
    assert concern(copied, "a") is Concern.RECORD
    assert concern(copied, "b") is Concern.PLACEMENT
    assert concern(best, "a") is Concern.PLACEMENT


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
    inputs = PassInputs(source=source, type_config=DEPLOYMENTS, fleet=before, policy=rule)
    first = run_locally(inputs).object
    if not first["spec"].get("placements"):
        return
    second = run_locally(msgspec.structs.replace(inputs, existing=first, fleet=after))
    placed = frozenset(placed_in(first["spec"]))
    concern = Wakeups(after).concern(rule, first["metadata"]["annotations"], placed)
    assert (concern is Concern.NONE) == (second.decision is None)
    if concern is Concern.NONE:
        assert second.object is None
    if concern is Concern.RECORD:
        assert second.object is None or second.object["spec"] == first["spec"]
