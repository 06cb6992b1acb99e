"""Webhook payloads: what is asked in both forms, and that no answer, however odd, does more than it may."""

import msgspec
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import Ask, Profile, Ranked, Remote, Reply
from argosy.plan.scheduling.schedule import decide
from argosy.plan.scheduling.unit import Affinity, PreferredTerm, ResourceRequest, Unit
from argosy.plan.scheduling.webhook import (
    BATCH,
    NO_ANSWER,
    SINGLE,
    UNSAID,
    Answer,
    calls,
    cluster_payload,
    failed,
    payload_version,
    question_of,
    read,
    reply,
    scheduling_unit,
    url_of,
)
from argosy.plugins import cluster

CLUSTERS = {name: cluster(name, labels={"region": name}) for name in ("m1", "m2", "m3")}
FLEET = Fleet.of(CLUSTERS.values())
VERSIONS = (SINGLE, BATCH)
WEB = Unit(name="web")


def asking(phase, rows=(0, 1, 2), scores=(), unit=WEB, fleet=FLEET):
    column = np.array(scores or [0] * len(rows), dtype=np.int64)
    return question_of(Ask(Remote("hook", phase), unit, fleet, Ranked(np.array(rows, dtype=np.intp), column)))


def bodies(question, version=SINGLE):
    return [orjson.loads(call.body) for call in requests(question, version)]


def requests(question, version=SINGLE):
    return calls(question, lambda name: cluster_payload(CLUSTERS[name], version), version)


def answered(question, *texts, version=SINGLE):
    """The reply to these bodies, one a request."""
    made = requests(question, version)
    encoded = [text if isinstance(text, bytes) else orjson.dumps(text) for text in texts]
    return replied(question, [Answer(call, body) for call, body in zip(made, encoded, strict=True)], version)


def replied(question, answers, version):
    return reply(question, [read(question, answer, version) for answer in answers])


def names(shown):
    return [each["metadata"]["name"] for each in shown]


@pytest.mark.parametrize(
    ("advertised", "chosen"),
    [
        (["v1alpha1"], SINGLE),
        (["v1alpha1-batch", "v1alpha1"], BATCH),
        (["v1alpha1", "v1alpha1-batch"], SINGLE),
        (["v9", "v1alpha1"], SINGLE),
        (["v9"], None),
        ([], None),
    ],
)
def test_the_first_known_version_is_spoken(advertised, chosen):
    assert payload_version(advertised) == chosen


@pytest.mark.parametrize(
    ("prefix", "path", "url"),
    [
        ("http://h/p", "filter", "http://h/p/filter"),
        ("http://h/p/", "/filter", "http://h/p/filter"),
        ("http://h", "/a/b", "http://h/a/b"),
        ("", "filter", "filter"),
    ],
)
def test_prefix_and_path_meet_at_one_slash(prefix, path, url):
    assert url_of(prefix, path) == url


class TestRequests:
    def test_one_call_a_cluster(self):
        for phase in ("filter", "score"):
            asked = bodies(asking(phase, rows=(0, 2)))
            assert [body.keys() for body in asked] == [{"schedulingUnit", "cluster"}] * 2
            assert names(body["cluster"] for body in asked) == ["m1", "m3"]
            assert asked[0]["schedulingUnit"]["name"] == "web"

    def test_batches_of_a_hundred(self):
        fleet = Fleet.of(cluster(f"c{number:03}") for number in range(250))
        question = asking("filter", rows=range(250), fleet=fleet)
        made = calls(question, lambda name: cluster_payload(cluster(name), BATCH), BATCH)
        assert [len(call.about) for call in made] == [100, 100, 50]
        assert names(orjson.loads(made[2].body)["clusters"])[0] == "c200"

    def test_a_batch_has_no_list_of_apis(self):
        assert "apiResourceTypes" in orjson.loads(cluster_payload(CLUSTERS["m1"], SINGLE))["status"]
        assert "apiResourceTypes" not in orjson.loads(cluster_payload(CLUSTERS["m1"], BATCH))["status"]

    def test_select_asks_once_in_both_forms_and_in_the_order_of_the_ranking(self):
        for version in VERSIONS:
            (body,) = bodies(asking("select", rows=(2, 0), scores=(7, -3)), version)
            assert [(each["cluster"]["metadata"]["name"], each["score"]) for each in body["clusterScores"]] == [
                ("m3", 7),
                ("m1", -3),
            ]

    def test_a_cluster_that_has_gone_is_not_asked_about_and_not_taken(self):
        question = asking("filter")
        made = calls(question, lambda name: None if name == "m2" else b"{}", SINGLE)
        assert [call.about for call in made] == [(0,), (2,)]
        told = replied(question, [Answer(call, b'{"selected": true}') for call in made], SINGLE)
        assert told.passed.tolist() == [True, False, True]
        assert told.errors == {1: f"webhookPlugin(hook): {NO_ANSWER}"}

    def test_everything_a_unit_states_is_in_its_payload(self):
        unit = Unit(
            group="apps",
            version="v1",
            kind="Deployment",
            resource="deployments",
            namespace="n",
            name="web",
            mode="Divide",
            desired_replicas=0,
            request=ResourceRequest(1500, 2**30, 0, {"nvidia.com/gpu": 2}),
            current={"m2": 3, "m1": None},
            max_clusters=0,
            cluster_names=frozenset({"m2", "m1"}),
            min_replicas={"m1": 1},
            max_replicas={"m1": 0},
            weights={"m2": 0},
            priorities={"m1": 9},
            affinity=Affinity(preferred=(PreferredTerm(1),)),
        )
        assert orjson.loads(msgspec.json.encode(scheduling_unit(unit))) == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "resource": "deployments",
            "namespace": "n",
            "name": "web",
            "schedulingMode": "Divide",
            "desiredReplicas": 0,
            "resourceRequest": {"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "0", "nvidia.com/gpu": "2"},
            "currentClusters": ["m1", "m2"],
            "currentReplicaDistribution": {"m1": 0, "m2": 3},
            "maxClusters": 0,
            "placements": [
                {"cluster": "m1", "preferences": {"minReplicas": 1, "maxReplicas": 0}},
                {"cluster": "m2", "preferences": {"weight": 0}},
            ],
        }


