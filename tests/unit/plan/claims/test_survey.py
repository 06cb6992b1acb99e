"""What is told of each policy: what it is for, how many objects it has, what is wrong with that."""

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.plan.claims.survey import survey
from argosy.plan.pipeline.held import Held, HeldReason, with_held
from tests.unit.plan.claims.claims import selecting
from tests.unit.plan.worlds import DEPLOYMENTS, override_policy, policy

DEPLOYED = {"apiVersion": "apps/v1", "kind": "Deployment"}


HELD = {"narrowed": HeldReason.NOT_SELECTED, "gone": HeldReason.POLICY_MISSING}


def federated(name, *, namespace="shop", selected_by="", held=None, **labels):
    """The federated object of a Deployment."""
    annotations = {keys.SELECTED_BY: selected_by} if selected_by else {}
    annotations = with_held(annotations, Held(held, "why") if held is not None else None)
    named = {**{key: value for key, value in labels.items() if key in keys.POLICY_LABELS}}
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}}
    metadata = {"name": f"{name}-deployments.apps", "namespace": namespace, "labels": named, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"template": template}}, FederatedObject)


def by(name, wide=False):
    return {keys.CLUSTER_PROPAGATION_POLICY_LABEL if wide else keys.PROPAGATION_POLICY_LABEL: name}


def told(policies, objects, overrides=()):
    found = survey(policies, overrides, objects, [DEPLOYMENTS], {})
    return {f"{each.kind}/{each.name}": each for each in found}


def test_objects_are_counted_and_selectors_told():
    all_of_it = selecting("all", {**DEPLOYED, "labelSelector": {"matchLabels": {"app": "web"}}}, priority=3)
    objects = [federated("web", selected_by="x", **by("all", wide=True)), federated("api", **by("all", wide=True))]
    [report] = told([all_of_it], objects).values()
    assert (report.priority, report.selects) == (3, ("Deployment.apps (app=web)",))
    assert (report.objects, report.selected, report.trouble) == (2, 1, ())


def test_two_that_select_the_same_know_of_each_other():
    first, second = selecting("a", DEPLOYED), selecting("b", DEPLOYED)
    found = told([first, second], [federated("web", selected_by="x", **by("a", wide=True))])
    assert found["ClusterPropagationPolicy/a"].trouble == (
        "gets 1 object that ClusterPropagationPolicy b selects as well",
    )
    assert found["ClusterPropagationPolicy/b"].trouble == (
        "ClusterPropagationPolicy a gets 1 object that it selects, too",
    )


def test_policies_nobody_uses_and_objects_that_name_none_that_exists():
    found = told(
        [policy("idle", "shop")],
        [federated("web", **by("gone")), federated("api", **by("gone"), **{keys.OVERRIDE_POLICY_LABEL: "other"})],
        [override_policy(name="unused", namespace="shop")],
    )
    assert found["PropagationPolicy/idle"].trouble == ("it has no object: none names it",)
    assert not found["PropagationPolicy/gone"].exists
    assert found["PropagationPolicy/gone"].trouble == ("does not exist: deployment/web and 1 more name it",)
    assert found["OverridePolicy/other"].trouble == ("does not exist: deployment/api names it",)
    assert found["OverridePolicy/unused"].trouble == ("it has no object: none names it",)


def test_what_is_held_for_lack_of_a_policy_is_told():
    objects = [federated(name, selected_by="x", held=reason, **by(name)) for name, reason in HELD.items()]
    found = told([selecting("narrowed", DEPLOYED, namespace="shop")], objects)
    text = "1 object that it selects no more: held, the copies stay as they are"
    assert found["PropagationPolicy/narrowed"].trouble[0] == text
    text = "1 object that it selected: held, the copies stay as they are"
    assert found["PropagationPolicy/gone"].trouble[1] == text


def test_a_kind_that_is_not_federated_is_told():
    found = told([selecting("all", {"apiVersion": "example.com/v1", "kind": "Widget"})], [])
    assert "Widget is not federated" in found["ClusterPropagationPolicy/all"].trouble[-1]
