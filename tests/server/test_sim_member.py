"""One simulated member: workloads behave as they would in a cluster with machines."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from argosy.kube.client import Patch
from argosy.server.watchcache.store import StoreEvent
from argosy.sim.deployments import Deployments
from argosy.sim.member import Member
from argosy.sim.replicasets import ReplicaSets
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import (
    DEPLOYMENTS,
    FAST,
    NAMESPACES,
    NODES,
    PODS,
    REPLICASETS,
    condition,
    deployment,
    image_of,
    is_ready,
    pods,
    rolled_out,
    stored,
    until,
)


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(3, cpu="2"),)), FAST)
    await one.open()
    yield one
    await one.close()


@pytest.fixture
async def patient() -> AsyncIterator[Member]:
    """Pods stay on a lost node for the five minutes they tolerate by default."""
    one = Member(MemberSpec("m", (NodePool(3, cpu="2"),)), msgspec.structs.replace(FAST, eviction=None))
    await one.open()
    yield one
    await one.close()


async def apply(member: Member, obj: dict[str, Any]) -> None:
    await member.client().create(DEPLOYMENTS, obj, "default")


async def change(member: Member, spec: dict[str, Any], name: str = "web") -> None:
    await member.client().patch(DEPLOYMENTS, name, {"spec": spec}, "default", kind=Patch.STRATEGIC)


def with_image(image: str) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}


async def test_a_deployment_rolls_out(member: Member) -> None:
    await apply(member, deployment(replicas=5))
    done = await until(member, rolled_out(member))
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert done["metadata"]["generation"] == done["status"]["observedGeneration"] == 1
    assert condition(done, "Available")["reason"] == "MinimumReplicasAvailable"
    [replica_set] = stored(member, "apps/replicasets")
    name = replica_set["metadata"]["name"]
    assert condition(done, "Progressing") | {"lastUpdateTime": "", "lastTransitionTime": ""} == {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable",
        "message": f'ReplicaSet "{name}" has successfully progressed.',
        "lastUpdateTime": "",
        "lastTransitionTime": "",
    }
    hashed = replica_set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"]
    assert name == f"web-{hashed}"
    for pod in pods(member):
        assert pod["metadata"]["name"].startswith(f"{name}-")
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": hashed}
        assert pod["status"]["phase"] == "Running"
        assert is_ready(pod)
        assert condition(pod, "PodScheduled")["status"] == "True"
        assert pod["status"]["containerStatuses"][0]["state"]["running"]
    assert len({pod["status"]["podIP"] for pod in pods(member)}) == 5
    spread = Counter(pod["spec"]["nodeName"] for pod in pods(member))
    assert sorted(spread.values()) == [1, 2, 2]


async def test_scaling_in_keeps_the_pods_that_stay_and_out_starts_only_new_ones(member: Member) -> None:
    await apply(member, deployment(replicas=4))
    await until(member, rolled_out(member))
    four = {pod["metadata"]["uid"] for pod in pods(member)}
    await change(member, {"replicas": 2})
    await until(member, rolled_out(member))
    two = {pod["metadata"]["uid"] for pod in pods(member)}
    assert len(two) == 2
    assert two < four
    await change(member, {"replicas": 6})
    await until(member, rolled_out(member))
    assert two < {pod["metadata"]["uid"] for pod in pods(member)}
    await change(member, {"replicas": 0})
    await until(member, lambda: not stored(member, "core/pods"))


@pytest.mark.parametrize(("surge", "unavailable"), [("25%", "25%"), (1, 0), (0, 1), (3, 2), ("100%", 0)])
async def test_a_rolling_update_stays_within_its_bounds_at_every_moment(
    member: Member, surge: int | str, unavailable: int | str
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    await apply(member, deployment(replicas=8, strategy=rolling))
    await until(member, rolled_out(member))
    most, least = 0, 8

    def sample(event: StoreEvent) -> None:
        nonlocal most, least
        if event.entry.key.startswith("apps/replicasets/"):
            most = max(most, sum(one["spec"]["replicas"] for one in stored(member, "apps/replicasets")))
        elif event.entry.key.startswith("core/pods/"):
            least = min(least, sum(is_ready(pod) for pod in pods(member)))

    stop = member.embedded.server.store.subscribe(sample)
    await change(member, with_image("nginx:2"))
    done = await until(member, rolled_out(member))
    stop()
    assert {image_of(pod) for pod in pods(member)} == {"nginx:2"}
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    more = {"25%": 2, "100%": 8}.get(str(surge), surge)
    fewer = {"25%": 2}.get(str(unavailable), unavailable)
    assert most <= 8 + int(more)
    assert least >= 8 - int(fewer)
    assert (most, least) != (8, 8)


async def test_recreate_stops_everything_before_it_starts_anything(member: Member) -> None:
    await apply(member, deployment(replicas=3, strategy={"type": "Recreate"}))
    await until(member, rolled_out(member))
    mixed = []

    def sample(event: StoreEvent) -> None:
        mixed.append(len({image_of(pod) for pod in stored(member, "core/pods")}) > 1)

    stop = member.embedded.server.store.subscribe(sample)
    await change(member, with_image("nginx:2"))
    await until(member, lambda: {image_of(pod) for pod in pods(member)} == {"nginx:2"} and rolled_out(member)())
    stop()
    assert mixed
    assert not any(mixed)


async def test_pods_that_fit_nowhere_say_so_and_start_when_there_is_room(member: Member) -> None:
    await apply(member, deployment("big", replicas=3, cpu="1500m"))
    await until(member, rolled_out(member, "big"))
    await apply(member, deployment(replicas=2, cpu="1"))
    waiting = await until(member, lambda: [p for p in pods(member) if condition(p, "PodScheduled").get("message")])
    await until(member, lambda: len([p for p in pods(member) if condition(p, "PodScheduled").get("message")]) == 2)
    scheduled = condition(waiting[0], "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    assert scheduled["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert waiting[0]["status"]["phase"] == "Pending"
    events = await until(
        member, lambda: [e for e in stored(member, "core/events") if e["reason"] == "FailedScheduling"]
    )
    assert events[0]["message"] == scheduled["message"]
    await member.client().delete(DEPLOYMENTS, "big", "default", propagation="Background")
    await until(member, rolled_out(member))
    failures = [e for e in stored(member, "core/events") if e["reason"] == "FailedScheduling"]
    assert all(e["count"] <= 2 for e in failures)


async def test_a_new_node_is_room_too(member: Member) -> None:
    await apply(member, deployment(replicas=1, cpu="3"))
    message = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: "
    message += "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    await until(member, lambda: [p for p in pods(member) if condition(p, "PodScheduled").get("message") == message])
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "large"},
        "status": {
            "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    await member.client().create(NODES, node)
    await until(member, rolled_out(member))
    assert pods(member)[0]["spec"]["nodeName"] == "large"


async def test_a_bad_image_stops_a_rollout_without_taking_what_runs(member: Member) -> None:
    await apply(member, deployment(replicas=4, progressDeadlineSeconds=1))
    await until(member, rolled_out(member))
    await change(member, with_image("nginx:bad"))

    def failed() -> dict[str, Any] | None:
        [obj] = stored(member, "apps/deployments")
        return obj if condition(obj, "Progressing").get("reason") == "ProgressDeadlineExceeded" else None

    stuck = await until(member, failed)
    assert condition(stuck, "Progressing")["status"] == "False"
    assert stuck["status"]["availableReplicas"] == 3
    assert stuck["status"]["updatedReplicas"] == 2
    bad = [pod for pod in pods(member) if image_of(pod) == "nginx:bad"]
    assert {pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] for pod in bad} == {"ImagePullBackOff"}
    assert {pod["status"]["phase"] for pod in bad} == {"Pending"}
    await change(member, with_image("nginx:3"))
    done = await until(member, rolled_out(member))
    assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_pods_of_a_lost_node_are_replaced_and_it_comes_back(member: Member) -> None:
    await apply(member, deployment(replicas=3))
    await until(member, rolled_out(member))
    member.lose_node("m-node-1")

    def gone() -> dict[str, Any] | None:
        node = next(one for one in stored(member, "core/nodes") if one["metadata"]["name"] == "m-node-1")
        keys = {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or ()}
        wanted = {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")}
        return node if condition(node, "Ready")["status"] == "Unknown" and keys == wanted else None

    node = await until(member, gone)
    assert condition(node, "Ready")["reason"] == "NodeStatusUnknown"
    await until(member, lambda: sum(is_ready(pod) for pod in pods(member)) == 2)
    await until(member, lambda: (rolled_out(member)() or {}).get("status", {}).get("terminatingReplicas") == 1)
    assert "m-node-1" not in {pod["spec"]["nodeName"] for pod in pods(member)}
    # Nobody can tell that the pod over there has stopped, so it stays until the node is back.
    assert len(stored(member, "core/pods")) == 4
    member.recover_node("m-node-1")
    await until(member, lambda: len(stored(member, "core/pods")) == 3)
    await until(
        member,
        lambda: (
            not gone()
            and all("taints" not in n["spec"] or not n["spec"]["taints"] for n in stored(member, "core/nodes"))
        ),
    )


async def test_a_node_that_is_back_soon_keeps_its_pods(patient: Member) -> None:
    member = patient
    await apply(member, deployment(replicas=3))
    await until(member, rolled_out(member))
    before = {pod["metadata"]["uid"] for pod in pods(member)}
    member.lose_node("m-node-0")
    await until(member, lambda: sum(is_ready(pod) for pod in pods(member)) == 2)
    member.recover_node("m-node-0")
    await until(member, rolled_out(member))
    assert {pod["metadata"]["uid"] for pod in pods(member)} == before


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_deleting_a_deployment_takes_its_pods_along(member: Member, propagation: str) -> None:
    await apply(member, deployment())
    await until(member, rolled_out(member))
    order: list[str] = []
    member.embedded.server.store.subscribe(
        lambda event: order.append(event.entry.key.split("/")[1]) if event.deleted else None
    )
    await member.client().delete(DEPLOYMENTS, "web", "default", propagation=propagation)
    tables = ("apps/deployments", "apps/replicasets", "core/pods")
    await until(member, lambda: not any(stored(member, table) for table in tables))
    kinds = [kind for kind in order if kind != "events"]
    assert (kinds[0] if propagation == "Background" else kinds[-1]) == "deployments"
    assert Counter(kinds) == {"deployments": 1, "replicasets": 1, "pods": 3}


async def test_orphans_run_on_and_are_adopted_by_a_new_deployment(member: Member) -> None:
    await apply(member, deployment())
    await until(member, rolled_out(member))
    before = {pod["metadata"]["uid"] for pod in pods(member)}
    await member.client().delete(DEPLOYMENTS, "web", "default", propagation="Orphan")
    await until(member, lambda: not stored(member, "apps/deployments"))
    [replica_set] = stored(member, "apps/replicasets")
    assert not replica_set["metadata"].get("ownerReferences")
    await member.client().delete(REPLICASETS, replica_set["metadata"]["name"], "default", propagation="Orphan")
    await until(member, lambda: not stored(member, "apps/replicasets"))
    assert {pod["metadata"]["uid"] for pod in pods(member)} == before
    await member.client().create(REPLICASETS, _without_server_fields(replica_set), "default")
    await apply(member, deployment())
    await until(member, rolled_out(member))
    assert {pod["metadata"]["uid"] for pod in pods(member)} == before
    assert len(stored(member, "apps/replicasets")) == 1


def _without_server_fields(obj: dict[str, Any]) -> dict[str, Any]:
    kept = {key: obj["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept, "spec": obj["spec"]}


async def test_a_paused_deployment_scales_but_does_not_roll(member: Member) -> None:
    await apply(member, deployment(replicas=2))
    await until(member, rolled_out(member))
    await change(member, {"paused": True, "replicas": 4, **with_image("nginx:2")})
    four = await until(
        member,
        lambda: next(
            (d for d in stored(member, "apps/deployments") if d["status"].get("availableReplicas") == 4), None
        ),
    )
    assert condition(four, "Progressing")["reason"] == "DeploymentPaused"
    assert "updatedReplicas" not in four["status"]
    assert {image_of(pod) for pod in pods(member)} == {"nginx:1"}
    assert len(stored(member, "apps/replicasets")) == 1
    await change(member, {"paused": False})
    done = await until(member, rolled_out(member))
    assert {image_of(pod) for pod in pods(member)} == {"nginx:2"}
    assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_old_revisions_go_when_the_limit_is_lowered(member: Member) -> None:
    """The status that tells of the new generation is the last event."""
    await apply(member, deployment(replicas=1))
    await until(member, rolled_out(member))
    await change(member, with_image("nginx:2"))

    def quiet() -> bool:
        done = rolled_out(member)()
        return done is not None and done["status"]["terminatingReplicas"] == 0 and len(stored(member, "core/pods")) == 1

    await until(member, quiet)
    await change(member, {"revisionHistoryLimit": 0})
    await until(member, lambda: len(stored(member, "apps/replicasets")) == 1)


async def test_old_revisions_are_kept_to_the_limit_and_can_come_back(member: Member) -> None:
    await apply(member, deployment(replicas=1, revisionHistoryLimit=1))
    for version in ("1", "2", "3"):
        await change(member, with_image(f"nginx:{version}"))
        await until(
            member, lambda v=version: rolled_out(member)() and {image_of(p) for p in pods(member)} == {f"nginx:{v}"}
        )
    await until(member, lambda: len(stored(member, "apps/replicasets")) == 2)
    await change(member, with_image("nginx:2"))
    done = await until(member, lambda: {image_of(p) for p in pods(member)} == {"nginx:2"} and rolled_out(member)())
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "4"
    revisions = {
        image_of({"spec": one["spec"]["template"]["spec"]}): one["metadata"]["annotations"]
        for one in stored(member, "apps/replicasets")
    }
    assert revisions["nginx:2"]["deployment.kubernetes.io/revision"] == "4"
    assert revisions["nginx:2"]["deployment.kubernetes.io/revision-history"] == "2"


async def test_a_settled_member_writes_nothing(member: Member) -> None:
    await apply(member, deployment(replicas=3, progressDeadlineSeconds=1))
    await until(member, rolled_out(member))
    await member.cluster.flush_events()
    version = member.embedded.server.store.version
    # A second look at everything finds nothing to write.
    for controller, table in ((ReplicaSets, "apps/replicasets"), (Deployments, "apps/deployments")):
        queue = next(one.queue for one in member.manager.controllers if isinstance(one, controller))
        for obj in stored(member, table):
            queue.add(f"{table}/default/{obj['metadata']['name']}")
        await queue.idle()
    assert member.embedded.server.store.version == version


async def test_a_pod_of_its_own_runs_where_it_says(member: Member) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone"},
        "spec": {"nodeName": "m-node-2", "containers": [{"name": "a", "image": "nginx"}]},
    }
    await member.client().create(PODS, pod, "default")
    [running] = await until(member, lambda: [one for one in pods(member) if is_ready(one)])
    assert running["spec"]["nodeName"] == "m-node-2"
    await member.client().delete(PODS, "alone", "default")
    await until(member, lambda: not stored(member, "core/pods"))


async def test_a_deleted_pod_is_replaced(member: Member) -> None:
    await apply(member, deployment(replicas=2))
    await until(member, rolled_out(member))
    victim = pods(member)[0]["metadata"]["name"]
    await member.client().delete(PODS, victim, "default")
    await until(
        member,
        lambda: len([pod for pod in pods(member) if is_ready(pod)]) == 2 and len(stored(member, "core/pods")) == 2,
    )
    assert victim not in {pod["metadata"]["name"] for pod in pods(member)}


async def test_a_deleted_namespace_takes_everything_along(member: Member) -> None:
    client = member.client()
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    await client.create(DEPLOYMENTS, deployment(replicas=4), "gone")
    await until(member, lambda: sum(is_ready(pod) for pod in pods(member)) == 4)
    await client.delete(NAMESPACES, "gone")
    await until(member, lambda: "gone" not in {one["metadata"]["name"] for one in stored(member, "core/namespaces")})
    assert not stored(member, "core/pods")
    assert not stored(member, "apps/replicasets")
    node = next(iter(member.cluster.nodes.nodes.values()))
    assert not any(node.taken.values())


async def test_pods_that_are_relabelled_are_released_and_replaced(member: Member) -> None:
    await apply(member, deployment(replicas=2))
    await until(member, rolled_out(member))
    taken = pods(member)[0]["metadata"]["name"]
    await member.client().patch(PODS, taken, {"metadata": {"labels": {"app": "debug"}}}, "default")
    await until(member, lambda: sum(is_ready(pod) for pod in pods(member)) == 3)
    free = next(pod for pod in pods(member) if pod["metadata"]["name"] == taken)
    assert not free["metadata"].get("ownerReferences")
    await until(member, rolled_out(member))


async def test_a_readiness_gate_holds_a_pod_until_its_condition_is_true(member: Member) -> None:
    gated = deployment(replicas=1)
    gated["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": "example.org/open"}]
    await apply(member, gated)
    [pod] = await until(member, lambda: [p for p in pods(member) if condition(p, "ContainersReady")])
    assert pod["status"]["phase"] == "Running"
    assert condition(pod, "Ready") | {"message": "", "lastTransitionTime": ""} == {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": "",
        "lastTransitionTime": "",
    }
    started = pod["status"]["containerStatuses"]
    for state, ready in (("True", 1), ("False", 0)):
        body = {"status": {"conditions": [{"type": "example.org/open", "status": state}]}}
        name = pod["metadata"]["name"]
        await member.client().patch(PODS, name, body, "default", kind=Patch.STRATEGIC, subresource="status")
        [pod] = await until(
            member, lambda n=ready: pods(member) if sum(is_ready(p) for p in pods(member)) == n else None
        )
    assert pod["status"]["containerStatuses"] == started


async def test_events_tell_who_made_and_placed_and_stopped_what(member: Member) -> None:
    await apply(member, deployment(replicas=2))
    await until(member, rolled_out(member))
    await change(member, {"replicas": 1})
    await until(member, lambda: len(stored(member, "core/pods")) == 1)
    await member.cluster.flush_events()
    told = Counter(
        (event["involvedObject"]["kind"], event["reason"], event["source"]["component"])
        for event in stored(member, "core/events")
    )
    assert told == {
        ("Deployment", "ScalingReplicaSet", "deployment-controller"): 2,
        ("ReplicaSet", "SuccessfulCreate", "replicaset-controller"): 2,
        ("ReplicaSet", "SuccessfulDelete", "replicaset-controller"): 1,
        ("Pod", "Scheduled", "default-scheduler"): 2,
    }


async def test_a_deployment_of_one_costs_thirteen_writes(patient: Member) -> None:
    writes: list[str] = []
    patient.embedded.server.store.subscribe(lambda event: writes.append(event.entry.key.split("/")[1]))
    await apply(patient, deployment(replicas=1))
    await until(patient, rolled_out(patient))
    await patient.cluster.flush_events()
    for controller in patient.manager.controllers:
        await controller.queue.idle()
    # Fewer where the machine is slow and changes are seen together.
    assert Counter(writes) <= Counter({"deployments": 4, "replicasets": 3, "pods": 3, "events": 3})
    assert Counter(writes)["events"] == 3


async def test_a_pod_that_is_driven_out_says_so(member: Member) -> None:
    await apply(member, deployment(replicas=1))
    await until(member, rolled_out(member))
    [pod] = pods(member)
    member.lose_node(pod["spec"]["nodeName"])
    leaving = await until(
        member, lambda: [p for p in stored(member, "core/pods") if "deletionTimestamp" in p["metadata"]]
    )
    assert condition(leaving[0], "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    await member.cluster.flush_events()
    reasons = {event["reason"] for event in stored(member, "core/events")}
    assert {"NodeNotReady", "TaintManagerEviction"} <= reasons


async def test_a_machine_can_be_added(member: Member) -> None:
    await apply(member, deployment(replicas=1, cpu="3"))
    await until(member, lambda: [p for p in pods(member) if condition(p, "PodScheduled").get("status") == "False"])
    await member.add_node("large", {"cpu": "8", "memory": "8Gi", "pods": "10"}, {"size": "large"})
    await until(member, rolled_out(member))
    assert pods(member)[0]["spec"]["nodeName"] == "large"


async def test_an_image_that_cannot_be_pulled_is_complained_about(member: Member) -> None:
    await apply(member, deployment(replicas=1, image="nginx:bad"))
    await until(member, lambda: [e for e in stored(member, "core/events") if e["reason"] == "BackOff"])
    told = Counter(
        (e["type"], e["reason"]) for e in stored(member, "core/events") if e["source"]["component"] == "kubelet"
    )
    assert told == {("Normal", "Pulling"): 1, ("Warning", "Failed"): 2, ("Normal", "BackOff"): 1}
