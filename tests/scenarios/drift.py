"""Members' objects under other hands: edited, deleted, there before us; and what is right is left alone."""

from typing import Any

from argosy.api import keys
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SERVICES, deployment, exists, weights
from tests.scenarios.seen import eventually_rolled_out, images, quiet, settled, uids

__all__ = [
    "test_a_copy_deleted_behind_our_back_is_made_again",
    "test_a_copy_edited_behind_our_back_is_repaired_and_keeps_what_is_the_members_own",
    "test_an_object_that_was_there_before_is_a_conflict_until_it_may_be_adopted",
    "test_copies_that_are_right_are_never_written_again",
]

EVERYWHERE = {"schedulingMode": "Duplicate"}
KINDS = {
    "deployments.apps": DEPLOYMENTS,
    "statefulsets.apps": Resource("apps", "v1", "statefulsets", "StatefulSet"),
    "daemonsets.apps": Resource("apps", "v1", "daemonsets", "DaemonSet"),
    "jobs.batch": Resource("batch", "v1", "jobs", "Job"),
    "cronjobs.batch": Resource("batch", "v1", "cronjobs", "CronJob"),
    "services": SERVICES,
    "configmaps": CONFIGMAPS,
    "secrets": Resource("", "v1", "secrets", "Secret"),
    "serviceaccounts": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    "persistentvolumeclaims": Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    "limitranges": Resource("", "v1", "limitranges", "LimitRange"),
    "resourcequotas": Resource("", "v1", "resourcequotas", "ResourceQuota"),
    "ingresses.networking.k8s.io": Resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
    "roles.rbac.authorization.k8s.io": Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    "rolebindings.rbac.authorization.k8s.io": Resource(
        "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"
    ),
}


async def test_a_copy_edited_behind_our_back_is_repaired_and_keeps_what_is_the_members_own(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=4)
    await world.configure("settings", {"colour": "blue"})
    await eventually_rolled_out(world, 4)
    await settled(world)
    await settled(world, "settings-configmaps")
    before = await uids(world)
    member = world.member("m1")
    theirs = {"metadata": {"annotations": {"example.com/owner": "local"}}, "spec": {"replicas": 7}}
    await member.patch(DEPLOYMENTS, "web", theirs, world.namespace)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}}}}
    await world.member("m2").patch(DEPLOYMENTS, "web", image, world.namespace, kind=Patch.STRATEGIC)
    await member.patch(CONFIGMAPS, "settings", {"data": {"colour": "red", "more": "yes"}}, world.namespace)
    unlabelled = {"metadata": {"annotations": {keys.PROPAGATED_LABEL_KEYS: None}}}
    await world.member("m2").patch(CONFIGMAPS, "settings", unlabelled, world.namespace)

    async def repaired() -> bool:
        found = await world.copies("settings", CONFIGMAPS)
        return (
            await world.replicas() == {"m1": 2, "m2": 2}
            and set((await images(world)).values()) == {"nginx:1.29"}
            and all(copy["data"] == {"colour": "blue"} for copy in found.values())
            and all(keys.PROPAGATED_LABEL_KEYS in copy["metadata"]["annotations"] for copy in found.values())
        )

    await world.eventually(repaired, "copies are as they should be")
    await eventually_rolled_out(world, 4)
    assert await uids(world) == before, "repaired, not replaced"
    kept = (await world.copies())["m1"]["metadata"]["annotations"]
    assert kept["example.com/owner"] == "local"


async def test_a_copy_deleted_behind_our_back_is_made_again(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=4)
    await world.configure("settings", {"colour": "blue"})
    await eventually_rolled_out(world, 4)
    await settled(world, "settings-configmaps")
    before = await uids(world)
    await world.member("m1").delete(DEPLOYMENTS, "web", world.namespace, propagation="Background")
    await world.member("m2").delete(CONFIGMAPS, "settings", world.namespace)

    async def made_again() -> bool:
        found = await uids(world)
        return found.keys() == {"m1", "m2"} and found["m1"] != before["m1"] and found["m2"] == before["m2"]

    await world.eventually(made_again, "the copy in m1 is back and m2's was not touched")

    async def back() -> bool:
        return len(await world.copies("settings", CONFIGMAPS)) == 2

    await world.eventually(back, "the ConfigMap in m2 is back")
    await eventually_rolled_out(world, 4)


