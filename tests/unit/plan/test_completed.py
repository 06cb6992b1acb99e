"""What a divided Job has done in clusters it left: it counts once, and is not done again."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.copies.placement import after_removal, placed, to_be_removed
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.replicas.completed import NOTHING, Completed, Leaving, Witness, completed_of, with_completed
from tests.unit.plan.scheduling import policy
from tests.unit.plan.test_divide import JOBS, job, members

NAMES = ("m1", "m2", "m3", "m4")
ALL = frozenset(NAMES)
TAINT = [{"key": "broken", "effect": "NoExecute"}]
FAILED = [{"key": keys.UNREADY_TAINT, "effect": "NoExecute"}]
EQUAL = [{"cluster": name, "preferences": {"weight": 1}} for name in NAMES]


# The numbers.


def test_a_copy_on_its_way_out_keeps_its_share_until_it_is_gone():
    left = NOTHING.without({"a": 4}, Witness({"a": 1}, ALL | {"a"}))
    assert left == Completed(0, {"a": Leaving(4, 1)})
    assert (left.accounted, left.done) == (4, 1)
    later = left.settled(["a"], Witness({"a": 3}, frozenset({"a"})))
    assert later == Completed(0, {"a": Leaving(4, 3)})
    assert later.settled([], Witness({}, frozenset({"a"}))) == Completed(3)


def test_a_cluster_that_does_not_answer_is_not_waited_for_and_what_it_does_later_does_not_count():
    left = NOTHING.without({"a": 4}, Witness({"a": 1}))
    assert left == Completed(0, {"a": Leaving(1, 1)})
    assert left.settled(["a"], Witness({"a": 4}, frozenset({"a"}))) == left
    assert left.settled([], Witness({"a": 4}, frozenset({"a"}))) == Completed(1)


def test_what_is_not_known_of_a_copy_is_done_again():
    assert NOTHING.without({"a": 4}, Witness()) == NOTHING


def test_no_member_can_say_more_than_its_share():
    left = NOTHING.without({"a": 4}, Witness({"a": 400}, frozenset({"a"})))
    assert left == Completed(0, {"a": Leaving(4, 4)})


def test_it_is_kept_with_the_object_and_leaves_nothing_behind():
    completed = Completed(3, {"a": Leaving(4, 1), "b": Leaving(2)})
    assert completed_of(with_completed({"x": "y"}, completed)) == completed
    assert with_completed({keys.COMPLETED: "{}", "x": "y"}, NOTHING) == {"x": "y"}
    assert completed_of({keys.COMPLETED: "{nonsense"}) == NOTHING


# Through the pipeline, on clusters that change.


class Place:
    """Clusters with their copies, which are created, removed and worked on as members do it."""

    def __init__(self, parallelism=6, completions=60, joined=NAMES[:3], **spec):
        self.source, self.completions = job(parallelism, completions), completions
        self.policy = policy(**{"placement": EQUAL, "replicasStrategy": "Webster", **spec})
        self.joined, self.tainted, self.failed, self.unready = set(joined), set(), set(), set()
        self.copies, self.gone, self.executed = {}, {}, 0
        self.stored, self.held = None, None

    def fleet(self):
        changed = {name: {"taints": TAINT} for name in self.tainted}
        for name in self.failed:
            changed[name] = {"taints": FAILED}
        for name in self.unready:
            changed.setdefault(name, {})["ready"] = False
        return members(*sorted(self.joined), **changed)

    def step(self, known=True):
        done = {**self.gone, **{name: copy[1] for name, copy in self.copies.items()}} if known else {}
        inputs = PassInputs(
            source=self.source,
            existing=self.stored,
            type_config=JOBS,
            fleet=self.fleet(),
            policy=self.policy,
            done=done,
        )
        outcome = run_locally(inputs)
        self.stored, self.held = outcome.object or self.stored, outcome.held
        for name, share in self.shares.items():
            if name in self.copies:
                assert self.copies[name][0] == share, "a copy's completions never change"
            elif name not in self.unready:
                self.copies[name] = (share, 0)
        for name in self.gone.keys() - set(to_be_removed(self.annotations)):
            del self.gone[name]
        return self

    @property
    def annotations(self):
        return self.stored["metadata"]["annotations"]

    @property
    def completed(self):
        return completed_of(self.annotations)

    @property
    def shares(self):
        found = {}
        for entry in self.stored["spec"].get("overrides", ()):
            for item in entry["clusters"]:
                found[item["cluster"]] = {patch["path"]: patch["value"] for patch in item["patches"]}[
                    "/spec/completions"
                ]
        assert sorted(found) == placed(self.stored["spec"])
        return found

    def remove(self):
        """Members lose the copies that they are to lose, as far as they answer."""
        for name in to_be_removed(self.annotations):
            if name in self.unready and name in self.joined:
                continue
            if name in self.copies:
                self.gone[name] = self.copies.pop(name)[1]
            metadata = {**self.stored["metadata"], "annotations": after_removal(self.annotations, [name])}
            self.stored = {**self.stored, "metadata": metadata}
        return self

    def work(self, name, number):
        share, done = self.copies[name]
        self.executed += min(done + number, share) - done
        self.copies[name] = (share, min(done + number, share))
        return self

    def check(self):
        """Every completion is in exactly one place."""
        given, accounted = sum(self.shares.values()), self.completed.accounted
        assert given + accounted <= self.completions
        if given + accounted < self.completions:
            missing = self.completions - given - accounted
            assert self.held is not None
            told = f"{missing} of {self.completions} completions are in no cluster"
            assert self.held.message.startswith(told) or self.joined <= self.tainted | self.unready


def test_what_a_cluster_has_not_done_is_given_to_another_one_when_its_copy_is_gone():
    place = Place().step()
    assert place.shares == {"m1": 20, "m2": 20, "m3": 20}
    place.work("m3", 5)
    place.joined.add("m4")
    place.tainted.add("m3")
    place.step()
    assert place.shares == {"m1": 20, "m2": 20}
    assert place.completed == Completed(0, {"m3": Leaving(20, 5)})
    assert place.held is None
    place.work("m3", 2).remove().step()
    assert place.shares == {"m1": 20, "m2": 20, "m4": 13}
    assert place.completed == Completed(7)


def test_a_cluster_that_is_back_does_the_rest_although_the_others_have_all_of_the_parallelism():
    place = Place().step().work("m3", 4)
    place.tainted.add("m3")
    place.step().remove().step()
    assert place.held is not None
    assert place.held.message.startswith("16 of 60 completions are in no cluster")
    place.tainted.clear()
    place.step()
    assert place.held is None
    assert place.shares == {"m1": 20, "m2": 20, "m3": 16}


def test_a_cluster_gets_nothing_new_before_its_older_copy_is_gone():
    place = Place().step().work("m3", 4)
    place.tainted.add("m3")
    place.step()
    place.tainted.clear()
    place.step()
    assert place.shares == {"m1": 20, "m2": 20}
    assert place.remove().step().shares == {"m1": 20, "m2": 20, "m3": 16}


def test_a_cluster_that_does_not_answer_is_replaced_at_once():
    place = Place().step().work("m3", 4)
    place.joined.add("m4")
    place.unready.add("m3")
    place.tainted.add("m3")
    place.step()
    assert place.shares == {"m1": 20, "m2": 20, "m4": 16}
    place.work("m3", 16).unready.clear()
    place.step().remove().step()
    assert place.completed == Completed(4)


def test_a_failed_cluster_keeps_what_no_other_cluster_can_take_over():
    place = Place().step().work("m3", 4)
    place.unready.add("m3")
    place.failed.add("m3")
    assert place.step().shares == {"m1": 20, "m2": 20, "m3": 20}
    assert place.held is None
    place.joined.add("m4")
    assert place.step().shares == {"m1": 20, "m2": 20, "m4": 16}


def test_of_a_job_that_has_ended_nothing_is_given_out_any_more():
    for end in ("Complete", "Failed"):
        place = Place().step().work("m3", 4)
        place.source = {**place.source, "status": {"conditions": [{"type": end, "status": "True"}]}}
        place.tainted.add("m3")
        place.joined.add("m4")
        place.step().remove().step()
        assert place.shares == {"m1": 20, "m2": 20}
        assert place.held is None


def test_without_a_policy_what_was_done_is_still_known():
    place = Place().step().work("m1", 20).work("m3", 4)
    named, place.source = place.source, {**place.source, "metadata": {**place.source["metadata"], "labels": {}}}
    place.step().remove()
    place.source = named
    place.step()
    assert place.completed == Completed(24)
    assert sum(place.shares.values()) == 36


actions = st.one_of(
    st.tuples(st.sampled_from(["taint", "untaint", "join"]), st.sampled_from(NAMES)),
    st.tuples(st.just("work"), st.sampled_from(NAMES), st.integers(1, 9)),
    st.tuples(st.just("remove")),
)
outages = st.tuples(st.sampled_from(["unready", "ready"]), st.sampled_from(NAMES))


def _played(script, place):
    for what, *rest in script:
        name = rest[0] if rest else ""
        match what:
            case "taint":
                place.tainted.add(name)
            case "untaint":
                place.tainted.discard(name)
            case "join":
                place.joined.add(name)
            case "unready":
                place.unready.add(name)
            case "ready":
                place.unready.discard(name)
            case "work" if name in place.copies:
                place.work(name, rest[1])
            case "remove":
                place.remove()
        place.step().check()
    place.tainted.clear()
    place.unready.clear()
    place.joined |= ALL
    for _ in range(4):
        place.step().check()
        for name in place.copies:
            place.work(name, place.completions)
        place.remove().step().check()
    assert place.held is None
    assert sum(done for _, done in place.copies.values()) + place.completed.done == place.completions


@given(st.lists(actions, max_size=14), st.integers(1, 9), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_whatever_happens_each_completion_is_done_once(script, parallelism, completions):
    place = Place(parallelism, completions)
    place.step()
    _played(script, place)
    assert place.executed == completions


@given(st.lists(st.one_of(actions, outages), max_size=14), st.integers(1, 9), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_whatever_fails_nothing_is_lost(script, parallelism, completions):
    place = Place(parallelism, completions)
    place.step()
    _played(script, place)
    assert place.executed >= completions
    assert msgspec.json.decode(place.annotations.get(keys.COMPLETED, "{}")).keys() <= {"total"}