class TestAnswers:
    def test_a_filter_refuses(self):
        for version, texts in (
            (SINGLE, [{"selected": True}, {"selected": False}, {}]),
            (BATCH, [{"clusters": [{"name": "m1", "selected": True}, {"name": "m3"}, {"name": "m2", "error": ""}]}]),
        ):
            told = answered(asking("filter"), *texts, version=version)
            assert told.passed.tolist() == [True, False, False]
            assert told.errors == {}

    def test_scores_are_by_cluster(self):
        batch = {"clusters": [{"name": "m3", "score": 3}, {"name": "m1", "score": -1}, {"name": "m2"}]}
        for version, texts in ((SINGLE, [{"score": -1}, {}, {"score": 3}]), (BATCH, [batch])):
            assert answered(asking("score"), *texts, version=version).scores.tolist() == [-1, 0, 3]

    def test_a_selection_keeps_the_order_given(self):
        question = asking("select", rows=(2, 0, 1))
        assert answered(question, {"selectedClusterNames": ["m2", "m3"]}).rows.tolist() == [1, 2]
        assert answered(question, {"selectedClusterNames": None}).rows.tolist() == []

    @pytest.mark.parametrize("names", [["m4"], ["m1", "m1"], ["m2", ""]])
    def test_a_selection_of_others_or_twice_is_an_error(self, names):
        told = answered(asking("select"), {"selectedClusterNames": names})
        assert told.rows is None
        assert told.error == f"it selected {names[-1]!r}, which is not among the clusters it was given"

    def test_a_filter_that_errs_excludes_where_nothing_runs_yet(self):
        texts = [{"selected": True}, {"error": "dunno"}, {"selected": True}]
        told = answered(asking("filter"), *texts)
        assert told.passed.tolist() == [True, False, True]
        assert told.errors == {1: "webhookPlugin(hook): dunno"}

    def test_a_filter_that_errs_about_a_cluster_in_use_decides_nothing(self):
        """Not to know is no reason to take an object away."""
        texts = [{"selected": True}, {"error": "dunno"}, {"selected": True}]
        told = answered(asking("filter", unit=Unit(current={"m2": None})), *texts)
        assert told == Reply(error="webhookPlugin(hook): dunno (asked about m2, where the object is)")

    def test_one_score_that_is_missing_is_none(self):
        assert answered(asking("score"), {"score": 1}, {"error": "dunno"}, {"score": 1}) == Reply(error="dunno")
        some = {"clusters": [{"name": "m1", "score": 1}, {"name": "m3", "score": 1}]}
        assert answered(asking("score"), some, version=BATCH) == Reply(error=f"{NO_ANSWER}: m2")

    def test_a_batch_about_others_is_no_answer(self):
        strange = {"clusters": [{"name": "m1", "selected": True}, {"name": "x", "selected": True}]}
        told = answered(asking("filter"), strange, version=BATCH)
        assert not told.passed.any()
        assert set(told.errors.values()) == {"webhookPlugin(hook): it answered about 'x', which it was not asked about"}
        twice = {"clusters": [{"name": "m1", "selected": True}] * 2}
        assert not answered(asking("filter"), twice, version=BATCH).passed.any()

    @pytest.mark.parametrize("score", [2**60, -(2**60), 10**40])
    def test_scores_that_cannot_be_added_up_are_refused(self, score):
        told = answered(asking("score", rows=(0,)), b'{"score": %d}' % score)
        assert told.scores is None
        assert "out of range" in told.error or "cannot be read" in told.error

    def test_long_texts_of_others_are_cut_to_one_line(self):
        told = answered(asking("filter", rows=(0,)), {"error": "a\nb\x07" + "x" * 10_000})
        assert told.errors[0].startswith("webhookPlugin(hook): a b xxx")
        assert len(told.errors[0]) < 250

    def test_different_errors_for_every_cluster_become_few(self):
        fleet = Fleet.of(cluster(f"c{number:03}") for number in range(300))
        question = asking("filter", rows=range(300), fleet=fleet)
        made = calls(question, lambda name: b"{}", SINGLE)
        answers = [Answer(call, orjson.dumps({"error": f"e{call.about[0]}"})) for call in made]
        told = replied(question, answers, SINGLE)
        assert len(told.errors) == 300
        assert len(set(told.errors.values())) == 9

    def test_a_call_that_failed_says_so(self):
        question = asking("score", rows=(0,))
        assert replied(question, [Answer(*requests(question), error="request failed: x")], SINGLE).error == (
            "request failed: x"
        )
        assert failed(asking("filter"), "why").error == "webhookPlugin(hook): why"
        assert failed(asking("select"), "why").error == "why"