async def test_an_object_that_was_there_before_is_a_conflict_until_it_may_be_adopted(world: World) -> None:
    member = world.member("m1")
    await world.eventually(lambda: exists(member, NAMESPACES, world.namespace), "the namespace is there")
    theirs = await member.create(DEPLOYMENTS, deployment("web", 1, "", world.namespace, team="local"))
    await world.policy(**EVERYWHERE)
    await world.deploy(replicas=2)

    async def conflict() -> bool:
        return await world.propagation() == {"m1": "AlreadyExists", "m2": "OK", "m3": "OK"}

    await world.eventually(conflict, "the conflict is shown")

    async def untouched() -> bool:
        return bool((await world.replicas())["m1"] == 1)

    await holds(untouched, 1.0)
    adopt = {keys.CONFLICT_RESOLUTION: "adopt", keys.CLUSTERS_TO_ADOPT: '{"clusters":["m1"]}'}
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **adopt)
    await world.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    adopted = (await world.copies())["m1"]["metadata"]
    assert adopted["uid"] == theirs["metadata"]["uid"], "taken over as it is"
    assert adopted["annotations"][keys.ADOPTED] == "true"
    assert adopted["labels"]["team"] == "local"
    # Adopted copies outlive a federation that was asked to leave them.
    await world.annotate(DEPLOYMENTS, "web", world.namespace, **{keys.ORPHAN: "adopted"})

    async def mirrored() -> bool:
        return (await world.federated())["metadata"]["annotations"].get(keys.ORPHAN) == "adopted"

    await world.eventually(mirrored)
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)
    await world.ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    left = await world.copies()
    assert left.keys() == {"m1"}
    assert keys.MANAGED_LABEL not in left["m1"]["metadata"]["labels"]


async def test_copies_that_are_right_are_never_written_again(world: World) -> None:
    """Defaults, addresses, selectors and finalizers that members fill in are no reason to fight over an object."""
    await world.policy(**EVERYWHERE)
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    for resource in KINDS.values():
        await world.client.create(resource, _manifest(resource, world.namespace, labels))
    for type_name in KINDS:
        await settled(world, f"one-{type_name}")

    async def writes() -> dict[str, Any]:
        """Everything we ever wrote there, as the members themselves have noted it."""
        noted: dict[str, Any] = {}
        for type_name, resource in KINDS.items():
            for name, copy in (await world.copies("one", resource)).items():
                noted[f"{name} {type_name}"] = _our_entries(copy)
        return noted

    at_rest = await quiet(writes, 2.0, world.patience)
    assert len(at_rest) == len(KINDS) * 3
    await world.ground.stop_controllers()
    await world.ground.start_controllers()
    await world.ground.eventually_ready(*world.names)
    await world.eventually(lambda: all(each.has_synced for each in world.ground.inside.collector.informers().values()))
    assert await quiet(writes, 2.0, world.patience) == at_rest
    for type_name in KINDS:
        await settled(world, f"one-{type_name}")


def _our_entries(copy: dict[str, Any]) -> list[str]:
    """By the server's books of who set what and when; where it keeps none, its version is all there is."""
    entries = copy["metadata"].get("managedFields")
    if entries is None:
        return [copy["metadata"]["uid"], str(copy["metadata"].get("generation") or copy["metadata"]["resourceVersion"])]
    return [copy["metadata"]["uid"], *(each["time"] for each in entries if each["manager"].startswith("argosy"))]


def _manifest(resource: Resource, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": namespace, "labels": labels}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **_CONTENT.get(resource.kind, {}),
    }


def _template(**more: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1", "ports": [{"containerPort": 80}]}]
    return {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": containers, **more}}


_SELECTOR = {"matchLabels": {"app": "one"}}
_JOB = {"template": _template(restartPolicy="Never")}
_PATH = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "one", "port": {"number": 80}}}}
_GROUP = "rbac.authorization.k8s.io"
_CONTENT: dict[str, dict[str, Any]] = {
    "Deployment": {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _template()}},
    "StatefulSet": {"spec": {"replicas": 1, "serviceName": "one", "selector": _SELECTOR, "template": _template()}},
    "DaemonSet": {"spec": {"selector": _SELECTOR, "template": _template()}},
    "Job": {"spec": _JOB},
    "CronJob": {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": _JOB}}},
    "Service": {"spec": {"type": "NodePort", "selector": {"app": "one"}, "ports": [{"port": 80}]}},
    "ConfigMap": {"data": {"key": "value"}},
    "Secret": {"stringData": {"key": "value"}},
    "PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        }
    },
    "LimitRange": {
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1m"}}]}
    },
    "ResourceQuota": {"spec": {"hard": {"pods": "200", "requests.cpu": "100"}}},
    "Ingress": {"spec": {"rules": [{"host": "one.example.com", "http": {"paths": [_PATH]}}]}},
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": "one"},
        "subjects": [{"kind": "User", "name": "somebody", "apiGroup": _GROUP}],
    },
}
