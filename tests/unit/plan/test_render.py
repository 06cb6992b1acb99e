"""The object a member is to have: built, kept apart from what the member adds, written only when it must be."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.federated import PropagationEntry
from argosy.kube.objects import Metadata
from argosy.plan.copies.digest import digest, template_digest
from argosy.plan.copies.render import (
    RenderError,
    adopted,
    is_current,
    needs_update,
    orphaned,
    render,
    version_of,
)
from argosy.plan.copies.retain import merge_string_maps
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.template import template_of
from tests.unit.plan.worlds import DEPLOYMENTS, TYPE_CONFIGS, deployment

TEMPLATE = template_of(deployment(metadata={"annotations": {"team": "a"}}))
REPLICAS = [{"op": "replace", "path": "/spec/replicas", "value": 2}]


def in_member(obj, generation=1, **metadata):
    return {
        **obj,
        "metadata": {**obj["metadata"], "uid": "m", "resourceVersion": "5", "generation": generation, **metadata},
    }


def written(obj):
    return msgspec.convert(obj["metadata"], Metadata)


def test_a_new_object_carries_the_managed_label_and_the_keys_that_came_from_us():
    desired = render(TEMPLATE, REPLICAS, None, {}, DEPLOYMENTS)
    assert desired["spec"]["replicas"] == 2
    assert labels_of(desired) == {"app": "web", keys.MANAGED_LABEL: "true"}
    assert annotations_of(desired) == {
        "team": "a",
        keys.SOURCE_GENERATION: "1",
        keys.PROPAGATED_LABEL_KEYS: "app,kubeadmiral.io/managed",
        keys.PROPAGATED_ANNOTATION_KEYS: "kubeadmiral.io/source-generation,team",
    }
    assert "resourceVersion" not in desired["metadata"]
    assert "status" not in desired
    assert template_of(deployment(metadata={"annotations": {"team": "a"}})) == TEMPLATE


def test_an_update_keeps_what_the_member_added_and_drops_what_we_took_away():
    observed = in_member(render(TEMPLATE, [], None, {}, DEPLOYMENTS))
    observed["metadata"]["labels"]["theirs"] = "x"
    observed["metadata"]["annotations"]["theirs"] = "y"
    observed["metadata"]["finalizers"] = ["f", "f"]
    without_team = template_of(deployment())
    desired = render(without_team, [], observed, {}, DEPLOYMENTS)
    assert labels_of(desired)["theirs"] == "x"
    assert annotations_of(desired)["theirs"] == "y"
    assert "team" not in annotations_of(desired)
    assert desired["metadata"]["finalizers"] == ["f"]
    assert desired["metadata"]["resourceVersion"] == "5"


def test_replicas_are_the_members_where_that_is_asked_for():
    observed = in_member(render(TEMPLATE, REPLICAS, None, {}, DEPLOYMENTS))
    observed["spec"] = {**observed["spec"], "replicas": 11}
    kept = render(TEMPLATE, REPLICAS, observed, {keys.RETAIN_REPLICAS: "true"}, DEPLOYMENTS)
    assert kept["spec"]["replicas"] == 11
    assert render(TEMPLATE, REPLICAS, observed, {}, DEPLOYMENTS)["spec"]["replicas"] == 2


def test_a_patch_that_does_not_apply_is_reported_as_such():
    with pytest.raises(RenderError) as raised:
        render(TEMPLATE, [{"op": "remove", "path": "/spec/nothing"}], None, {}, DEPLOYMENTS)
    assert raised.value.status == "ApplyOverridesFailed"


def test_finalizers_can_be_added_for_a_cluster():
    patch = {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/f"}
    assert render(TEMPLATE, [patch], None, {}, DEPLOYMENTS)["metadata"]["finalizers"] == ["example.com/f"]


class TestKinds:
    def rendered(self, name, template, observed):
        template = {**template, "metadata": {"name": "x", "labels": {}, "annotations": {}}}
        observed = {**observed, "metadata": {"name": "x", "resourceVersion": "1"}}
        return render(template, [], observed, {}, TYPE_CONFIGS[name])

    def test_a_deployments_revision_is_the_members_own(self):
        revision = "deployment.kubernetes.io/revision"
        template = template_of(deployment(metadata={"annotations": {revision: "7"}}))
        observed = in_member(render(template, [], None, {}, DEPLOYMENTS))
        observed["metadata"]["annotations"] |= {revision: "2"}
        desired = render(template, [], observed, {}, DEPLOYMENTS)
        assert annotations_of(desired)[revision] == "2"
        record = PropagationEntry("m1", "OK", 1, "gen:1", "d")
        assert not needs_update(desired, observed, record, "d", "gen:1")

    def test_a_service_keeps_its_addresses_and_node_ports(self):
        head = {"apiVersion": "v1", "kind": "Service"}
        ports = [{"name": "a", "protocol": "TCP", "port": 80}, {"name": "b", "protocol": "TCP", "port": 81}]
        template = {**head, "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": ports}}
        theirs = [{**ports[0], "nodePort": 30001}, {"name": "b", "protocol": "UDP", "port": 81, "nodePort": 30002}]
        observed = {**head, "spec": {"clusterIP": "10.9.9.9", "clusterIPs": ["10.9.9.9"], "ports": theirs}}
        assert self.rendered("services", template, observed)["spec"] == {
            "clusterIP": "10.9.9.9",
            "clusterIPs": ["10.9.9.9"],
            "ports": [{**ports[0], "nodePort": 30001}, ports[1]],
        }
        fresh = render({**template, "metadata": {"name": "x"}}, [], None, {}, TYPE_CONFIGS["services"])
        assert fresh["spec"] == {"ports": ports}

    def test_a_headless_service_stays_headless(self):
        template = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"clusterIP": "None"}}
        assert render(template, [], None, {}, TYPE_CONFIGS["services"])["spec"] == {"clusterIP": "None"}

    def test_a_job_keeps_its_own_selector(self):
        head = {"apiVersion": "batch/v1", "kind": "Job"}
        labels = {"controller-uid": "ours", "app": "a"}
        template = {
            **head,
            "spec": {
                "selector": {"matchLabels": {"controller-uid": "ours"}},
                "template": {"metadata": {"labels": labels}},
            },
        }
        theirs = {
            "selector": {"matchLabels": {"controller-uid": "t"}},
            "template": {"metadata": {"labels": {"controller-uid": "t"}}},
        }
        fresh = render({**template, "metadata": {"name": "x"}}, [], None, {}, TYPE_CONFIGS["jobs.batch"])
        assert fresh["spec"] == {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {"app": "a"}}}}
        assert self.rendered("jobs.batch", template, {**head, "spec": theirs})["spec"] == theirs

    def test_no_member_deletes_a_finished_job_which_would_then_run_again(self):
        template = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}}
        template["spec"] = {"completions": 3, "ttlSecondsAfterFinished": 60}
        assert render(template, [], None, {}, TYPE_CONFIGS["jobs.batch"])["spec"] == {"completions": 3}

    @pytest.mark.parametrize(
        ("name", "head", "ours", "theirs", "kept"),
        [
            (
                "persistentvolumes",
                ("v1", "PersistentVolume"),
                {"spec": {"a": 1}},
                {"spec": {"claimRef": {"n": 1}}},
                {"spec": {"a": 1, "claimRef": {"n": 1}}},
            ),
            (
                "persistentvolumeclaims",
                ("v1", "PersistentVolumeClaim"),
                {"spec": {}},
                {"spec": {"volumeName": "v"}},
                {"spec": {"volumeName": "v"}},
            ),
            (
                "persistentvolumeclaims",
                ("v1", "PersistentVolumeClaim"),
                {"spec": {}},
                {"spec": {"storageClassName": "standard"}},
                {"spec": {"storageClassName": "standard"}},
            ),
            (
                "persistentvolumeclaims",
                ("v1", "PersistentVolumeClaim"),
                {"spec": {"storageClassName": ""}},
                {"spec": {"storageClassName": "standard"}},
                {"spec": {"storageClassName": ""}},
            ),
            (
                "serviceaccounts",
                ("v1", "ServiceAccount"),
                {},
                {"secrets": [{"name": "t"}]},
                {"secrets": [{"name": "t"}]},
            ),
            (
                "serviceaccounts",
                ("v1", "ServiceAccount"),
                {"secrets": [{"name": "o"}]},
                {"secrets": [{"name": "t"}]},
                {"secrets": [{"name": "o"}]},
            ),
        ],
    )
    def test_a_bound_field_stays(self, name, head, ours, theirs, kept):
        kind = {"apiVersion": head[0], "kind": head[1]}
        desired = self.rendered(name, {**kind, **ours}, {**kind, **theirs})
        assert {key: value for key, value in desired.items() if key not in ("apiVersion", "kind", "metadata")} == kept

    def test_a_pod_keeps_what_was_injected(self):
        head = {"apiVersion": "v1", "kind": "Pod"}
        token = {"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        template = {
            **head,
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "resources": {"limits": {"cpu": "1"}},
                        "volumeMounts": [{"name": "d", "mountPath": "/d"}],
                    }
                ],
                "nodeName": "",
                "volumes": [{"name": "d"}],
            },
        }
        observed = {
            **head,
            "spec": {
                "containers": [{"name": "c", "volumeMounts": [token, {"name": "d", "mountPath": "/d"}]}],
                "nodeName": "n1",
                "volumes": [{"name": "d"}, {"name": "t"}],
            },
        }
        assert self.rendered("pods", template, observed)["spec"] == observed["spec"]


class TestWhetherToWrite:
    def setup_method(self):
        self.digest = digest(template_digest(TEMPLATE), REPLICAS, {})
        self.observed = in_member(render(TEMPLATE, REPLICAS, None, {}, DEPLOYMENTS))
        self.record = PropagationEntry("m1", "OK", 1, "gen:1", self.digest)

    def needs(self, observed, record):
        desired = render(TEMPLATE, REPLICAS, observed, {}, DEPLOYMENTS)
        return needs_update(desired, observed, record, self.digest, version_of(written(observed)))

    def current(self, observed, record):
        return is_current(record, self.digest, written(observed), TEMPLATE, REPLICAS)

    def test_what_was_written_and_not_touched_is_current(self):
        assert self.current(self.observed, self.record)
        assert not self.needs(self.observed, self.record)

    def test_a_changed_spec_is_reverted(self):
        drifted = in_member(self.observed, generation=2)
        drifted["spec"] = {**drifted["spec"], "replicas": 99}
        assert not self.current(drifted, self.record)
        assert self.needs(drifted, self.record)

    def test_a_changed_label_of_ours_is_reverted_although_no_generation_counts_it(self):
        drifted = in_member(self.observed, labels={**labels_of(self.observed), "app": "other"})
        assert not self.current(drifted, self.record)
        assert self.needs(drifted, self.record)

    def test_a_members_own_annotation_is_no_drift(self):
        touched = in_member(self.observed, annotations={**annotations_of(self.observed), "theirs": "1"})
        assert self.current(touched, self.record)
        assert not self.needs(touched, self.record)

    def test_what_the_members_webhooks_made_of_it_is_no_drift(self):
        mutated = {**self.observed, "spec": {**self.observed["spec"], "injected": True}}
        assert not self.needs(mutated, self.record)

    def test_a_lost_record_alone_writes_nothing(self):
        assert not self.current(self.observed, None)
        assert not self.needs(self.observed, None)

    def test_other_content_is_written(self):
        other = PropagationEntry("m1", "OK", 1, "gen:1", "other")
        changed = {**self.observed, "spec": {**self.observed["spec"], "replicas": 3}}
        assert self.needs(changed, other)

    def test_objects_without_a_generation_go_by_their_resource_version(self):
        template = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "labels": {}, "annotations": {}},
            "data": {"a": "1"},
        }
        config = TYPE_CONFIGS["configmaps"]
        observed = in_member(render(template, [], None, {}, config), generation=0)
        want = digest(template_digest(template), [], {})
        record = PropagationEntry("m1", "OK", 0, "rv:5", want)
        assert is_current(record, want, written(observed), template, [])
        drifted = {**in_member(observed, generation=0, resourceVersion="6"), "data": {"a": "2"}}
        assert not is_current(record, want, written(drifted), template, [])
        assert needs_update(render(template, [], drifted, {}, config), drifted, record, want, "rv:6")

    def test_each_clusters_patches_have_their_own_digest(self):
        base = template_digest(TEMPLATE)
        assert digest(base, REPLICAS, {}) != digest(base, [], {})
        assert digest(base, REPLICAS, {}) != digest(base, REPLICAS, {keys.RETAIN_REPLICAS: "true"})
        assert template_digest(TEMPLATE) == template_digest(dict(reversed(TEMPLATE.items())))


def test_an_adopted_object_is_marked_and_stays_marked():
    found = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {},
    }
    desired = render(TEMPLATE, [], adopted(found), {}, DEPLOYMENTS)
    assert annotations_of(desired)[keys.ADOPTED] == "true"
    again = render(TEMPLATE, [], in_member(desired), {}, DEPLOYMENTS)
    assert annotations_of(again)[keys.ADOPTED] == "true"
    assert adopted(desired) is desired


def carrying(**annotations):
    """A template as earlier versions made it: with what the source says."""
    return {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "annotations": annotations}}


@pytest.mark.parametrize("said", ["false", "true", ""])
def test_what_was_adopted_is_the_members_copys_to_say(said):
    stated = [{"op": "add", "path": "/metadata/annotations/a", "value": "b"}]
    for template in (TEMPLATE, template_of(deployment(metadata={"annotations": {keys.ADOPTED: said}}))):
        made = in_member(render(template, stated, None, {}, DEPLOYMENTS))
        assert keys.ADOPTED not in annotations_of(made)
        assert keys.ADOPTED not in annotations_of(render(template, stated, made, {}, DEPLOYMENTS))
        theirs = in_member({**made, "metadata": {"name": "web", "namespace": "default"}})
        copy = in_member(render(template, stated, adopted(theirs), {}, DEPLOYMENTS))
        for _ in range(2):
            assert annotations_of(copy)[keys.ADOPTED] == "true"
            assert keys.ADOPTED not in annotations_of(copy)[keys.PROPAGATED_ANNOTATION_KEYS].split(",")
            copy = in_member(render(template, stated, copy, {}, DEPLOYMENTS))


@pytest.mark.parametrize("said", ["false", "true"])
def test_even_a_template_that_carries_the_mark_does_not_say_what_was_adopted(said):
    theirs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    desired = render(carrying(**{keys.ADOPTED: said}), [], adopted(theirs), {}, DEPLOYMENTS)
    assert annotations_of(desired)[keys.ADOPTED] == "true"
    assert keys.ADOPTED not in annotations_of(render(carrying(**{keys.ADOPTED: said}), [], None, {}, DEPLOYMENTS))


@pytest.mark.parametrize("said", ["false", "true"])
def test_a_copy_whose_mark_a_template_brought_counts_as_adopted_from_then_on(said):
    """Written by an earlier version, and with it went what had been there: now it is rather left behind than deleted."""
    made = render(TEMPLATE, [], None, {}, DEPLOYMENTS)
    marks = {keys.ADOPTED: said, keys.PROPAGATED_ANNOTATION_KEYS: f"{keys.ADOPTED},{keys.SOURCE_GENERATION},team"}
    written_before = in_member(made, annotations={**annotations_of(made), **marks})
    copy = in_member(render(TEMPLATE, [], written_before, {}, DEPLOYMENTS))
    for _ in range(2):
        assert annotations_of(copy) == {**annotations_of(made), keys.ADOPTED: "true"}
        copy = in_member(render(TEMPLATE, [], copy, {}, DEPLOYMENTS))


def test_replacing_all_annotations_leaves_our_marks():
    patch = {"op": "replace", "path": "/metadata/annotations", "value": {"only": "this"}}
    assert annotations_of(render(TEMPLATE, [patch], None, {}, DEPLOYMENTS)) == {
        "only": "this",
        keys.SOURCE_GENERATION: "1",
        keys.PROPAGATED_LABEL_KEYS: "app,kubeadmiral.io/managed",
        keys.PROPAGATED_ANNOTATION_KEYS: "kubeadmiral.io/source-generation,only",
    }


def test_an_orphan_only_loses_the_managed_label():
    managed = in_member(
        render(TEMPLATE, [], None, {}, DEPLOYMENTS), finalizers=[keys.RETAIN_TERMINATING_FINALIZER, "x"]
    )
    left = orphaned(managed)
    assert keys.MANAGED_LABEL not in labels_of(left)
    assert left["metadata"]["finalizers"] == ["x"]
    assert left["spec"] == managed["spec"]


MAPS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"))


@given(ours=MAPS, theirs=MAPS, recorded=st.sets(st.sampled_from("abcd")))
def test_merged_maps_hold_all_of_ours_and_only_their_own_of_theirs(ours, theirs, recorded):
    merged = merge_string_maps(ours, theirs, recorded)
    assert ours.items() <= merged.items()
    assert merged.keys() == ours.keys() | (theirs.keys() - recorded)
    assert merge_string_maps(ours, merged, set(ours)) == merge_string_maps(ours, merged, ours)
