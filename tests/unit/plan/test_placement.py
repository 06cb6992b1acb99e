"""Entries of controllers, the pending list, removals, policies named by labels, adoption."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.copies.adoption import AdoptionError, adopts, may_adopt, orphans
from argosy.plan.copies.placement import (
    after_removal,
    may_hold_copies,
    overrides_for,
    placed,
    to_be_removed,
    with_overrides,
    with_placement,
    with_removals_noted,
)
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from tests.unit.plan.worlds import World

CLUSTERS = st.sets(st.sampled_from(["m1", "m2", "m3", "m4"]))


class TestEntries:
    def test_clusters_are_sorted_and_an_empty_entry_goes(self):
        spec = with_placement({"template": {}}, "a", ["m2", "m1", "m2"])
        assert spec["placements"] == [{"controller": "a", "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}]
        assert with_placement(spec, "a", []) == {"template": {}}

    def test_a_new_entry_is_appended_and_an_old_one_replaced_in_place(self):
        spec = with_placement(with_placement({}, "a", ["m1"]), "b", ["m2"])
        spec = with_placement(spec, "a", ["m3"])
        assert [entry["controller"] for entry in spec["placements"]] == ["a", "b"]
        assert placed(spec) == ["m2", "m3"]

    def test_clusters_without_patches_are_not_mentioned(self):
        spec = with_overrides({}, "a", {"m2": [{"path": "/x"}], "m1": []})
        assert spec["overrides"] == [{"controller": "a", "clusters": [{"cluster": "m2", "patches": [{"path": "/x"}]}]}]

    def test_patches_come_in_pipeline_order_and_strangers_last(self):
        spec = {}
        for name in ("stranger", "second", "first"):
            spec = with_overrides(spec, name, {"m1": [{"path": f"/{name}"}], "m2": [{"path": "/other"}]})
        patches = overrides_for(spec, "m1", [["first"], ["second"]])
        assert [patch["path"] for patch in patches] == ["/first", "/second", "/stranger"]


class TestRemovals:
    @given(rounds=st.lists(CLUSTERS, min_size=1, max_size=6))
    def test_whoever_ever_left_is_noted_until_seen_gone(self, rounds):
        annotations, before, ever = {}, set(), set()
        for after in rounds:
            annotations = with_removals_noted(annotations, dict.fromkeys(before - after, "Own"), after, "now")
            ever |= after
            assert set(to_be_removed(annotations)) | after == ever
            assert not set(to_be_removed(annotations)) & after
            before = after

    def test_the_note_goes_when_absence_was_seen(self):
        noted = with_removals_noted({"x": "y"}, {"m1": "Own", "m2": "Own"}, [], "now")
        each = '{"cluster":"%s","cause":"Own","since":"now"}'
        assert noted == {"x": "y", keys.TO_BE_REMOVED: f"[{each % 'm1'},{each % 'm2'}]"}
        assert after_removal(noted, ["m3"]) is None
        assert after_removal(noted, ["m1"]) == {"x": "y", keys.TO_BE_REMOVED: f"[{each % 'm2'}]"}
        assert after_removal(noted, ["m1", "m2"]) == {"x": "y"}

    def test_what_an_earlier_version_noted_is_read(self):
        old = {keys.TO_BE_REMOVED: '["m1"]'}
        assert to_be_removed(old) == ["m1"]
        assert to_be_removed(with_removals_noted(old, {"m2": "Own"}, [], "now")) == ["m1", "m2"]

    def test_an_unreadable_note_is_no_reason_to_stop(self):
        assert to_be_removed({keys.TO_BE_REMOVED: "{"}) == []

    def test_deletion_looks_everywhere_a_copy_may_be(self):
        world = World()
        world.run()
        world.object["metadata"]["annotations"][keys.TO_BE_REMOVED] = '["m8"]'
        world.object["status"] = {"clusters": [{"cluster": "m9", "status": "OK"}]}
        assert may_hold_copies(world.typed) == {"m1", "m2", "m3", "m8", "m9"}


class TestPending:
    def test_it_is_stored_without_empty_steps(self):
        assert pending.dump([[], ["a"], [], ["b", "c"]]) == '[["a"],["b","c"]]'
        assert pending.parse('[[],["a"]]') == (("a",),)
        assert pending.dump([]) == "[]"

    @pytest.mark.parametrize("text", [None, "", "{}", "[1]", "[[1]]", "nonsense"])
    def test_what_cannot_be_read_never_counts_as_finished(self, text):
        with pytest.raises(pending.Unreadable):
            pending.parse(text)
        assert not pending.finished(text)
        assert pending.finished("[]")

    def test_one_may_act_first_in_line_or_when_all_are_done(self):
        assert pending.may_act((), "x")
        assert pending.may_act((("a", "b"), ("c",)), "b")
        assert not pending.may_act((("a", "b"), ("c",)), "c")

    def test_one_that_changed_nothing_only_leaves(self):
        assert pending.after((("a",), ("c",)), "a", (("b",), ("c",)), changed=False) == (("c",),)

    def test_one_that_changed_something_sends_it_through_the_later_steps(self):
        assert pending.after((), "a", (("b",), ("c",)), changed=True) == (("b",), ("c",))
        assert pending.after((("a", "z"), ("c",)), "a", (("b",),), changed=True) == (("z",), ("b",))


BOTH = {keys.PROPAGATION_POLICY_LABEL: "p", keys.CLUSTER_PROPAGATION_POLICY_LABEL: "cp"}


class TestPolicies:
    def test_a_namespaced_policy_wins_for_namespaced_objects(self):
        assert propagation_ref(BOTH, "ns") == PolicyRef("p", "ns")
        assert propagation_ref(BOTH, "") == PolicyRef("cp")
        assert propagation_ref({keys.PROPAGATION_POLICY_LABEL: "p"}, "") is None

    def test_override_policies_apply_cluster_wide_first(self):
        labels = {keys.OVERRIDE_POLICY_LABEL: "o", keys.CLUSTER_OVERRIDE_POLICY_LABEL: "co"}
        assert override_refs(labels, "ns") == (PolicyRef("co"), PolicyRef("o", "ns"))
        assert override_refs(labels, "") == (PolicyRef("co"),)
        assert override_refs({}, "ns") == ()


class TestAdoption:
    def test_the_internal_annotation_wins(self):
        assert adopts({keys.CONFLICT_RESOLUTION: "adopt"})
        assert not adopts({keys.CONFLICT_RESOLUTION: "adopt", keys.INTERNAL_CONFLICT_RESOLUTION: "no"})
        assert not adopts({})

    @pytest.mark.parametrize(
        ("text", "adopted"),
        [
            ('{"clusters":["m1"]}', True),
            ('{"clusters":["m2"]}', False),
            ('{"clusters":["m2"],"regexp":"1"}', True),
            ('{"regexp":"^1"}', False),
            ("{}", False),
            ("", False),
        ],
    )
    def test_clusters_are_listed_or_found_by_expression(self, text, adopted):
        assert may_adopt({keys.CLUSTERS_TO_ADOPT: text}, "m1") is adopted

    @pytest.mark.parametrize("text", ["nonsense", '{"regexp":"*"}', "[1]", '{"clusters":7}'])
    def test_what_cannot_be_read_is_an_error(self, text):
        with pytest.raises(AdoptionError, match=keys.CLUSTERS_TO_ADOPT):
            may_adopt({keys.CLUSTERS_TO_ADOPT: text}, "m1")

    def test_orphans_are_all_or_the_adopted_ones(self):
        assert orphans({keys.ORPHAN: "all"}, {})
        assert orphans({keys.ORPHAN: "adopted"}, {keys.ADOPTED: "true"})
        assert not orphans({keys.ORPHAN: "adopted"}, {})
        assert not orphans({keys.ORPHAN: "adopted"}, {keys.ADOPTED: "false"})
        assert orphans({keys.ORPHAN: "adopted", keys.INTERNAL_ORPHAN: "all"}, {})
        assert not orphans({keys.ORPHAN: "adopted", keys.INTERNAL_ORPHAN: "none"}, {keys.ADOPTED: "true"})
        # What a user wants to keep altogether is kept, although namespaces are marked as to be kept only if adopted.
        assert orphans({keys.ORPHAN: "all", keys.INTERNAL_ORPHAN: "adopted"}, {})

    @pytest.mark.parametrize("mark", ["true", "false"])
    def test_a_mark_that_a_template_brought_takes_nothing_away(self, mark):
        """As earlier versions let it: whether the object was there before us cannot be told any more."""
        listed = {keys.PROPAGATED_ANNOTATION_KEYS: f"a,{keys.ADOPTED}"}
        assert orphans({keys.ORPHAN: "adopted"}, {keys.ADOPTED: mark, **listed})
        assert not orphans({}, {keys.ADOPTED: mark, **listed})
