"""What members keep of their copies when these are written again: fields they filled in, keys of their own, replicas they own."""

from contextlib import suppress
from typing import Any

from argosy.api import keys
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists
from argosy.kube.resource import Resource
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, PODS, SERVICES, weights
from tests.scenarios.seen import eventually_rolled_out, images, settled, uids

__all__ = [
    "test_a_job_that_has_finished_is_left_alone",
    "test_keys_that_the_source_loses_go_and_those_of_a_member_stay",
    "test_replicas_that_a_member_owns_stay_its_own",
    "test_what_members_fill_in_stays_when_a_source_changes",
]

_JOBS = Resource("batch", "v1", "jobs", "Job")
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_LABELS = {keys.PROPAGATION_POLICY_LABEL: "policy"}
_EVERYWHERE: dict[str, Any] = {"schedulingMode": "Duplicate"}
_CONTAINERS = [{"name": "main", "image": "app:1"}]
_CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}
_SOURCES: dict[str, tuple[Resource, dict[str, Any]]] = {
    "services": (SERVICES, {"spec": {"type": "NodePort", "selector": {"app": "one"}, "ports": [{"port": 80}]}}),
    "serviceaccounts": (_ACCOUNTS, {}),
    "jobs.batch": (
        _JOBS,
        {"spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}}},
    ),
    "persistentvolumeclaims": (_CLAIMS, {"spec": _CLAIM}),
    "pods": (PODS, {"spec": {"containers": _CONTAINERS}}),
}


async def test_what_members_fill_in_stays_when_a_source_changes(world: World) -> None:
    await world.policy(**_EVERYWHERE)
    with suppress(AlreadyExists):  # a control plane need not have a controller that makes it
        await world.client.create(_ACCOUNTS, {"metadata": {"name": "default", "namespace": world.namespace}})
    for resource, content in _SOURCES.values():
        metadata = {"name": "one", "namespace": world.namespace, "labels": _LABELS}
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}
        await world.client.create(resource, manifest)
    for type_name in _SOURCES:
        await settled(world, f"one-{type_name}")

    async def run() -> bool:
        return all("nodeName" in copy["spec"] for copy in (await world.copies("one", PODS)).values())

    await world.eventually(run, "the pods have nodes")
    # What no controller of these members does.
    for name in world.names:
        secrets = {"secrets": [{"name": f"of-{name}"}]}
        await world.member(name).patch(_ACCOUNTS, "one", secrets, world.namespace, kind=Patch.MERGE)
        bound = {"spec": {"volumeName": f"of-{name}"}}
        await world.member(name).patch(_CLAIMS, "one", bound, world.namespace, kind=Patch.MERGE)
    before = {type_name: await _kept(world, resource) for type_name, (resource, _) in _SOURCES.items()}
    for resource, _ in _SOURCES.values():
        await world.annotate(resource, "one", world.namespace, **{"example.com/changed": "yes"})

    async def arrived() -> bool:
        found = [copy for resource, _ in _SOURCES.values() for copy in (await world.copies("one", resource)).values()]
        said = [copy["metadata"].get("annotations", {}).get("example.com/changed") for copy in found]
        return said == ["yes"] * len(_SOURCES) * len(world.names)

    await world.eventually(arrived, "the change is in every copy")
    for type_name, (resource, _) in _SOURCES.items():
        assert await _kept(world, resource) == before[type_name], type_name
        await settled(world, f"one-{type_name}")


async def _kept(world: World, resource: Resource) -> dict[str, Any]:
    """What tells that a copy is the same one, with what its member filled in."""
    found = {}
    for name, copy in (await world.copies("one", resource)).items():
        content = {key: copy[key] for key in ("spec", "secrets") if key in copy}
        found[name] = [copy["metadata"]["uid"], content]
    return found


