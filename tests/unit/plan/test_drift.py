"""What others changed in a copy: found, bounded, kept on record, and left where a policy says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from argosy.api.federated import DriftedField, PropagationEntry
from argosy.plan import changes
from argosy.plan.copies.drift import (
    DELETED,
    NONE,
    Changed,
    Drift,
    Since,
    as_left,
    drift_of,
    keeping,
    left_in,
    noted,
    stated_drift,
    told,
    within_bounds,
)

EARLY, LATE = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"


def deployment(*, metadata=None, **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", **(metadata or {})},
        "spec": spec,
    }


def found_in(found, wanted):
    return {each.path: (each.theirs, each.ours) for each in drift_of(found, wanted, secret=False, left=False).changed}


class TestFound:
    def test_fields_that_differ_are_told_one_by_one(self):
        containers = [{"name": "main", "image": "a"}, {"name": "side", "image": "b"}]
        theirs = deployment(replicas=7, containers=[{"name": "main", "image": "evil"}, containers[1]])
        assert found_in(theirs, deployment(replicas=2, containers=containers, paused=True)) == {
            "spec.replicas": (7, 2),
            "spec.containers[main].image": ("evil", "a"),
            "spec.paused": (UNSET, True),
        }

    def test_what_the_member_fills_in_is_in_both_and_no_drift(self):
        theirs = deployment(replicas=2, progressDeadlineSeconds=600, metadata={"uid": "1", "generation": 4})
        theirs["status"] = {"replicas": 2}
        assert found_in(theirs, deployment(replicas=2, progressDeadlineSeconds=600, metadata={"generation": 5})) == {}

    def test_the_sources_generation_is_no_field_of_a_copy(self):
        metadata = {"annotations": {"kubeadmiral.io/source-generation": "3"}}
        assert found_in(deployment(replicas=7, metadata=metadata), deployment(replicas=2)) == {"spec.replicas": (7, 2)}

    def test_a_secrets_values_are_not_told(self):
        mine = {"kind": "Secret", "metadata": {}, "data": {"password": "old"}}
        drift = drift_of({**mine, "data": {"password": "new"}}, mine, secret=True, left=False)
        assert drift.changed == (Changed("data.password"),)
        assert told(noted((), drift, EARLY)[0]) == "data.password was changed"

    def test_a_long_value_is_told_by_its_beginning_and_is_equal_to_itself_alone(self):
        found = found_in(deployment(text="x" * 1000), deployment(text="x" * 999 + "y"))
        theirs, ours = found["spec.text"]
        assert theirs != ours
        assert max(len(theirs), len(ours)) < 160

    def test_many_fields_are_told_by_what_they_are_part_of(self):
        names = [f"n{number}" for number in range(100)]
        found = found_in(
            deployment(env=dict.fromkeys(names, 1), replicas=1), deployment(env=dict.fromkeys(names, 2), replicas=2)
        )
        assert found.keys() == {"spec.env", "spec.replicas"}

    def test_whatever_a_member_says_is_told_in_few_words(self):
        deep = []
        for _ in range(5000):
            deep = [deep]
        mine = deployment(replicas=2)
        assert drift_of(deployment(replicas=2, x=deep), mine, secret=False, left=False).changed == (Changed("*"),)
        assert drift_of(
            {**mine, "metadata": {"labels": 7, "annotations": [1]}}, mine, secret=False, left=False
        ).changed == (Changed("*"),)
        [field] = drift_of(deployment(replicas=2, **{"k" * 10**6: "v" * 10**6}), mine, secret=False, left=False).changed
        assert len(field.path) + len(field.theirs) < 500
        many = drift_of({**mine, **{f"k{number}": 1 for number in range(100)}}, mine, secret=False, left=False)
        assert many.changed == (Changed("*"),)

    def test_without_the_members_answer_only_what_we_state_counts(self):
        desired = deployment(replicas=2)
        found = deployment(replicas=7, strategy="Recreate")
        assert stated_drift(found, desired) == Drift((Changed("spec.replicas", 7, 2),), left=True)
        found["spec"] |= {f"default{number}": 1 for number in range(100)}
        assert stated_drift(found, desired) == Drift((Changed("spec.replicas", 7, 2),), left=True)

    def test_what_kind_a_member_says_it_is_does_not_count(self):
        mine = {"kind": "Secret", "metadata": {}, "data": {"password": "old"}}
        theirs = {**mine, "kind": "ConfigMap", "data": {"password": "new"}}
        assert drift_of(theirs, {**mine, "kind": "ConfigMap"}, secret=True, left=True).changed == (
            Changed("data.password"),
        )
        left = Since(reports=True, left=(DriftedField("data.password", EARLY, "new", "old", left=True),))
        assert keeping(mine, theirs, {**mine, "kind": "ConfigMap"}, left) == mine
        assert keeping(mine, theirs, mine, Since(unchanged=True, reports=True)) == {**mine, "data": theirs["data"]}


class TestOnRecord:
    def test_a_change_that_is_left_keeps_its_time(self):
        drift = Drift((Changed("spec.replicas", 7, 2),), left=True)
        before = noted((), drift, EARLY)
        assert noted(before, drift, LATE) == before
        other = noted(before, Drift((Changed("spec.replicas", 8, 2),), left=True), LATE)
        assert [(each.since, each.theirs) for each in other] == [(LATE, 8)]

    def test_what_was_left_and_is_gone_stays_on_record_as_repaired(self):
        before = noted((), Drift((Changed("spec.replicas", 7, 2),), left=True), EARLY)
        after = noted(before, NONE, LATE)
        assert after == (DriftedField("spec.replicas", EARLY, 7, 2),)
        assert left_in(PropagationEntry("m1", "OK", drift=after)) == ()

    def test_of_one_copy_no_more_than_sixteen(self):
        record = ()
        for number in range(40):
            record = noted(record, Drift((Changed(f"spec.f{number}", 1, 2),)), EARLY)
        assert [each.path for each in record] == [f"spec.f{number}" for number in range(39, 23, -1)]

    def test_a_deleted_copy_is_on_record(self):
        assert told(noted((), Drift((DELETED,)), EARLY)[0]) == "it was deleted there"

    @given(st.integers(1, 60), st.integers(0, 16), st.integers(0, 16))
    def test_of_all_copies_no_more_than_fits_and_none_that_differs_is_forgotten(self, clusters, left, repaired):
        fields = [DriftedField(f"spec.l{number}", EARLY, 1, 2, left=True) for number in range(left)]
        fields += [DriftedField(f"spec.r{number}", EARLY, 1, 2) for number in range(repaired)]
        entries = tuple(PropagationEntry(f"c{number}", "OK", drift=tuple(fields)) for number in range(clusters))
        after = within_bounds(entries)
        assert sum(len(each.drift) for each in after) <= 256
        assert all(bool(left_in(each)) == bool(left) for each in after)
        assert within_bounds(after) == after


class TestLeft:
    WAS = deployment(replicas=2, image="a", containers=[{"name": "main", "image": "a"}])
    THEIRS = deployment(replicas=7, image="a", containers=[{"name": "main", "image": "evil"}])

    def left(self):
        return Since(reports=True, left=noted((), drift_of(self.THEIRS, self.WAS, secret=False, left=True), EARLY))

    def test_a_change_of_something_else_keeps_it(self):
        wanted = {**self.WAS, "spec": {**self.WAS["spec"], "image": "b"}}
        assert keeping(wanted, self.THEIRS, wanted, self.left())["spec"] == {**self.THEIRS["spec"], "image": "b"}

    def test_a_change_of_the_same_field_wins(self):
        wanted = {**self.WAS, "spec": {**self.WAS["spec"], "replicas": 3}}
        assert keeping(wanted, self.THEIRS, wanted, self.left())["spec"] == {**self.THEIRS["spec"], "replicas": 3}

    def test_many_changes_in_one_part_stay_until_something_is_changed_in_that_part(self):
        was = {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {f"k{number}": "a" for number in range(40)}}
        theirs = {**was, "data": dict.fromkeys(was["data"], "b")}
        left = noted((), drift_of(theirs, was, secret=False, left=True), EARLY)
        assert [each.path for each in left] == ["data"]
        since = Since(reports=True, left=left)
        assert keeping({**was, "immutable": True}, theirs, was, since) == {**theirs, "immutable": True}
        wanted = {**was, "data": {**was["data"], "k1": "c"}}
        assert keeping(wanted, theirs, wanted, since) == wanted

    def test_nothing_is_made_of_what_the_member_alone_has(self):
        wanted = {**self.WAS, "spec": {**self.WAS["spec"], "more": [{"name": "x", "a": 1}], "other": {"a": {"b": 1}}}}
        theirs = {**wanted, "spec": {**wanted["spec"], "more": [{"name": "x", "a": 2}], "other": {"a": {}}}}
        assert keeping(self.WAS, theirs, wanted, Since(unchanged=True, reports=True)) == self.WAS

    def test_a_long_value_is_not_known_from_what_is_told_of_it(self):
        was, theirs = deployment(text="a", replicas=2), deployment(text="L" * 500, replicas=7)
        left = noted((), drift_of(theirs, was, secret=False, left=True), EARLY)
        assert as_left(was, PropagationEntry("m1", "OK", drift=left)) == deployment(text="a", replicas=7)

    def test_a_secret_becomes_as_it_is_wanted(self):
        was, theirs = ({"kind": "Secret", "metadata": {}, "data": {"a": each}} for each in ("old", "evil"))
        left = noted((), drift_of(theirs, was, secret=True, left=True), EARLY)
        wanted = {**was, "data": {"a": "old", "b": "new"}}
        assert keeping(wanted, theirs, wanted, Since(reports=True, left=left)) == wanted

    def test_if_nothing_else_is_wanted_all_that_is_theirs_stays(self):
        wanted = {**self.WAS, "metadata": {"name": "web", "annotations": {"kubeadmiral.io/source-generation": "3"}}}
        kept = keeping(wanted, self.THEIRS, wanted, Since(unchanged=True, reports=True))
        assert (kept["spec"], kept["metadata"]) == (self.THEIRS["spec"], wanted["metadata"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab.[]", max_size=3),
    lambda inner: (
        st.dictionaries(st.sampled_from(["a", "b.c", "name"]), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "v": inner}), max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("pqr"), JSON), st.dictionaries(st.sampled_from("pqr"), JSON))
def test_changes_lead_from_one_object_to_the_other(old, new):
    made = changes.put(old, ((path, value) for path, _, value in changes.changes(old, new)))
    assert list(changes.changes(_sorted(made), _sorted(new))) == []


def _sorted(value):
    """Items with names have no order here."""
    if isinstance(value, dict):
        return {key: _sorted(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=lambda each: each["name"])
    return value


@pytest.mark.parametrize("left", [True, False])
def test_a_field_is_told_in_words(left):
    field = DriftedField("spec.replicas", EARLY, 7, 2, left)
    assert told(field) == f"spec.replicas {'is' if left else 'was'} 7 instead of 2"
    assert told(DriftedField("spec.paused", EARLY, UNSET, True)) == "spec.paused was not set instead of true"
