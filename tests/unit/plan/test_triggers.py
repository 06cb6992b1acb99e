"""When an object is scheduled again, and that the record this rests on stays small."""

import msgspec
import pytest

from argosy.api import keys
from argosy.plan.scheduling import triggers_kubeadmiral as kubeadmiral
from argosy.plan.scheduling.triggers import Verdict, decide, read_record, triggers_of
from tests.unit.plan.scheduling import cluster, fleet, policy, taint, template, type_config

NOTHING = {
    "rescheduleWhen": {
        "policyContentChanged": False,
        "clusterJoined": False,
        "clusterLabelsChanged": False,
        "clusterAPIResourcesChanged": False,
    }
}
MEMBERS = ("a", "b", "c")
WIDGETS = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}


def now(body=None, annotations=None, by=None, members=None):
    members = fleet(*MEMBERS) if members is None else members
    return triggers_of(body or template(3), annotations or {}, by, type_config(), members)


def when(**allowed):
    anywhere = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
    return policy(
        preferredClusterAffinity=[anywhere],
        reschedulePolicy={"rescheduleWhen": NOTHING["rescheduleWhen"] | allowed},
    )


def changed_fleet(name, **facts):
    return fleet(*(cluster(member, **facts) if member == name else member for member in MEMBERS))


def test_what_was_never_scheduled_is_scheduled():
    assert decide(None, now(by=policy()), policy(), placed=False).schedule
    assert decide("", now(by=policy()), policy(), placed=True).schedule


def test_nothing_changed_schedules_nothing():
    stored = now(by=policy()).text
    found = decide(stored, now(by=policy()), policy(), placed=True)
    assert (found.schedule, found.deferred) == (False, ())


def test_the_record_does_not_depend_on_the_order_of_clusters():
    assert now(members=fleet("a", "b", "c")).text == now(members=fleet("c", "a", "b")).text


def test_an_object_placed_nowhere_is_tried_again():
    frozen = when()
    assert decide(now(by=frozen).text, now(by=frozen), frozen, placed=False).schedule


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"body": template(4)}, "replicas"),
        ({"body": template(3, resources={"requests": {"cpu": "2"}})}, "request"),
        ({"annotations": {keys.MAX_CLUSTERS: "1"}}, "annotations"),
        ({"annotations": {keys.AUTO_MIGRATION_INFO: '{"estimatedCapacity":{"m1":1}}'}}, "migration"),
    ],
)
def test_what_belongs_to_the_object_always_schedules(changes, name):
    frozen = policy(reschedulePolicy={"disableRescheduling": True}, autoMigration={})
    found = decide(now(by=frozen).text, now(by=frozen, **changes), frozen, placed=True)
    assert found.schedule
    assert name in found.reason


def test_another_policy_always_schedules():
    assert decide(now(by=policy("old")).text, now(by=policy("new")), policy("new"), placed=True).schedule


def test_other_annotations_do_not_matter():
    assert not decide(now(by=policy()).text, now(annotations={"a": "b"}, by=policy()), policy(), placed=True).schedule


CLUSTER_CHANGES = [
    ("clusterLabelsChanged", changed_fleet("b", labels={"zone": "x"})),
    ("clusterAPIResourcesChanged", changed_fleet("b", apis=[WIDGETS])),
    ("clusterJoined", fleet(*MEMBERS, "new")),
]


@pytest.mark.parametrize(("setting", "after"), CLUSTER_CHANGES)
def test_cluster_changes_schedule_where_the_policy_asks_for_it(setting, after):
    asked, frozen = when(**{setting: True}), when()
    assert decide(now(by=asked).text, now(by=asked, members=after), asked, placed=True).reason == setting
    found = decide(now(by=frozen).text, now(by=frozen, members=after), frozen, placed=True)
    assert not found.schedule
    assert found.deferred_reasons == f"{setting}:false"


def test_a_label_that_nothing_reads_schedules_nothing():
    asked, after = when(clusterLabelsChanged=True), changed_fleet("b", labels={"team": "x"})
    assert decide(now(by=asked).text, now(by=asked, members=after), asked, placed=True) == Verdict(False)
    own = {keys.CLUSTER_SELECTOR: "{}"}
    found = decide(
        now(annotations=own, by=asked).text, now(annotations=own, by=asked, members=after), asked, placed=True
    )
    assert found.reason == "clusterLabelsChanged"