async def test_keys_that_the_source_loses_go_and_those_of_a_member_stay(world: World) -> None:
    await world.policy(**_EVERYWHERE)
    await world.configure("settings", {"key": "value"})
    await settled(world, "settings-configmaps")
    ours = {"metadata": {"labels": {"team": "ours", "stays": "ours"}, "annotations": {"note": "ours", "kept": "ours"}}}
    await world.client.patch(CONFIGMAPS, "settings", ours, world.namespace, kind=Patch.MERGE)

    async def meta(member: str) -> tuple[dict[str, str], dict[str, str]]:
        found = (await world.member(member).get(CONFIGMAPS, "settings", world.namespace))["metadata"]
        labels, annotations = found["labels"], found["annotations"]
        return (
            {key: labels[key] for key in ("team", "stays", "local") if key in labels},
            {key: annotations[key] for key in ("note", "kept", "local") if key in annotations},
        )

    async def arrived() -> bool:
        return await meta("m1") == ({"team": "ours", "stays": "ours"}, {"note": "ours", "kept": "ours"})

    await world.eventually(arrived)
    local = {"metadata": {"labels": {"local": "theirs"}, "annotations": {"local": "theirs"}}}
    await world.member("m1").patch(CONFIGMAPS, "settings", local, world.namespace, kind=Patch.MERGE)
    less = {"metadata": {"labels": {"team": None}, "annotations": {"note": None}}}
    await world.client.patch(CONFIGMAPS, "settings", less, world.namespace, kind=Patch.MERGE)

    async def only_theirs_and_the_rest() -> bool:
        ours = ({"stays": "ours"}, {"kept": "ours"})
        theirs = ({"stays": "ours", "local": "theirs"}, {"kept": "ours", "local": "theirs"})
        return await meta("m1") == theirs and await meta("m2") == ours

    await world.eventually(only_theirs_and_the_rest)
    federated = await settled(world, "settings-configmaps")
    assert not any(each.get("drift") for each in federated["status"]["clusters"]), "a member's own keys are no drift"


async def test_replicas_that_a_member_owns_stay_its_own(world: World) -> None:
    """As they are where an autoscaler of a member scales its copy."""
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=4)
    await eventually_rolled_out(world, 4)
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.RETAIN_REPLICAS: "true"})

    async def mirrored() -> bool:
        return keys.RETAIN_REPLICAS in (await world.federated())["metadata"]["annotations"]

    await world.eventually(mirrored)
    await settled(world)
    scaled = {"spec": {"replicas": 5}}
    await world.member("m1").patch(DEPLOYMENTS, "web", scaled, world.namespace, kind=Patch.MERGE, subresource="scale")

    async def stays() -> bool:
        return await world.replicas() == {"m1": 5, "m2": 2}

    await world.eventually(stays)
    await holds(stays, 2.0)
    await world.set_image("nginx:1.30")

    async def arrived() -> bool:
        return set((await images(world)).values()) == {"nginx:1.30"}

    await world.eventually(arrived)
    assert await stays()

    async def as_wanted() -> bool:
        return not report(await gather(world.client, DEPLOYMENTS, "web", world.namespace)).waiting

    await world.eventually(as_wanted, "that is not waited for")
    assert not any(each.get("drift") for each in (await settled(world))["status"]["clusters"]), "nor is it drift"


async def test_a_job_that_has_finished_is_left_alone(world: World) -> None:
    """It is not made again, whatever it says about the time it is kept, nor replaced when its source changes."""
    await world.policy(**_EVERYWHERE)
    metadata = {"name": "work", "namespace": world.namespace, "labels": _LABELS}
    spec = {"ttlSecondsAfterFinished": 1, "template": {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}}
    await world.client.create(_JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    await settled(world, "work-jobs.batch")
    for name in world.names:
        await _finish(world, name)

    async def complete() -> bool:
        status = (await world.source("work", _JOBS)).get("status") or {}
        return any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions") or ())

    await world.eventually(complete, "it is complete everywhere")
    before = await uids(world, "work", _JOBS)
    ended = await _ended(world)
    await world.annotate(_JOBS, "work", world.namespace, **{"example.com/changed": "yes"})

    async def changed() -> bool:
        found = await world.copies("work", _JOBS)
        return all(copy["metadata"]["annotations"].get("example.com/changed") == "yes" for copy in found.values())

    await world.eventually(changed)
    await world.ground.stop_controllers()
    await world.ground.start_controllers()
    await world.ground.eventually_ready(*world.names)

    async def alone() -> bool:
        return await uids(world, "work", _JOBS) == before and await _ended(world) == ended

    await holds(alone, 2.0)


async def _finish(world: World, member: str) -> None:
    """Its pods succeed: nothing runs in these members."""
    client = world.member(member)

    async def pods() -> list[dict[str, Any]]:
        listed = await client.list(PODS, world.namespace, label_selector="job-name=work")
        return [each for each in listed.items if each["spec"].get("nodeName")]

    for pod in await world.eventually(pods, f"a pod runs in {member}"):
        status = {"status": {"phase": "Succeeded", "conditions": []}}
        await client.patch(
            PODS, pod["metadata"]["name"], status, world.namespace, kind=Patch.MERGE, subresource="status"
        )


async def _ended(world: World) -> dict[str, str]:
    found = await world.copies("work", _JOBS)
    return {name: str((copy.get("status") or {}).get("completionTime")) for name, copy in found.items()}
