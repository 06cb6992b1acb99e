"""`argosy status` on a federation of simulated members: what it says of each state, and that "nothing" means all is as wanted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from argosy.api import keys, resources
from argosy.cli.output.report import Report, gather, report
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.ground import Ground, World, simulated_ground
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SERVICES, weights
from tests.scenarios.outages import lose, regain

pytestmark = pytest.mark.asyncio(loop_scope="module")

EQUAL = weights(m1=1, m2=1, m3=1)
IMAGE = "/spec/template/spec/containers/0/image"
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    async with simulated_ground(tmp_path_factory.mktemp("plane")) as made:
        yield made
        await made.leave()


@pytest_asyncio.fixture(loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        await made.policy(**EQUAL)
        yield made


async def told(world: World, resource: Resource = DEPLOYMENTS, name: str = "web") -> Report:
    place = world.namespace if resource.namespaced else None
    return report(await gather(world.client, resource, name, place))


async def eventually_waits_for(
    world: World, text: str, resource: Resource = DEPLOYMENTS, name: str = "web"
) -> list[str]:
    """What it waits for, once that names the text."""

    async def waits() -> list[str]:
        waiting = (await told(world, resource, name)).waiting
        return waiting if any(text in line for line in waiting) else []

    try:
        return await world.eventually(waits)
    except AssertionError:
        raise AssertionError(f"{text!r} is not in {(await told(world, resource, name)).waiting}") from None


async def eventually_as_wanted(world: World, resource: Resource = DEPLOYMENTS, name: str = "web") -> Report:
    async def done() -> Report | None:
        made = await told(world, resource, name)
        return None if made.waiting else made

    try:
        return await world.eventually(done)
    except AssertionError:
        raise AssertionError(f"it still waits for {(await told(world, resource, name)).waiting}") from None


async def deployed(world: World, replicas: int = 6) -> None:
    await world.deploy(replicas=replicas)
    await eventually_as_wanted(world)


async def create(world: World, resource: Resource, spec: dict[str, Any], name: str = "web", **labels: str) -> None:
    metadata = {
        "name": name,
        "namespace": world.namespace,
        "labels": {keys.PROPAGATION_POLICY_LABEL: "policy", **labels},
    }
    api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    await world.client.create(
        resource, {"apiVersion": api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    )


async def change_type(world: World, name: str, spec: dict[str, Any]) -> None:
    await world.client.patch(resources.FEDERATED_TYPE_CONFIGS, name, {"spec": spec}, kind=Patch.MERGE)


def workload(image: str = "nginx:1.29", **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": image}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}


# Roll-outs.


async def test_an_image_that_cannot_be_pulled_is_never_as_wanted(world: World) -> None:
    await deployed(world)
    await world.set_image("nginx:bad")
    waiting = await eventually_waits_for(world, "m1: 1 of 2 replicas are updated")
    assert {line.partition(":")[0] for line in waiting} == {"m1", "m2", "m3"}
    # All old replicas run and are ready, and yet nothing more happens.
    assert (await told(world)).ready == 6
    await world.set_image("nginx:1.30")
    made = await eventually_as_wanted(world)
    assert (made.ready, made.replicas) == (6, 6)


async def test_waiting_for_nothing_means_that_each_member_runs_the_newest_image(world: World) -> None:
    await deployed(world)
    for number in range(3):
        await world.set_image(f"nginx:1.3{number}")
        await eventually_as_wanted(world)
        for copy in (await world.copies()).values():
            assert copy["spec"]["template"]["spec"]["containers"][0]["image"] == f"nginx:1.3{number}"
            counts = copy["status"]
            assert counts["updatedReplicas"] == counts["availableReplicas"] == counts["replicas"] == 2


async def test_a_label_that_names_an_override_is_waited_for_at_once(world: World) -> None:
    await deployed(world)
    await override(world, {"path": IMAGE, "operator": "replace", "value": "mirror/nginx:1"})
    await eventually_as_wanted(world)
    copy = (await world.copies())["m2"]
    assert copy["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/nginx:1"


async def test_a_statefulset_whose_new_pod_does_not_start(world: World) -> None:
    await create(world, STATEFULSETS, workload(replicas=6, serviceName="web"))
    await eventually_as_wanted(world, STATEFULSETS)
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:bad"}]}}}}
    await world.client.patch(STATEFULSETS, "web", body, world.namespace, kind=Patch.STRATEGIC)
    await eventually_waits_for(world, "replicas are available", STATEFULSETS)
    await eventually_waits_for(world, "replicas are updated", STATEFULSETS)


async def test_a_job_is_as_wanted_when_it_is_complete(world: World) -> None:
    await world.policy("each", schedulingMode="Duplicate")
    pod = {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Never"}
    labels = {keys.PROPAGATION_POLICY_LABEL: "each"}
    await create(world, JOBS, {"completions": 2, "parallelism": 1, "template": {"spec": pod}}, **labels)
    await eventually_waits_for(world, "m1: 1 of 2 completions", JOBS)
    await eventually_as_wanted(world, JOBS)
    assert all(copy["status"]["succeeded"] == 2 for copy in (await world.copies("web", JOBS)).values())


async def test_a_failed_job_is_not_as_wanted(world: World) -> None:
    await world.policy("each", schedulingMode="Duplicate")
    pod = {"containers": [{"name": "main", "image": "nginx:crash"}], "restartPolicy": "Never"}
    labels = {keys.PROPAGATION_POLICY_LABEL: "each"}
    await create(world, JOBS, {"backoffLimit": 0, "template": {"spec": pod}}, **labels)
    waiting = await eventually_waits_for(world, "m1: the Job failed: BackoffLimitExceeded", JOBS)
    assert {line.partition(":")[0] for line in waiting} >= {"m1", "m2", "m3"}


async def test_a_configmap_and_a_service_are_as_wanted_once_they_are_there(world: World) -> None:
    await world.policy("each", schedulingMode="Duplicate")
    await world.configure("settings", {"a": "b"}, "each")
    await eventually_as_wanted(world, CONFIGMAPS, "settings")
    assert set(await world.copies("settings", CONFIGMAPS)) == {"m1", "m2", "m3"}
    ports = [{"port": 80}]
    await create(world, SERVICES, {"ports": ports}, "inside", **{keys.PROPAGATION_POLICY_LABEL: "each"})
    await eventually_as_wanted(world, SERVICES, "inside")
    outside = {"ports": ports, "type": "LoadBalancer", "loadBalancerClass": "example.com/nobodys"}
    await create(world, SERVICES, outside, "outside", **{keys.PROPAGATION_POLICY_LABEL: "each"})
    await eventually_waits_for(world, "m1: its load balancer has no address", SERVICES, "outside")


# Overrides that are refused.


async def override(world: World, patch: dict[str, Any], name: str = "mirror") -> None:
    rule = {"targetClusters": {"clusters": ["m2"]}, "overriders": {"jsonpatch": [patch]}}
    await world.client.create(
        resources.OVERRIDE_POLICIES,
        {
            "apiVersion": keys.API_VERSION,
            "kind": "OverridePolicy",
            "metadata": {"name": name, "namespace": world.namespace},
            "spec": {"overrideRules": [rule]},
        },
    )
    body = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: name}}}
    await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)


REFUSED = {"m1": "OK", "m2": "ApplyOverridesFailed", "m3": "OK"}


async def test_an_override_that_is_refused_shows_in_the_cluster_it_is_for(world: World) -> None:
    await deployed(world)
    await override(world, {"path": "/spec/no/such/field", "operator": "replace", "value": 1})
    why = "OverridePolicy mirror, overrideRules[0], cluster m2: jsonpatch: "
    await eventually_waits_for(world, f"m2: ApplyOverridesFailed: {why}")

    async def refused() -> bool:
        return await world.propagation() == REFUSED

    await world.eventually(refused, "the federated object says so")
    status = (await world.federated())["status"]
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions == {"Propagated": ("False", "CheckClusters"), "OverridesApplied": ("False", "OverridesInvalid")}
    assert all(why in each["message"] for each in (status["conditions"][1], status["clusters"][1]))
    await world.scale("web", 9)
    await world.set_image("nginx:1.30")
    await eventually_waits_for(world, "m2: its copy keeps 2 replicas, and 3 are wanted")
    await world.eventually_replicas({"m1": 3, "m2": 2, "m3": 3})
    made = await told(world)
    assert {each.name: each.propagation for each in made.clusters} == REFUSED
    assert {each.name: why in each.error for each in made.clusters} == {"m1": False, "m2": True, "m3": False}
    await world.client.delete(resources.OVERRIDE_POLICIES, "mirror", world.namespace)
    missing = f"OverridePolicy {world.namespace}/mirror not found: what is wanted is not known in any cluster"
    await eventually_waits_for(world, missing)
    await world.set_image("nginx:1.31")

    async def nowhere() -> bool:
        return await world.propagation() == dict.fromkeys(world.names, "ApplyOverridesFailed")

    await world.eventually(nowhere, "without the policy, nobody knows what is wanted anywhere")
    assert all(missing in each.error for each in (await told(world)).clusters)
    body = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: None}}}
    await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
    made = await eventually_as_wanted(world)
    assert (made.ready, {each.propagation for each in made.clusters}) == (9, {"OK"})


async def test_of_an_override_that_is_refused_no_more_a_paused_cluster_tells_nothing(world: World) -> None:
    await deployed(world)
    pause = {"metadata": {"annotations": {keys.PAUSED: "true"}}}
    await world.client.patch(resources.FEDERATED_CLUSTERS, "m2", pause, kind=Patch.MERGE)
    try:
        await override(world, {"path": "/spec/no/such/field", "operator": "replace", "value": 1})

        async def states(wanted: dict[str, str]) -> bool:
            return await world.propagation() == wanted

        await world.eventually(lambda: states(REFUSED))
        body = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: None}}}
        await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
        await world.eventually(
            lambda: states(dict.fromkeys(world.names, "OK")), "it has what is wanted, though nothing was sent"
        )
    finally:
        resume = {"metadata": {"annotations": {keys.PAUSED: None}}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, "m2", resume, kind=Patch.MERGE)
    await eventually_as_wanted(world)


# Nothing happens.


async def test_a_missing_policy_is_told_by_status_and_condition_and_no_cluster_is_ok(world: World) -> None:
    await deployed(world)
    await world.client.delete(resources.PROPAGATION_POLICIES, "policy", world.namespace)
    await eventually_waits_for(world, f"PolicyNotFound: PropagationPolicy {world.namespace}/policy not found")
    await world.scale("web", 9)

    async def pending() -> bool:
        return {each.propagation for each in (await told(world)).clusters} == {"Pending"}

    await world.eventually(pending, "what is scaled and not sent is not OK")

    async def conditions() -> bool:
        federated = await world.federated()
        found = {each["type"]: (each["status"], each["reason"]) for each in federated["status"]["conditions"]}
        return found.get("Scheduled") == ("False", "PolicyNotFound")

    await world.eventually(conditions, "the federated object says so")
    await world.policy(**EQUAL)
    await eventually_as_wanted(world)


async def test_a_policy_that_never_was(world: World) -> None:
    await world.deploy(policy="nowhere")
    await eventually_waits_for(world, "held, placed nowhere: PolicyNotFound")


async def test_an_object_that_names_no_policy(world: World) -> None:
    await world.deploy(policy="")
    await eventually_waits_for(world, "not federated: no policy is named")


async def test_an_object_that_names_no_policy_any_more(world: World) -> None:
    await deployed(world)
    body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}
    await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
    await eventually_waits_for(world, "placed nowhere: no policy is named")


async def test_an_object_that_is_not_to_be_scheduled(world: World) -> None:
    manifest = {"name": "web", "namespace": world.namespace, "annotations": {keys.NO_SCHEDULING: "true"}}
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**manifest, "labels": labels}}
    await world.client.create(CONFIGMAPS, body)
    await eventually_waits_for(world, f"placed nowhere: the annotation {keys.NO_SCHEDULING} says so", CONFIGMAPS)


async def test_a_policy_that_allows_no_cluster(world: World) -> None:
    await world.policy("none", placement=[{"cluster": "nowhere"}])
    await world.deploy(policy="none")
    await eventually_waits_for(world, "held, placed nowhere: Unschedulable")


async def test_a_type_without_controllers_places_nothing(world: World) -> None:
    await change_type(world, "limitranges", {"controllers": None})
    limits = Resource("", "v1", "limitranges", "LimitRange")
    try:
        await create(world, limits, {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]})
        text = "placed nowhere: NoPlacingStep: the type config limitranges lists no controller that places objects"
        await eventually_waits_for(world, text, limits)
    finally:
        await change_type(world, "limitranges", {"controllers": [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]]})
    await eventually_as_wanted(world, limits)


async def test_a_type_whose_status_comes_back_to_nobody(world: World) -> None:
    await deployed(world)
    await change_type(world, "deployments.apps", {"statusAggregation": {"enabled": False}})
    try:
        await world.scale("web", 9)
        text = "its own status is not kept: the type config deployments.apps has no status aggregation"
        await eventually_waits_for(world, text)
    finally:
        await change_type(world, "deployments.apps", {"statusAggregation": {"enabled": True}})
    await eventually_as_wanted(world)


async def test_a_type_that_collects_no_status_is_told_by_the_sum(world: World) -> None:
    before = (await world.client.get(resources.FEDERATED_TYPE_CONFIGS, "deployments.apps"))["spec"]["statusCollection"]
    await change_type(world, "deployments.apps", {"statusCollection": {"enabled": False}})
    try:
        await deployed(world)
        await world.set_image("nginx:bad")
        await eventually_waits_for(world, "all clusters together: 3 of 6 replicas are updated")
        await change_type(world, "deployments.apps", {"statusAggregation": {"enabled": False}})
        await eventually_waits_for(world, "how it does in the members is not known")
    finally:
        restored = {"statusCollection": before, "statusAggregation": {"enabled": True}}
        await change_type(world, "deployments.apps", restored)


async def test_a_type_that_is_not_federated(world: World) -> None:
    leases = Resource("coordination.k8s.io", "v1", "leases", "Lease")
    await create(world, leases, {})
    await eventually_waits_for(world, "this kind is not federated: no FederatedTypeConfig names it", leases)


async def test_an_object_that_is_tried_only(world: World) -> None:
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "web", "namespace": world.namespace, "labels": labels, "annotations": {keys.DRY_RUN: "true"}}
    await world.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await eventually_waits_for(world, "a dry run: nothing is created", CONFIGMAPS)


async def test_a_pause_is_waited_for_only_if_it_keeps_something_back(world: World) -> None:
    await deployed(world)
    pause = "m3 is paused: `argosy resume cluster m3`"
    await world.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{keys.PAUSED: "true"})
    try:
        made = await eventually_as_wanted(world)
        assert made.paused == [pause]
        await world.scale("web", 9)
        await eventually_waits_for(world, "m3: Pending")
        made = await told(world)
        assert pause in made.waiting
    finally:
        await world.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{keys.PAUSED: None})
    assert (await eventually_as_wanted(world)).ready == 9


async def test_what_a_paused_object_keeps_back_is_not_ok(world: World) -> None:
    await deployed(world)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: "true"})
    await world.scale("web", 9)
    await eventually_waits_for(world, "this object is paused")

    async def pending() -> bool:
        return {each.propagation for each in (await told(world)).clusters} == {"Pending"}

    try:
        await world.eventually(pending, "nothing of it is sent")
    finally:
        await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: None})
    assert (await eventually_as_wanted(world)).ready == 9


async def federated_conditions(world: World) -> dict[str, tuple[str, str]]:
    conditions = (await world.federated())["status"]["conditions"]
    return {each["type"]: (each["status"], each.get("reason", "")) for each in conditions}


async def eventually_says(world: World, wanted: dict[str, tuple[str, str]]) -> None:
    async def probe() -> bool:
        return await federated_conditions(world) == wanted

    try:
        await world.eventually(probe)
    except AssertionError:
        raise AssertionError(f"{await federated_conditions(world)}, not {wanted}") from None


async def test_a_hold_that_ends_while_the_object_is_paused_is_told_no_more(world: World) -> None:
    await deployed(world)
    await override(world, {"path": "/spec/no/such/field", "operator": "replace", "value": 1})
    held = {"Propagated": ("False", "CheckClusters"), "OverridesApplied": ("False", "OverridesInvalid")}
    await eventually_says(world, held)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: "true"})
    try:
        await eventually_waits_for(world, "this object is paused")
        await eventually_says(world, held)
        body = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: None}}}
        await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.MERGE)
        # A Deployment's annotations are part of what is sent: the pause itself is kept back.
        await eventually_says(world, {"Propagated": ("False", "CheckClusters")})
    finally:
        await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.PAUSED: None})
    await eventually_as_wanted(world)
    assert await federated_conditions(world) == {"Propagated": ("True", "")}


async def source_conditions(world: World) -> dict[str, tuple[str, str]]:
    conditions = ((await world.source()).get("status") or {}).get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


async def test_the_conditions_of_a_deployment_follow_what_is_missing(world: World, ground: Ground) -> None:
    complete = {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    await deployed(world)

    async def says(**conditions: tuple[str, str]) -> None:
        async def probe() -> bool:
            return conditions.items() <= (await source_conditions(world)).items()

        try:
            await world.eventually(probe)
        except AssertionError:
            raise AssertionError(f"{await source_conditions(world)}, not {conditions}") from None

    await says(**complete)
    await world.client.delete(resources.PROPAGATION_POLICIES, "policy", world.namespace)
    await eventually_waits_for(world, "PolicyNotFound")
    await says(Progressing=("False", "Held"), Available=complete["Available"])
    await world.policy(**EQUAL)
    await says(**complete)
    await lose(ground.candidates["m2"])
    try:
        await says(Available=("Unknown", "ClusterNotReachable"), Progressing=("Unknown", "ClusterNotReachable"))
    finally:
        await regain(ground.candidates["m2"])
    await says(**complete)
    assert not (await told(world)).waiting


async def test_a_taint_that_moves_nothing_is_not_waited_for(world: World, ground: Ground) -> None:
    """No record says that it was looked at."""
    await deployed(world)
    taint = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
    await world.client.patch(resources.FEDERATED_CLUSTERS, "m3", taint, kind=Patch.MERGE)
    try:
        assert not (await told(world)).waiting
    finally:
        untaint = {"spec": {"taints": None}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, "m3", untaint, kind=Patch.MERGE)


async def test_a_taint_that_was_not_acted_on_yet_is_waited_for(world: World, ground: Ground) -> None:
    await deployed(world)
    await ground.stop_controllers()
    try:
        taint = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, "m3", taint, kind=Patch.MERGE)
        assert (await told(world)).waiting == ["clusters changed since it was placed: it is not scheduled anew yet"]
    finally:
        await ground.start_controllers()
    try:
        made = await eventually_as_wanted(world)
        assert {each.name: each.replicas for each in made.clusters} == {"m1": 3, "m2": 3}
    finally:
        none = {"spec": {"taints": None}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, "m3", none, kind=Patch.MERGE)
    await eventually_as_wanted(world)


async def test_a_deadline_that_passed_in_a_member_is_the_reason(world: World) -> None:
    await deployed(world)
    body = {"spec": {"progressDeadlineSeconds": 2, "minReadySeconds": 0}}
    body["spec"]["template"] = {"spec": {"containers": [{"name": "main", "image": "nginx:bad"}]}}
    await world.client.patch(DEPLOYMENTS, "web", body, world.namespace, kind=Patch.STRATEGIC)

    async def failed() -> bool:
        return (await source_conditions(world)).get("Progressing") == ("False", "ProgressDeadlineExceeded")

    await world.eventually(failed, "kubectl rollout status would end with an error")
    await eventually_waits_for(world, "the roll-out does not progress: ProgressDeadlineExceeded")
    await eventually_waits_for(world, "m1: 1 of 2 pods: ImagePullBackOff")


async def test_a_namespace_goes_everywhere_without_a_policy(world: World) -> None:
    await eventually_as_wanted(world, NAMESPACES, world.namespace)


async def test_no_replicas_are_as_wanted_too(world: World) -> None:
    await deployed(world, 3)
    await world.scale("web", 0)
    made = await eventually_as_wanted(world)
    assert (made.ready, made.replicas) == (0, 0)
    assert all(copy["spec"]["replicas"] == 0 for copy in (await world.copies()).values())


async def test_an_object_that_starts_without_replicas(world: World) -> None:
    await world.deploy(replicas=0)
    await eventually_waits_for(world, "placed nowhere: it has no replicas to divide")
    await world.scale("web", 3)
    await eventually_as_wanted(world)


async def test_an_object_in_a_member_that_is_away(world: World, ground: Ground) -> None:
    await deployed(world)
    candidate = ground.candidates["m2"]
    await lose(candidate)
    try:
        await eventually_waits_for(world, "m2 is not ready")
    finally:
        await regain(candidate)
    await eventually_as_wanted(world)


async def test_a_crd_is_as_wanted_once_each_member_serves_its_kind(world: World) -> None:
    policy = {"metadata": {"name": "crds"}, "spec": {"schedulingMode": "Duplicate"}}
    kind = {"apiVersion": keys.API_VERSION, "kind": "ClusterPropagationPolicy"}
    await world.client.create(resources.CLUSTER_PROPAGATION_POLICIES, {**kind, **policy})
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    named = {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"}
    labels = {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "crds"}
    spec = {"group": "example.com", "names": named, "scope": "Namespaced", "versions": [version]}
    name = "ships.example.com"
    manifest = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    await world.client.create(DEFINITIONS, {**manifest, "metadata": {"name": name, "labels": labels}})
    try:
        await eventually_as_wanted(world, DEFINITIONS, name)
        for member in world.names:
            copy = await world.member(member).get(DEFINITIONS, name)
            assert any(each["type"] == "Established" for each in copy["status"]["conditions"])
    finally:
        await world.client.delete(DEFINITIONS, name)
        await world.eventually(lambda: _gone(world, DEFINITIONS, name))
        await world.client.delete(resources.CLUSTER_PROPAGATION_POLICIES, "crds")


async def _gone(world: World, resource: Resource, name: str) -> bool:
    return not await world.exists(resource, name)


async def test_members_that_keep_their_own_replicas_are_as_wanted_with_those(world: World) -> None:
    await world.policy("each", schedulingMode="Duplicate")
    await world.deploy(replicas=2, policy="each")
    await eventually_as_wanted(world)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.RETAIN_REPLICAS: "true"})
    await eventually_as_wanted(world)
    await world.member("m1").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, world.namespace)

    async def more() -> bool:
        made = await told(world)
        return not made.waiting and [each.ready for each in made.clusters] == [4, 2, 2]

    await world.eventually(more, "m1 runs four")
