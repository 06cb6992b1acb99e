"""What is measured of scheduling, under the names KubeAdmiral's dashboards ask for."""

from prometheus_client import generate_latest

from argosy.api import resources
from argosy.kube.client import Patch
from tests.harness.eventually import eventually
from tests.harness.federation import Federation

PREFIX = "kubeadmiral_controller_manager_"


async def test_decisions_are_counted_and_timed():
    async with Federation(2) as fed:
        await fed.policy()
        await fed.deploy(replicas=2)
        await fed.eventually_replicas({"m1": 1, "m2": 1})

        def value(name, **labels):
            return fed.manager.metrics.registry.get_sample_value(PREFIX + name, labels)

        await eventually(lambda: value("schedule_attempts_total", profile="default-scheduler", result="scheduled"))
        assert value("scheduling_attempt_duration_seconds_count", profile="default-scheduler", result="scheduled") >= 1
        assert value("scheduler_throughput") >= 1
        assert value("scheduler_latency_seconds_count") == value("scheduler_throughput")
        assert value("queue_incoming_federated_object_total", event="FedObjChanged") >= 1
        for point in ("Filter", "Score", "SelectClusters", "Replicas"):
            labels = {"extension_point": point, "profile": "default-scheduler", "status": "Success"}
            assert value("scheduler_framework_extension_point_duration_seconds_count", **labels) >= 1, point
        plugin = {"extension_point": "Filter", "plugin": "ClusterReady", "status": "Success"}
        assert value("scheduler_plugin_execution_duration_seconds_count", **plugin) >= 1
        assert f"{PREFIX}scheduler_throughput ".encode() in generate_latest(fed.manager.metrics.registry)


async def test_what_woke_an_object_is_told_apart():
    async with Federation(2) as fed:
        await fed.policy()
        await fed.deploy(replicas=2)
        await fed.eventually_replicas({"m1": 1, "m2": 1})
        registry = fed.manager.metrics.registry
        name = PREFIX + "queue_incoming_federated_object_total"
        change = {"spec": {"maxClusters": 1}}
        await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", change, "default", kind=Patch.MERGE)
        await eventually(lambda: registry.get_sample_value(name, {"event": "PolicyChanged"}))
