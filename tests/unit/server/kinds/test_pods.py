"""Pods beyond create and update: binding, status, ephemeral containers, resizing, quality of service, selectors."""

import copy
from typing import Any

import pytest

from argosy.kube import schema
from argosy.server.kinds.pods.pods import (
    BindRefused,
    EphemeralContainersStrategy,
    PodStrategy,
    ResizeStrategy,
    apply_priority_class,
    bind,
    kinds,
    missing_priority_class,
)
from argosy.server.kinds.pods.qos import qos_class
from argosy.server.registry import Strategy

Object = dict[str, Any]

POD = schema.load().kind("", "v1", "Pod")
NOW = "2026-01-01T00:00:00Z"


def pod(**spec: Any) -> Object:
    """A pod as it is stored."""
    obj = {
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "x:1"}], **spec},
    }
    strategy = PodStrategy(POD)
    strategy.default(obj)
    strategy.prepare_create(obj)
    assert strategy.validate(obj) == []
    return obj


def written(strategy: Strategy, old: Object, **spec: Any) -> tuple[Object, list[str]]:
    new = copy.deepcopy(old)
    new["spec"].update(spec)
    strategy.default(new)
    strategy.prepare_update(new, copy.deepcopy(old))
    return new, [str(error) for error in strategy.validate_update(new, old)]


def status_causes(old: Object, **status: Any) -> list[str]:
    strategy = PodStrategy(POD)
    new = copy.deepcopy(old)
    new["status"].update(status)
    strategy.default(new)
    strategy.prepare_status(new, copy.deepcopy(old))
    return [str(error) for error in strategy.validate_status(new, old)]


def test_a_binding_assigns_the_node_and_says_so() -> None:
    obj = pod()
    bind(obj, {"metadata": {"annotations": {"why": "room"}}, "target": {"name": "node-1"}}, NOW)
    assert obj["spec"]["nodeName"] == "node-1"
    assert obj["metadata"]["annotations"] == {"why": "room"}
    (condition,) = obj["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["lastTransitionTime"]) == ("PodScheduled", "True", NOW)


@pytest.mark.parametrize(
    ("spec", "metadata", "message"),
    [
        ({"nodeName": "n"}, {}, 'pod a is already assigned to node "n"'),
        ({"schedulingGates": [{"name": "a/b"}]}, {}, "pod a has non-empty .spec.schedulingGates"),
        ({}, {"deletionTimestamp": NOW}, "pod a is being deleted, cannot be assigned to a host"),
    ],
)
def test_a_pod_that_cannot_be_bound_is_left_alone(spec: Object, metadata: Object, message: str) -> None:
    obj = pod(**spec)
    obj["metadata"] |= metadata
    before = copy.deepcopy(obj)
    with pytest.raises(BindRefused) as refused:
        bind(obj, {"target": {"name": "node-1"}}, NOW)
    assert str(refused.value) == message
    assert obj == before


@pytest.mark.parametrize(
    ("binding", "causes"),
    [
        ({"target": {"name": "n"}}, []),
        ({"target": {"kind": "Node"}}, ["target.name: Required value"]),
        (
            {"target": {"kind": "Pod", "name": "n"}},
            ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
        ),
        ({}, ["target.name: Required value"]),
    ],
)
def test_a_binding_names_a_node(binding: Object, causes: list[str]) -> None:
    strategy = next(kind.strategy for kind in kinds(schema.load()) if kind.kind == "Binding")
    assert [str(error) for error in strategy.validate(binding)] == causes


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"ephemeral-storage": "1Gi"}}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources: list[Object], expected: str) -> None:
    assert qos_class({"containers": [{"resources": each} for each in resources]}) == expected


def test_pod_level_resources_decide_the_quality_of_service() -> None:
    level = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    assert qos_class({"resources": level, "containers": [{}]}) == "Guaranteed"


def test_tolerations_of_the_pod_are_kept_and_the_missing_one_added() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    added = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    assert pod(tolerations=[own])["spec"]["tolerations"] == [own, added]


