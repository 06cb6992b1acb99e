"""Forecasts with rules that look at other workloads: they know what is placed where, and what would be."""

import msgspec

from argosy.kube.objects import encode
from argosy.plan.explain.snapshot import ObjectKey
from argosy.plan.explain.whatif import forecast
from argosy.plan.pipeline.policy import PolicyRef
from tests.unit.plan.test_whatif import MOVING, manifest, policy, snapshot

TERM = {"labelSelector": {"matchLabels": {"app": "cache"}}}


def labelled(name, policy_name, **labels):
    made = manifest(name, 2)
    made["metadata"]["labels"] = {"kubeadmiral.io/propagation-policy-name": policy_name, **labels}
    return made


def test_a_new_object_is_forecast_apart_from_what_is_there():
    today = snapshot(labelled("cache", "all", app="cache"), placement=[{"cluster": "m2"}])
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
    ref = PolicyRef("apart", "default")
    policies = {**today.policies, ref: policy("apart", reschedulePolicy=MOVING, workloadAntiAffinity=apart)}
    today = msgspec.structs.replace(today, policies=policies)
    web = ObjectKey("deployments.apps", "default", "web")
    after = msgspec.structs.replace(today, sources={**today.sources, web: encode(labelled("web", "apart"))})
    (change,) = forecast(today, after).objects
    assert {item.cluster for item in change.clusters} == {"m1", "m3"}


def test_objects_that_would_come_together_are_forecast_one_after_the_other():
    today = snapshot(manifest("other", 1))
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
    spec = {"reschedulePolicy": MOVING, "workloadAntiAffinity": apart, "maxClusters": 1, "schedulingMode": "Duplicate"}
    policies = {**today.policies, PolicyRef("apart", "default"): policy("apart", **spec)}
    after = msgspec.structs.replace(today, policies=policies)
    for name in ("c1", "c2", "c3", "c4"):
        after = after.with_object(labelled(name, "apart", app="cache"))
    found = {change.name: [item.cluster for item in change.clusters] for change in forecast(today, after).objects}
    assert sorted(cluster for clusters in found.values() for cluster in clusters) == ["m1", "m2", "m3"]
