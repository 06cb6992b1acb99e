"""What the loops measure of themselves."""

import asyncio

from prometheus_client import generate_latest

from argosy.api import keys, resources
from argosy.kube.resource import Resource
from tests.harness.definitions import CRDS, scaled_definition, scaled_type
from tests.harness.eventually import eventually
from tests.harness.federation import NAMESPACES, SERVICES, Federation

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


async def test_how_long_a_write_takes_is_not_measured_of_objects_that_were_there_before_a_start() -> None:
    async with Federation(2) as fed:

        def measured(what: str) -> float:
            name = f"argosy_{what}_seconds_count"
            return fed.manager.metrics.registry.get_sample_value(name, {"type": "deployments.apps"}) or 0.0

        await fed.policy()
        await fed.deploy(replicas=2)
        await eventually(lambda: measured("propagation") == 1)
        await fed.stop_controllers()
        await asyncio.sleep(100.0)
        await fed.start_controllers()
        await eventually(fed.quiet)
        await fed.eventually_replicas({"m1": 1, "m2": 1})
        # Status and cluster changes make all objects be looked at again.
        await asyncio.sleep(30.0)
        assert (measured("propagation"), measured("status_return")) == (0, 0)
        await fed.scale("web", 4)
        await eventually(lambda: measured("propagation") == 1)
        # One that is new is measured.
        await fed.deploy("other", replicas=2)
        await eventually(lambda: measured("propagation") == 2)


async def test_the_system_namespace_is_marked_whoever_made_it() -> None:
    async with Federation(0) as fed:
        await fed.stop_controllers()
        body = {"metadata": {"annotations": {keys.NO_FEDERATED_RESOURCE: None}}}
        await fed.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body)
        await fed.start_controllers()

        async def marked() -> bool:
            found = await fed.client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
            return bool((found["metadata"].get("annotations") or {}).get(keys.NO_FEDERATED_RESOURCE) == "true")

        await eventually(marked, 5.0)
        assert fed.manager.problems() == []


async def test_what_dashboards_for_kubeadmiral_ask_for_is_there_under_its_names() -> None:
    async with Federation(2) as fed:
        await fed.policy()
        await fed.deploy(replicas=2)
        await fed.eventually_replicas({"m1": 1, "m2": 1})

        def value(metric: str, /, **labels: str) -> float | None:
            registry = fed.manager.metrics.registry
            return registry.get_sample_value(f"kubeadmiral_controller_manager_{metric}", labels)

        for name in ("federate_controller", "sync", "status_aggregator", "federated_cluster_controller"):
            await eventually(lambda name=name: value(f"{name}_throughput"))
            assert value(f"{name}_latency_seconds_count") == value(f"{name}_throughput")
            assert (value(f"{name}_latency_seconds_sum") or 0) >= 0
            assert value(f"{name}_latency_seconds_bucket", le="+Inf") == value(f"{name}_throughput")
        passes = fed.manager.metrics.registry.get_sample_value("argosy_reconcile_seconds_count", {"loop": "dispatch"})
        assert value("sync_throughput") == passes
        for state, number in (("ready", 1), ("joined", 1), ("offline", 0)):
            assert value(f"cluster_{state}_state", cluster_name="m1") == number
        assert value("cluster_deletion_state", cluster_name="m1", status="deleting") == 0
        await eventually(lambda: value("cluster_cpu_allocatable_number", cluster_name="m2") == 16)
        assert value("cluster_schedulable_nodes_total", cluster_name="m2") == 1
        assert (value("cluster_memory_available_bytes", cluster_name="m2") or 0) > 0
        assert value("propagation_policy_reference_count", name="policy", namespace="default") == 1
        assert value("member_operation_error", cluster="m1", operation="create", reason="Invalid") is None
        text = generate_latest(fed.manager.metrics.registry).decode()
        assert "\nkubeadmiral_controller_manager_sync_throughput " in text
        # A process that leads again serves them once.
        await fed.stop_controllers()
        before = fed.manager.metrics
        assert "cluster_ready_state" not in generate_latest(before.registry).decode()


async def test_writes_that_members_refuse_are_counted() -> None:
    async with Federation(1) as fed:
        await fed.policy()
        manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
        manifest["spec"] = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
        await fed.member("m1").create(SERVICES, {**manifest, "metadata": {"name": "first", "namespace": "default"}})
        manifest["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        await fed.client.create(SERVICES, manifest)
        name = "kubeadmiral_controller_manager_member_operation_error"
        labels = {"cluster": "m1", "operation": "create", "reason": "Invalid"}
        await eventually(lambda: fed.manager.metrics.registry.get_sample_value(name, labels))


async def test_how_long_a_member_is_silent_is_told_until_it_leaves() -> None:
    async with Federation(2) as fed:

        def seconds(metric: str, cluster: str) -> float | None:
            return fed.manager.metrics.registry.get_sample_value(f"argosy_{metric}_seconds", {"cluster": cluster})

        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy(replicas=1)
        await eventually(lambda: seconds("cluster_silent", "m1") == 0 and seconds("watch_age", "m1") is not None)
        await fed.servers["m2"].close_door()
        await eventually(lambda: (seconds("cluster_silent", "m2") or 0) > 30, 60.0)
        assert seconds("cluster_silent", "m1") == 0
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await eventually(lambda: seconds("cluster_silent", "m1") is None and seconds("watch_age", "m1") is None, 60.0)


async def test_watches_on_a_member_that_is_down_or_does_not_serve_the_kind_have_no_age() -> None:
    async with Federation(2) as fed:

        def age(cluster: str) -> float | None:
            registry = fed.manager.metrics.registry
            return registry.get_sample_value("argosy_watch_age_seconds", {"cluster": cluster})

        await fed.policy(schedulingMode="Duplicate")
        await fed.client.create(CRDS, scaled_definition(WIDGETS))
        await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, scaled_type(WIDGETS))
        await fed.member("m1").create(CRDS, scaled_definition(WIDGETS))
        metadata = {"name": "one", "namespace": "default", "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"}}
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 1}}
        await fed.client.create(WIDGETS, widget)
        await fed.deploy(replicas=1)
        await eventually(lambda: ("m2", "widgets.example.com") in fed.inside.collector.informers())
        await asyncio.sleep(100.0)
        assert max(age("m1") or 0, age("m2") or 0) < 60, "m2 does not serve widgets"
        await fed.servers["m2"].close_door()
        await asyncio.sleep(60.0)
        await fed.stop_controllers()
        await fed.start_controllers()
        await eventually(lambda: age("m1") is not None)
        for _ in range(10):
            assert age("m2") is None
            await asyncio.sleep(10.0)
        await fed.servers["m2"].open_door()
        await eventually(lambda: age("m2") is not None, 120.0)
        await asyncio.sleep(60.0)
        assert (age("m2") or 0) < 60