@pytest.mark.parametrize("phase", ["filter", "score", "select"])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_blanks_is_an_error(phase, version):
    question = asking(phase, rows=(0, 2))
    told = replied(question, [Answer(call, b'{"error":" "}') for call in requests(question, version)], version)
    if phase == "filter":
        assert set(told.errors) == {0, 1}
        assert not told.passed.any()
    else:
        assert told == Reply(error=UNSAID)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["selected", "score", "error", "selectedClusterNames", "clusters", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
any_body = st.binary(max_size=64) | json_values.map(lambda value: msgspec.json.encode(value))


@settings(deadline=None)
@given(st.sampled_from(["filter", "score", "select"]), st.sampled_from(VERSIONS), st.data())
def test_no_answer_does_more_than_it_may(phase, version, data):
    """Whatever comes back, the reply is one the framework can use: aligned, chosen from what was asked about, or an error."""
    question = asking(phase, rows=(0, 2))
    made = requests(question, version)
    told = replied(question, [Answer(call, data.draw(any_body)) for call in made], version)
    if told.error:
        assert told == Reply(error=told.error)
    elif phase == "filter":
        assert told.passed.shape == (2,)
        assert not any(told.passed[at] for at in told.errors)
    elif phase == "score":
        assert told.scores.shape == (2,)
    else:
        assert set(told.rows.tolist()) <= {0, 2}
        assert len(set(told.rows.tolist())) == len(told.rows)


@settings(deadline=None)
@given(st.data())
def test_a_decision_ends_whatever_a_webhook_says(data):
    profile = Profile(
        filters=(Remote("hook", "filter"),), scores=(Remote("hook", "score"),), selects=(Remote("hook", "select"),)
    )
    steps = decide(Unit(current={"m1": None}), FLEET, profile)
    try:
        ask = next(steps)
        while True:
            question = question_of(ask)
            answers = [Answer(call, data.draw(any_body)) for call in requests(question)]
            ask = steps.send(replied(question, answers, SINGLE))
    except StopIteration as done:
        decision = done.value
    assert set(decision.placements) <= set(FLEET.names)
    if decision.unschedulable:
        assert decision.placements == {"m1": None}
        assert decision.message


class TestSameQuestion:
    def test_scores_of_another_moment_do_not_make_another_question(self):
        assert asking("select", rows=(0, 1), scores=(1, 2)).covers(asking("select", rows=(1, 0), scores=(9, 9)))

    @pytest.mark.parametrize(
        "other",
        [
            asking("score"),
            asking("filter", rows=(0, 1)),
            asking("filter", unit=Unit(name="web", desired_replicas=2)),
            asking("filter", unit=Unit(name="web", current={"m1": None})),
            asking("filter", fleet=Fleet.of([*CLUSTERS.values(), cluster("m4")])),
        ],
    )
    def test_other_clusters_units_and_phases_do(self, other):
        assert not asking("filter").covers(other)