def test_a_named_priority_class_is_left_to_be_looked_up() -> None:
    obj = pod(priorityClassName="high")
    assert "priority" not in obj["spec"]
    assert missing_priority_class(obj) == "high"
    apply_priority_class(obj, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    assert (obj["spec"]["priority"], obj["spec"]["preemptionPolicy"]) == (7, "Never")
    assert missing_priority_class(pod()) is None


def test_ephemeral_containers_are_added_and_nothing_else_changes() -> None:
    old = pod()
    debugger = {"name": "debug", "image": "busybox:1"}
    new, causes = written(EphemeralContainersStrategy(POD), old, ephemeralContainers=[debugger], hostname="x")
    assert causes == []
    assert "hostname" not in new["spec"]
    assert [container["name"] for container in new["spec"]["ephemeralContainers"]] == ["debug"]
    _, causes = written(EphemeralContainersStrategy(POD), new, ephemeralContainers=[])
    assert causes == ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n']
    _, causes = written(EphemeralContainersStrategy(POD), new, ephemeralContainers=[{**debugger, "image": "other:1"}])
    assert causes[0].startswith('spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be')


def test_an_ephemeral_container_may_have_neither_ports_nor_a_known_name() -> None:
    ephemeral = {"name": "c", "image": "x:1", "ports": [{"containerPort": 1}]}
    _, causes = written(EphemeralContainersStrategy(POD), pod(), ephemeralContainers=[ephemeral])
    assert causes == [
        'spec.ephemeralContainers[0].name: Duplicate value: "c"',
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    ]


def test_resizing_changes_cpu_and_memory_within_the_quality_of_service() -> None:
    small = {"requests": {"cpu": "1", "memory": "1Gi"}}
    old = pod(containers=[{"name": "c", "image": "x:1", "resources": small}])
    wanted = {"requests": {"cpu": "2", "memory": "1Gi"}}
    new, causes = written(ResizeStrategy(POD), old, containers=[{"name": "c", "image": "other:2", "resources": wanted}])
    assert causes == []
    assert (new["spec"]["containers"][0]["image"], new["spec"]["containers"][0]["resources"]) == ("x:1", wanted)
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}, **small}
    _, causes = written(ResizeStrategy(POD), old, containers=[{"name": "c", "image": "x:1", "resources": limits}])
    assert causes == ['spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing']


def test_the_status_of_a_pod_is_checked() -> None:
    assert status_causes(pod(), podIP="10.1.2.3", phase="Running") == []
    assert status_causes(pod(), podIP="10.1.2", qosClass="Guaranteed") == [
        'status.qosClass: Invalid value: "Guaranteed": field is immutable',
        'status.podIPs[0]: Invalid value: "10.1.2": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ]
    assert status_causes(pod(), hostIP="10.0.0.1", hostIPs=[{"ip": "10.0.0.2"}]) == [
        'status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'
    ]
    assert status_causes(pod(nodeName="n"), nominatedNodeName="m") == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


@pytest.mark.parametrize(
    ("policy", "code", "refused"),
    [("Always", 0, False), ("OnFailure", 1, False), ("OnFailure", 0, True), ("Never", 1, True)],
)
def test_a_container_that_ended_starts_again_only_as_its_policy_says(policy: str, code: int, refused: bool) -> None:
    old = pod(restartPolicy=policy)
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": code}}}]
    causes = status_causes(old, containerStatuses=[{"name": "c", "state": {"running": {}}}])
    expected = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    assert causes == ([expected] if refused else [])


def test_podip_and_podips_follow_each_other() -> None:
    old = pod()
    strategy = PodStrategy(POD)
    for given in ({"podIP": "1.2.3.4"}, {"podIPs": [{"ip": "1.2.3.4"}]}):
        new = copy.deepcopy(old)
        new["status"].update(given)
        strategy.default(new)
        strategy.prepare_status(new, copy.deepcopy(old))
        assert (new["status"]["podIP"], new["status"]["podIPs"]) == ("1.2.3.4", [{"ip": "1.2.3.4"}])
        assert new["status"]["qosClass"] == "BestEffort"


def test_field_selectors_read_the_stored_pod() -> None:
    obj = pod(nodeName="n", hostNetwork=True)
    obj["status"]["podIPs"] = [{"ip": "1.2.3.4"}]
    assert {path: read(obj) for path, read in PodStrategy.selectable.items()} == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "default",
        "spec.hostNetwork": "true",
        "status.phase": "Pending",
        "status.podIP": "1.2.3.4",
        "status.nominatedNodeName": "",
    }


def test_a_gated_pod_may_be_narrowed_but_not_widened() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"

    def affinity(*terms: Object) -> Object:
        return {"nodeAffinity": {required: {"nodeSelectorTerms": list(terms)}}}

    old = pod(schedulingGates=[{"name": "a/b"}], nodeSelector={"x": "y"}, affinity=affinity(term))
    more = {"matchExpressions": [*term["matchExpressions"], {"key": "disk", "operator": "Exists"}]}
    _, causes = written(PodStrategy(POD), old, nodeSelector={"x": "y", "z": "w"}, affinity=affinity(more))
    assert causes == []
    _, causes = written(PodStrategy(POD), old, nodeSelector={"z": "w"}, affinity=affinity(term, more))
    assert [cause.split(": ")[0] for cause in causes] == [
        "spec.nodeSelector",
        f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {
                "containers": [
                    {"name": "c", "image": "x", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
                ]
            },
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"memory": "100m"}}}]},
            'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
        ),
        (
            {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]},
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        (
            {"volumes": [{"name": "v", "gitRepo": {"repository": "x"}}]},
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_about(spec: Object, expected: str) -> None:
    assert PodStrategy(POD).warnings(pod(**spec)) == [expected]


def test_a_variable_may_build_on_an_earlier_one_of_its_name() -> None:
    env = [{"name": "PATH", "value": "/a"}, {"name": "PATH", "value": "/b:$(PATH)"}]
    assert PodStrategy(POD).warnings(pod(containers=[{"name": "c", "image": "x", "env": env}])) == []