@pytest.mark.parametrize(
    "rule",
    [
        {"clusterSelector": {"team": "x"}},
        {"clusterAffinity": [{"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}]},
        {"topologySpreadConstraints": [{"topologyKey": "team"}]},
        {"workloadAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "team"}]}},
        {
            "workloadAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "workloadAffinityTerm": {"topologyKey": "team"}}
                ]
            }
        },
        {"locality": {"near": [{"topologyKey": "team", "value": "x"}]}},
        {"failureDomain": {"topologyKey": "team"}},
        {"schedulingProfile": "mine"},
    ],
)
def test_a_label_that_the_policy_reads_does(rule):
    asked = policy(reschedulePolicy={"rescheduleWhen": {"clusterLabelsChanged": True}}, **rule)
    after = changed_fleet("b", labels={"team": "x"})
    assert decide(now(by=asked).text, now(by=asked, members=after), asked, placed=True).reason == "clusterLabelsChanged"


@pytest.mark.parametrize(
    ("rule", "label"), [({"computePower": {}}, keys.COMPUTE_POWER), ({"cost": {}}, keys.PRICE_PER_CORE_HOUR)]
)
def test_so_does_one_that_declares_what_the_policy_goes_by(rule, label):
    asked = policy(reschedulePolicy={"rescheduleWhen": {"clusterLabelsChanged": True}}, **rule)
    after = changed_fleet("b", labels={label: "2"})
    assert decide(now(by=asked).text, now(by=asked, members=after), asked, placed=True).schedule


def test_a_cluster_counts_as_joined_once_it_can_be_chosen():
    """Between joining and the first look at what it serves nothing can be placed there."""
    asked = when(clusterJoined=True)
    stored, unknown = now(by=asked).text, now(by=asked, members=fleet(*MEMBERS, cluster("new", apis=[])))
    assert decide(stored, unknown, asked, placed=True).reason == ""
    known = now(by=asked, members=fleet(*MEMBERS, "new"))
    assert decide(stored, known, asked, placed=True).reason == "clusterJoined"
    assert decide(unknown.text, known, asked, placed=True).reason == "clusterJoined"


def test_a_changed_taint_schedules_in_any_case():
    after = changed_fleet("b", taints=[taint("down", "NoExecute")])
    assert decide(now(by=when()).text, now(by=when(), members=after), when(), placed=True).schedule


def test_a_cluster_that_left_schedules():
    assert decide(now(by=when()).text, now(by=when(), members=fleet("a", "b")), when(), placed=True).schedule


def test_changed_policy_content_schedules_unless_held_back():
    edited = policy(maxClusters=2)
    assert decide(now(by=policy()).text, now(by=edited), edited, placed=True).reason == "policyContentChanged"
    held = policy(maxClusters=2, reschedulePolicy=NOTHING)
    found = decide(now(by=policy()).text, now(by=held), held, placed=True)
    assert found.deferred == ("policyContentChanged:false",)


def test_auto_migration_settings_are_no_content():
    edited = policy(autoMigration={"keepUnschedulableReplicas": True})
    assert not decide(now(by=policy()).text, now(by=edited), edited, placed=True).schedule


def test_a_sticky_policy_holds_back_everything():
    frozen = policy(reschedulePolicy={"disableRescheduling": True})
    after = changed_fleet("a", taints=[taint("down", "NoExecute")])
    found = decide(now(by=frozen).text, now(by=frozen, members=after), frozen, placed=True)
    assert (found.schedule, found.deferred) == (False, ("disableRescheduling:true",))


@pytest.mark.parametrize(
    "stated", [None, {}, {"replicaRescheduling": {"avoidDisruption": False}}, {"rescheduleWhen": {}}]
)
def test_what_a_policy_does_not_say_of_rescheduling_has_its_default(stated):
    silent, edited = policy(reschedulePolicy=stated), policy(reschedulePolicy=stated, maxClusters=2)
    stored = now(by=silent).text
    tainted = changed_fleet("a", taints=[taint("down", "NoExecute")])
    assert decide(stored, now(by=silent, members=tainted), silent, placed=True).reason == "clusterTaintsChanged"
    assert decide(stored, now(by=edited), edited, placed=True).reason == "policyContentChanged"
    found = decide(stored, now(by=silent, members=fleet(*MEMBERS, "new")), silent, placed=True)
    assert (found.schedule, found.deferred) == (False, ("clusterJoined:false",))


def test_the_older_sticky_field_holds_back_too():
    frozen = policy(stickyCluster=True)
    found = decide(now(by=frozen).text, now(by=frozen, members=fleet("a")), frozen, placed=True)
    assert found.deferred == ("disableRescheduling:true",)


def test_a_deferred_change_is_found_again_when_the_policy_allows_it():
    stored, joined = now(by=when()).text, fleet(*MEMBERS, "new")
    assert not decide(stored, now(by=when(), members=joined), when(), placed=True).schedule
    allows = when(policyContentChanged=True)
    assert decide(stored, now(by=allows, members=joined), allows, placed=True).schedule


def test_a_record_reads_back_in_the_form_it_was_written_in():
    assert read_record(now(by=policy()).text) == now(by=policy()).record
    assert read_record(now().text_unanswered).unanswered
    assert isinstance(read_record(taken_over(policy())), kubeadmiral.Record)
    assert [read_record(text) for text in (None, "", "{", '{"clusters":{}}')] == [None] * 4


def test_an_unreadable_record_schedules():
    for stored in ("{", "[]", '{"annotations":1}', '{"schedulingAnnotationsHash":5}'):
        assert decide(stored, now(by=policy()), policy(), placed=True).schedule


def test_without_a_policy_any_change_schedules():
    assert decide(now().text, now(members=fleet(*MEMBERS, "new")), None, placed=True).schedule
    assert not decide(now().text, now(), None, placed=True).schedule


def test_the_record_stays_below_1_kb_at_500_clusters():
    large = fleet(*(cluster(f"member-cluster-{number:04}", labels={"n": str(number)}) for number in range(500)))
    assert len(now(by=policy("p" * 63), members=large).text) <= 1024
    for count in range(1, 30):
        reading = policy("p" * 63, clusterSelector={f"example.com/label-{number}": "x" for number in range(count)})
        assert len(now(by=reading, members=large).text) <= 1024


def test_heartbeats_and_capacity_are_no_trigger():
    after = changed_fleet("b", free="1", ready=False)
    assert now(members=after).text == now().text


# Objects taken over from KubeAdmiral.


def taken_over(by, members=MEMBERS, body=None):
    inputs = now(body=body, by=by).inputs
    return kubeadmiral.record_of(inputs, [cluster(name) for name in members]).text


def test_taking_over_reschedules_nothing():
    assert not decide(taken_over(policy()), now(by=policy()), policy(), placed=True).schedule


def test_a_change_beside_the_takeover_is_noticed():
    stored = taken_over(policy())
    assert decide(stored, now(body=template(9), by=policy()), policy(), placed=True).schedule
    tainted = changed_fleet("a", taints=[taint("x")])
    assert decide(stored, now(by=policy(), members=tainted), policy(), placed=True).schedule
    joined = decide(stored, now(by=when(), members=fleet(*MEMBERS, "new")), when(), placed=True)
    assert joined.deferred == ("policyContentChanged:false", "clusterJoined:false")


def test_the_kubeadmiral_text_is_what_kubeadmiral_writes():
    record = kubeadmiral.record_of(
        now(by=policy(schedulingMode="", reschedulePolicy={"disableRescheduling": True})).inputs, []
    )
    assert record.text == (
        '{"schedulingAnnotationsHash":"1450640401","replicaCount":3,'
        '"resourceRequest":{"millicpu":0,"memory":0,"ephemeralStorage":0,"scalarResources":null},'
        '"policyName":"web","policyContentHash":"2682567400",'
        '"clusters":[],"clusterLabelsHashes":{},"clusterTaintsHashes":{},"clusterAPIResourceTypesHashes":{}}'
    )
    assert msgspec.json.decode(record.text, type=kubeadmiral.Record) == record
