"""What a workload needs goes where it goes, and leaves with the last workload that needs it."""

import msgspec
import orjson
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, QUICK, SECRETS, SERVICES, Federation
from tests.harness.leading import (
    ACCOUNTS,
    AUTOSCALERS,
    BUDGETS,
    CLAIMS,
    INGRESSES,
    config_map,
    eventually_in,
    needing,
    secret,
    service_account,
    where,
)
from tests.harness.user import weights

#: What is missing is told soon.
TIMINGS = msgspec.structs.replace(QUICK, missing_grace=0.5)


@pytest.fixture
async def fed():
    async with Federation(3, timings=TIMINGS) as federation:
        yield federation


async def placed(fed, name):
    federated = await fed.federated(name)
    return {
        entry["controller"].removeprefix(keys.PREFIX): [each["cluster"] for each in entry["placement"]]
        for entry in federated["spec"].get("placements") or ()
    }


async def follows(fed, name):
    return [each["name"] for each in (await fed.federated(name))["spec"].get("follows") or ()]


async def test_what_a_deployment_needs_goes_where_it_goes(fed):
    await fed.policy(**weights(m1=1, m2=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(SECRETS, secret("password"))
    await fed.client.create(SECRETS, secret("registry"))
    await fed.client.create(ACCOUNTS, service_account("app", "default", "registry"))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "default"}
    await fed.client.create(
        CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
    )
    await fed.client.create(CONFIGMAPS, config_map("unrelated"))
    manifest = needing(config_maps=("settings",), secrets=("password",), account="app", claims=("data",))
    await fed.client.create(DEPLOYMENTS, manifest)
    for resource, name in (
        (DEPLOYMENTS, "web"),
        (CONFIGMAPS, "settings"),
        (SECRETS, "password"),
        (ACCOUNTS, "app"),
        (CLAIMS, "data"),
        (SECRETS, "registry"),
    ):
        await eventually_in(fed, resource, name, "m1", "m2")
    assert await where(fed, CONFIGMAPS, "unrelated") == []
    assert await placed(fed, "settings-configmaps") == {"follower-controller": ["m1", "m2"]}
    (leader,) = (await fed.federated("settings-configmaps"))["spec"]["follows"]
    assert leader == {"group": "apps", "kind": "Deployment", "namespace": "default", "name": "web"}
    assert await follows(fed, "registry-secrets") == ["app"], "what a follower needs follows it in turn"


async def test_a_follower_that_comes_late_is_told_missing_and_then_goes_along(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await fed.eventually_replicas({"m1": 3})

    async def told():
        return (await fed.federated())["metadata"]["annotations"].get(keys.WAITS_FOR)

    assert await eventually(told) == '["ConfigMap default/settings"]'
    (event,) = await eventually(lambda: fed.events("FollowersMissing"))
    assert event["message"] == "waits for ConfigMap default/settings, which does not exist"
    assert event["involvedObject"]["name"] == "web"
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")

    async def told_no_more():
        return await told() is None

    await eventually(told_no_more)
    await fed.client.delete(CONFIGMAPS, "settings", "default")
    assert await eventually(told) == '["ConfigMap default/settings"]', "what is deleted is missing again"


async def test_what_comes_soon_enough_is_not_told_missing(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await eventually(fed.quiet)
    assert not await fed.events("FollowersMissing")
    assert (await fed.federated())["metadata"]["resourceVersion"]


async def test_a_shared_follower_leaves_with_the_last_of_its_leaders(fed):
    await fed.policy("one", **weights(m1=1, m2=1))
    await fed.policy("two", **weights(m2=1, m3=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(DEPLOYMENTS, needing("a", config_maps=("settings",), policy="one"))
    await fed.client.create(DEPLOYMENTS, needing("b", config_maps=("settings",), policy="two"))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1", "m2", "m3")
    assert await follows(fed, "settings-configmaps") == ["a", "b"]
    await fed.client.delete(DEPLOYMENTS, "a", "default")
    await eventually_in(fed, CONFIGMAPS, "settings", "m2", "m3")
    assert await follows(fed, "settings-configmaps") == ["b"]
    await fed.client.delete(DEPLOYMENTS, "b", "default")
    await eventually_in(fed, CONFIGMAPS, "settings")
    assert await fed.exists(CONFIGMAPS, "settings", "default"), "the source is its owner's"


async def test_a_follower_goes_along_when_its_leader_moves(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await fed.client.patch(
        resources.PROPAGATION_POLICIES, "policy", {"spec": weights(m3=1)}, "default", kind=Patch.MERGE
    )
    await fed.eventually_replicas({"m3": 3})
    await eventually_in(fed, CONFIGMAPS, "settings", "m3")
    assert await placed(fed, "settings-configmaps") == {"follower-controller": ["m3"]}


async def test_a_follower_with_a_policy_of_its_own_goes_to_both(fed):
    await fed.policy(**weights(m1=1))
    await fed.policy("mine", schedulingMode="Duplicate", placement=[{"cluster": "m3"}])
    manifest = config_map("settings")
    manifest["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "mine"}
    await fed.client.create(CONFIGMAPS, manifest)
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1", "m3")
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await eventually_in(fed, CONFIGMAPS, "settings", "m3")


async def test_what_an_override_names_goes_to_its_cluster_only(fed):
    patch = {
        "operator": "add",
        "path": "/spec/template/spec/containers/0/envFrom",
        "value": [{"configMapRef": {"name": "special"}}],
    }
    rule = {"targetClusters": {"clusters": ["m2"]}, "overriders": {"jsonpatch": [patch]}}
    policy = {"apiVersion": keys.API_VERSION, "kind": "OverridePolicy", "spec": {"overrideRules": [rule]}}
    await fed.client.create(
        resources.OVERRIDE_POLICIES, {**policy, "metadata": {"name": "special", "namespace": "default"}}
    )
    await fed.policy(**weights(m1=1, m2=1))
    await fed.client.create(CONFIGMAPS, config_map("special"))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    manifest = needing(config_maps=("settings",), replicas=4)
    manifest["metadata"]["labels"][keys.OVERRIDE_POLICY_LABEL] = "special"
    await fed.client.create(DEPLOYMENTS, manifest)
    await eventually_in(fed, CONFIGMAPS, "special", "m2")
    await eventually_in(fed, CONFIGMAPS, "settings", "m1", "m2")


async def test_an_object_that_is_to_follow_nobody_does_not(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(CONFIGMAPS, config_map("alone", **{keys.DISABLE_FOLLOWING: "true"}))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings", "alone")))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await eventually(fed.quiet)
    assert await where(fed, CONFIGMAPS, "alone") == []
    await fed.annotate(CONFIGMAPS, "settings", "default", **{keys.DISABLE_FOLLOWING: "true"})
    await eventually_in(fed, CONFIGMAPS, "settings")
    assert "follows" not in (await fed.federated("settings-configmaps"))["spec"]
    await fed.annotate(CONFIGMAPS, "alone", "default", **{keys.DISABLE_FOLLOWING: None})
    await eventually_in(fed, CONFIGMAPS, "alone", "m1")


async def test_a_policy_may_keep_followers_from_following(fed):
    await fed.policy(**weights(m1=1), disableFollowerScheduling=True)
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings", "nowhere")))
    await fed.eventually_replicas({"m1": 3})
    await eventually(fed.quiet)
    assert await where(fed, CONFIGMAPS, "settings") == []
    assert not await fed.events("FollowersMissing"), "who takes care of it himself is not told"
    allowed = {"spec": {"disableFollowerScheduling": False}}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", allowed, "default", kind=Patch.MERGE)
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")


async def test_an_annotation_lists_further_followers(fed):
    await fed.policy(**weights(m1=1))
    metadata = {"name": "web", "namespace": "default"}
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    await fed.client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
    listed = orjson.dumps([{"group": "", "kind": "Service", "name": "web"}]).decode()
    await fed.client.create(DEPLOYMENTS, needing(**{keys.FOLLOWERS: listed}))
    await eventually_in(fed, SERVICES, "web", "m1")
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.FOLLOWERS: "[not a list"})
    (event,) = await eventually(lambda: fed.events("FailedInferFollowers"))
    assert keys.FOLLOWERS in event["message"]
    assert await where(fed, SERVICES, "web") == ["m1"], "what cannot be read takes nothing away"
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.FOLLOWERS: None})
    await eventually_in(fed, SERVICES, "web")


async def test_services_and_certificates_go_with_an_ingress(fed):
    await fed.policy(schedulingMode="Duplicate", placement=[{"cluster": "m2"}])
    await fed.client.create(SECRETS, secret("certificate"))
    service = {"ports": [{"port": 80}]}
    metadata = {"name": "front", "namespace": "default"}
    await fed.client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
    backend = {"service": {"name": "front", "port": {"number": 80}}}
    spec = {
        "tls": [{"hosts": ["shop.example.com"], "secretName": "certificate"}],
        "rules": [
            {"host": "shop.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        ],
    }
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "shop", "namespace": "default", "labels": labels}
    await fed.client.create(
        INGRESSES, {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
    )
    await eventually_in(fed, INGRESSES, "shop", "m2")
    await eventually_in(fed, SERVICES, "front", "m2")
    await eventually_in(fed, SECRETS, "certificate", "m2")


def budget(name, **labels):
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


async def test_a_budget_goes_with_the_workloads_whose_pods_it_protects(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(BUDGETS, budget("early", app="web"))
    await fed.client.create(DEPLOYMENTS, needing())
    await eventually_in(fed, BUDGETS, "early", "m1")
    await fed.client.create(BUDGETS, budget("late", app="web"))
    await fed.client.create(BUDGETS, budget("other", app="shop"))
    await eventually_in(fed, BUDGETS, "late", "m1")
    assert await where(fed, BUDGETS, "other") == []
    await fed.client.patch(
        BUDGETS, "other", {"spec": {"selector": {"matchLabels": {"app": "web"}}}}, "default", kind=Patch.MERGE
    )
    await eventually_in(fed, BUDGETS, "other", "m1")
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await eventually_in(fed, BUDGETS, "early")


def autoscaler(name, target, **labels):
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


async def test_an_autoscaler_goes_with_the_workload_it_scales_where_it_can_work(fed):
    await fed.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    await fed.client.create(AUTOSCALERS, autoscaler("web", "web"))
    await fed.client.create(DEPLOYMENTS, needing())
    await fed.eventually_replicas({"m1": 3})

    async def held():
        annotations = (await fed.federated("web-horizontalpodautoscalers.autoscaling"))["metadata"]["annotations"]
        return annotations.get(keys.HELD)

    async def exists():
        return await fed.exists(resources.FEDERATED_OBJECTS, "web-horizontalpodautoscalers.autoscaling", "default")

    await eventually(exists)
    assert keys.RETAIN_REPLICAS in await eventually(held)
    assert await where(fed, AUTOSCALERS, "web") == []
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.RETAIN_REPLICAS: "true"})
    await eventually_in(fed, AUTOSCALERS, "web", "m1")


async def test_a_leader_that_was_lost_takes_nothing_with_it(fed):
    """Somebody removed its finalizers: nobody knows whether its copies are to go."""
    await fed.policy(**weights(m1=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await fed.stop_controllers()
    bare = {"metadata": {"finalizers": None}}
    await fed.client.patch(resources.FEDERATED_OBJECTS, "web-deployments.apps", bare, "default", kind=Patch.MERGE)
    await fed.client.patch(DEPLOYMENTS, "web", bare, "default", kind=Patch.MERGE)
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await fed.client.delete(resources.FEDERATED_OBJECTS, "web-deployments.apps", "default")
    await fed.start_controllers()
    await eventually(fed.quiet)
    assert await where(fed, CONFIGMAPS, "settings") == ["m1"]
    assert await follows(fed, "settings-configmaps") == ["web"]
    await fed.annotate(CONFIGMAPS, "settings", "default", **{keys.DISABLE_FOLLOWING: "true"})
    await eventually_in(fed, CONFIGMAPS, "settings")


async def test_a_follower_stays_until_the_copy_of_its_leader_is_gone(fed):
    await fed.policy(**weights(m1=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings",)))
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await fed.member("m1").patch(
        DEPLOYMENTS, "web", {"metadata": {"finalizers": ["example.com/wait"]}}, "default", kind=Patch.MERGE
    )
    await fed.client.delete(DEPLOYMENTS, "web", "default")

    async def leaving():
        copies = await fed.copies("web")
        return bool(copies["m1"]["metadata"].get("deletionTimestamp"))

    await eventually(leaving)

    async def stays():
        return await where(fed, CONFIGMAPS, "settings") == ["m1"]

    await holds(stays, 2.0)
    await fed.stop_controllers()
    await fed.start_controllers()
    await holds(stays, 2.0)
    await fed.member("m1").patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default", kind=Patch.MERGE)
    await eventually_in(fed, CONFIGMAPS, "settings")


async def test_what_a_leader_needs_no_more_stays_until_it_has_its_newest_change(fed):
    await fed.policy(**weights(m1=1))
    for name in ("before", "after"):
        await fed.client.create(CONFIGMAPS, config_map(name))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("before",)))
    await eventually_in(fed, CONFIGMAPS, "before", "m1")
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: "true"})
    await eventually(fed.inside.idle)
    changed = needing(config_maps=("after",))["spec"]["template"]
    await fed.client.patch(DEPLOYMENTS, "web", {"spec": {"template": changed}}, "default", kind=Patch.MERGE)

    async def follows_both():
        return await follows(fed, "before-configmaps") == ["web"] and await fed.exists(
            resources.FEDERATED_OBJECTS, "after-configmaps", "default"
        )

    await eventually(follows_both)
    await eventually(fed.quiet)
    assert await placed(fed, "before-configmaps") == {"follower-controller": ["m1"]}
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: None})
    await eventually_in(fed, CONFIGMAPS, "after", "m1")
    await eventually_in(fed, CONFIGMAPS, "before")


async def test_a_type_of_ones_own_says_what_its_objects_need(fed):
    """Objects that are there already are read again."""
    await fed.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    await fed.client.create(SECRETS, secret("password"))
    await fed.configure("settings", {"login": "password"})
    await eventually_in(fed, CONFIGMAPS, "settings", "m1")
    await eventually(fed.quiet)
    assert await where(fed, SECRETS, "password") == []
    rules = {"spec": {"followers": {"references": [{"kind": "Secret", "path": "data.login"}]}}}
    await fed.client.patch(resources.FEDERATED_TYPE_CONFIGS, "configmaps", rules, kind=Patch.MERGE)
    await eventually_in(fed, SECRETS, "password", "m1")


async def test_a_restart_writes_nothing(fed):
    await fed.policy(**weights(m1=1, m2=1))
    await fed.client.create(CONFIGMAPS, config_map("settings"))
    await fed.client.create(BUDGETS, budget("web", app="web"))
    await fed.client.create(DEPLOYMENTS, needing(config_maps=("settings", "missing"), account="app"))
    await fed.client.create(ACCOUNTS, service_account("app"))
    await eventually_in(fed, BUDGETS, "web", "m1", "m2")
    await eventually_in(fed, CONFIGMAPS, "settings", "m1", "m2")
    await eventually(lambda: fed.events("FollowersMissing"))
    await eventually(fed.quiet)
    await fed.stop_controllers()
    before = {each["metadata"]["name"]: each for each in (await fed.client.list(resources.FEDERATED_OBJECTS)).items}
    await fed.start_controllers()
    await eventually(fed.quiet)
    after = {each["metadata"]["name"]: each for each in (await fed.client.list(resources.FEDERATED_OBJECTS)).items}
    assert before == after
