"""What an object says and what will not happen, by its type config and the policies there are."""

from typing import Any

import msgspec
import pytest

from argosy.api import keys, typeconfigs
from argosy.api.policies import PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig, PathDefinition
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.status.shortfalls import Named, obstacles, shortfalls
from argosy.plan.status.undecided import unfederated

CONFIGS = {each["metadata"]["name"]: msgspec.convert(each, FederatedTypeConfig) for each in typeconfigs.manifests()}


def policy(**spec: Any) -> PropagationPolicy:
    body = {"metadata": {"name": "p", "namespace": "shop"}, "spec": {"schedulingMode": keys.DIVIDE, **spec}}
    return msgspec.convert(body, PropagationPolicy)


def source(*, replicas: int | None = 3, annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "labels": labels, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {} if replicas is None else {"replicas": replicas}}


NAMED = {keys.PROPAGATION_POLICY_LABEL: "p"}
OVERRIDDEN = {keys.OVERRIDE_POLICY_LABEL: "o"}


def steps(config: str, *controllers: str) -> FederatedTypeConfig:
    spec = msgspec.structs.replace(CONFIGS[config].spec, controllers=tuple((each,) for each in controllers))
    return msgspec.structs.replace(CONFIGS[config], spec=spec)


def test_an_object_that_asks_for_nothing_is_told_nothing():
    for config in CONFIGS.values():
        assert obstacles(source(), config, Named()) == []
        assert shortfalls(source(), config, None) == []
    assert obstacles(source(), None, Named()) == []


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_an_object_of_a_stock_type_under_a_policy_has_no_obstacle_but_those_that_are_known(name):
    found = obstacles(source(**NAMED), CONFIGS[name], Named(policy=policy()))
    if name == "endpointslices.discovery.k8s.io":
        assert "lists no controller" in found[0]
    else:
        assert found == []


def test_policies_and_profiles_that_are_missing():
    config = CONFIGS["deployments.apps"]
    [text] = obstacles(source(**NAMED), config, Named())
    assert text.startswith("PropagationPolicy shop/p does not exist")
    [text] = obstacles(source(**NAMED), config, Named(policy=policy(schedulingProfile="x"), profile=False))
    assert "SchedulingProfile x, which does not exist" in text
    [text] = obstacles(source(**NAMED, **OVERRIDDEN), config, Named(policy=policy()))
    assert text.startswith("OverridePolicy shop/o does not exist")
    there = Named(policy=policy(), overrides=frozenset({PolicyRef("o", "shop")}))
    assert obstacles(source(**NAMED, **OVERRIDDEN), config, there) == []


def test_what_no_step_looks_at():
    [text] = shortfalls(source(**OVERRIDDEN), steps("configmaps", keys.GLOBAL_SCHEDULER), None)
    assert text == (
        "override policy shop/o is not looked at: the type config configmaps does not list"
        " kubeadmiral.io/overridepolicy-controller"
    )
    # A step of somebody else may look at it.
    assert shortfalls(source(**OVERRIDDEN), steps("configmaps", keys.GLOBAL_SCHEDULER, "example.com/a"), None) == []


def test_only_what_has_replicas_is_meant_to_be_divided():
    spec = msgspec.structs.replace(CONFIGS["statefulsets.apps"].spec, path_definition=PathDefinition())
    config = msgspec.structs.replace(CONFIGS["statefulsets.apps"], spec=spec)
    assert "not divided" in shortfalls(source(**NAMED), config, policy())[0]
    assert shortfalls(source(replicas=None, **NAMED), config, policy()) == []
    assert shortfalls(source(**NAMED), config, policy(schedulingMode=keys.DUPLICATE)) == []
    divides = source(annotations={keys.SCHEDULING_MODE: keys.DIVIDE}, **NAMED)
    assert shortfalls(divides, config, policy(schedulingMode=keys.DUPLICATE))
    assert shortfalls(source(**NAMED), CONFIGS["deployments.apps"], policy(autoMigration={})) == []


def test_what_can_be_divided_and_is_not():
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", **source(**NAMED)}
    config = CONFIGS["statefulsets.apps"]
    assert shortfalls(stateful, config, policy()) == []
    assert shortfalls(stateful, config, policy(), placed=True, divided=True) == []
    [text] = shortfalls(stateful, config, policy(), placed=True)
    assert "scheduling-mode=Divide divides it" in text
    assert shortfalls(stateful, config, policy(schedulingMode=keys.DUPLICATE), placed=True) == []
    job = {**source(**NAMED), "apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 2}}
    job["spec"]["completionMode"] = "Indexed"
    [text] = shortfalls(job, CONFIGS["jobs.batch"], policy())
    assert "Indexed cannot be divided" in text


def test_a_namespace_that_should_go_everywhere_and_does_not():
    told = unfederated({"kind": "Namespace", "metadata": {"name": "shop"}}, CONFIGS["namespaces"])
    assert told == "waiting to be federated: are the controllers running, and do they not exclude this namespace?"
