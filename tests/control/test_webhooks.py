"""Profiles and webhook plugins in a federation; the webhook is another process, which hangs, dies and talks nonsense."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.cli.output.explanation import explained, gather
from argosy.control.options import Options
from argosy.kube.client import Patch
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Score
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, UNBRAKED, Federation
from tests.harness.webhook import webhook_process

pytestmark = pytest.mark.real_time("the plugin is a process that is asked over HTTP")

EVERYWHERE = {"schedulingMode": "Duplicate", "schedulingProfile": "profile"}
#: Fewer than there are objects with questions in some of the tests.
WORKERS = 3
PATIENCE = 60.0
IMPATIENT = msgspec.structs.replace(QUICK, plugin_retry=0.3, breaker_open=0.1)


@pytest.fixture
async def hook():
    async with webhook_process() as hook:
        yield hook


@pytest.fixture
async def fed():
    async with Federation(3, timings=IMPATIENT, options=Options(workers=WORKERS, brake=UNBRAKED.brake)) as fed:
        fed.patience = PATIENCE
        yield fed


async def configured(fed, hook, name="hook", **spec):
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "SchedulerPluginWebhookConfiguration",
        "metadata": {"name": name},
        "spec": {
            "payloadVersions": ["v1alpha1"],
            "urlPrefix": hook.url,
            "filterPath": "/filter",
            "scorePath": "/score",
            "selectPath": "/select",
            "httpTimeout": "30s",
            **spec,
        },
    }
    await fed.client.create(resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, body)


async def profiled(fed, name="profile", **plugins):
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "SchedulingProfile",
        "metadata": {"name": name},
        "spec": {"plugins": plugins or {"filter": {"enabled": [{"name": "hook", "type": "Webhook"}]}}},
    }
    await fed.client.create(resources.SCHEDULING_PROFILES, body)


async def changed(fed, resource, name, spec):
    await fed.client.patch(resource, name, {"spec": spec}, kind=Patch.MERGE)


async def placed(fed, name="web"):
    return sorted(await fed.copies(name))


async def eventually_in(fed, clusters, name="web"):
    async def probe():
        return await placed(fed, name) == clusters

    try:
        await eventually(probe, PATIENCE)
    except AssertionError:
        raise AssertionError(
            f"expected {clusters}, found {await placed(fed, name)}; held: {await held(fed, name)}"
        ) from None


async def held(fed, name="web"):
    return held_of((await fed.federated(f"{name}-deployments.apps"))["metadata"].get("annotations") or {})


async def eventually_held(fed, reason, text, name="web"):
    async def probe():
        found = await held(fed, name)
        return found is not None and found.reason == reason and text in found.message

    await eventually(probe, PATIENCE, why=f"held for {text!r}")
    return await held(fed, name)


async def explanation(fed, name="web"):
    """What `argosy explain` tells."""
    return explained(await gather(fed.client, DEPLOYMENTS, name, "default"))


async def told(fed, reason, text, type="Warning"):
    async def probe():
        return [event for event in await fed.events(reason) if text in event["message"] and event["type"] == type]

    return await eventually(probe, PATIENCE, why=f"an event {reason} with {text!r}")


async def test_a_webhook_in_another_process_filters_scores_and_selects(fed, hook):
    await hook.behave(rejected=["m2"], scores={"m3": 50, "m1": 10})
    await configured(fed, hook)
    await told(fed, "WebhookRegistered", "it serves filter, score, select", "Normal")
    own = {"enabled": [{"name": "hook"}], "disabled": [{"name": "*"}]}
    await profiled(fed, filter={"enabled": [{"name": "hook"}]}, score=own, select=own)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await eventually_in(fed, ["m1", "m3"])
    calls = await hook.calls()
    assert (calls["filter"], calls["score"], calls["select"]) == (3, 2, 1)
    about = await explanation(fed)
    assert about.decision.refused[0].plugin == "hook"
    assert about.decision.refused[0].reason == "cluster(s) were filtered by webhookPlugin(hook)"

    await hook.behave(scores={"m3": 50, "m1": 10}, most=1)
    await fed.deploy("picky", replicas=1)
    await eventually_in(fed, ["m3"], "picky")
    # A pass that has nothing to decide asks nobody.
    calls = await hook.calls()
    await fed.set_image("another:1")

    async def carried():
        copies = (await fed.copies()).values()
        return all(copy["spec"]["template"]["spec"]["containers"][0]["image"] == "another:1" for copy in copies)

    await eventually(carried, PATIENCE)
    assert await hook.calls() == calls


async def test_a_time_out_that_is_too_long_is_told(fed, hook):
    await configured(fed, hook, httpTimeout="24h")
    await told(fed, "WebhookRegistered", "httpTimeout is longer than allowed, and taken as 30 s", "Warning")


async def test_one_that_hangs_delays_only_those_that_ask_it(fed, hook):
    await hook.behave("hang")
    await configured(fed, hook, httpTimeout="15s")
    await profiled(fed)
    await fed.policy("asking", **EVERYWHERE)
    await fed.policy("plain", schedulingMode="Duplicate")
    asking = [f"asking-{number}" for number in range(4 * WORKERS)]
    for name in asking:
        await fed.deploy(name, replicas=1, policy="asking")
    await eventually(lambda: fed.inside.suspended == len(asking), PATIENCE)
    for number in range(3):
        await fed.deploy(f"plain-{number}", replicas=1, policy="plain")
    for number in range(3):
        await eventually_in(fed, fed.names, f"plain-{number}")
    assert fed.inside.suspended == len(asking), "they were to be still waiting"
    # One that is deleted meanwhile does not wait for an answer.
    await fed.client.delete(DEPLOYMENTS, asking[0], "default")
    await eventually(lambda: fed.inside.suspended == len(asking) - 1, PATIENCE)
    for name in asking[1:]:
        await eventually_held(fed, HeldReason.UNSCHEDULABLE, "request failed: no answer within 15 s", name)
    await told(fed, "ScheduleFederatedObject", "webhookPlugin(hook): request failed: no answer within 15 s")
    about = await explanation(fed, asking[1])
    assert "webhookPlugin(hook): request failed: no answer within 15 s" in about.held
    assert "no answer within 15 s" in "; ".join(about.lines)
    await hook.behave(rejected=["m1"])
    for name in asking[1:]:
        await eventually_in(fed, ["m2", "m3"], name)
        assert await held(fed, name) is None


@pytest.mark.parametrize("phase", ["filter", "score", "select"])
async def test_one_that_dies_takes_nothing_away_and_is_asked_again_when_it_is_back(fed, hook, phase):
    await configured(fed, hook)
    await profiled(fed, **{phase: {"enabled": [{"name": "hook"}]}})
    await fed.policy(**EVERYWHERE, clusterSelector={})
    await fed.policy("plain", schedulingMode="Duplicate")
    await fed.deploy(replicas=1)
    await eventually_in(fed, fed.names)
    await hook.kill()
    # Something to decide anew: the object's own rules.
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.MAX_CLUSTERS: "2"})
    await eventually_held(fed, HeldReason.UNSCHEDULABLE, "request failed: ")
    await fed.deploy("new", replicas=1)
    await eventually_held(fed, HeldReason.UNSCHEDULABLE, "request failed: ", "new")
    await fed.deploy("other", replicas=1, policy="plain")
    await eventually_in(fed, fed.names, "other")
    assert await placed(fed) == fed.names
    assert await placed(fed, "new") == []
    await hook.start()
    await eventually_in(fed, fed.names, "new")
    await eventually(lambda: _count(fed, "web", 2), PATIENCE)
    assert await held(fed) is None


async def _count(fed, name, number):
    return len(await placed(fed, name)) == number


@pytest.mark.parametrize("mode", ["garbage", "wrong-types", "endless", "unknown-names"])
async def test_one_that_talks_nonsense_is_told_and_holds_up_nobody_else(fed, hook, mode):
    await hook.behave(mode)
    await configured(fed, hook, httpTimeout="5s")
    await profiled(fed, select={"enabled": [{"name": "hook"}]})
    await fed.policy(**EVERYWHERE)
    await fed.policy("plain", schedulingMode="Duplicate")
    await fed.deploy(replicas=1)
    await fed.deploy("other", replicas=1, policy="plain")
    await eventually_in(fed, fed.names, "other")
    found = await eventually_held(fed, HeldReason.UNSCHEDULABLE, "select plugin 'hook': ")
    assert len(found.message) < 400
    await hook.behave()
    await eventually_in(fed, fed.names)


async def test_a_cluster_that_it_is_not_sure_about_is_asked_about_again(fed, hook):
    await hook.behave(unsure=["m2"])
    await configured(fed, hook)
    await profiled(fed)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await eventually_in(fed, ["m1", "m3"])
    version = (await fed.federated())["metadata"]["generation"]
    calls = (await hook.calls())["filter"]
    await eventually(lambda: _asked(hook, calls + 6), PATIENCE, why="asked again and again")
    assert (await fed.federated())["metadata"]["generation"] == version
    await hook.behave()
    await eventually_in(fed, fed.names)
    # Not to be sure about a cluster the object is in is no reason to leave it.
    await hook.behave(unsure=["m2"])
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.MAX_CLUSTERS: "3"})
    await eventually_held(fed, HeldReason.UNSCHEDULABLE, "no filter of m2 (asked about m2, where the object is)")
    assert await placed(fed) == fed.names


async def _asked(hook, count):
    return (await hook.calls())["filter"] >= count


async def test_changes_of_a_webhook_are_taken_up(fed, hook):
    await hook.behave(rejected=["m1"])
    await configured(fed, hook)
    await profiled(fed)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await eventually_in(fed, ["m2", "m3"])
    await hook.behave(rejected=["m3"])
    webhooks = resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS
    await changed(fed, webhooks, "hook", {"filterPath": "/v2/filter"})
    await eventually_in(fed, ["m1", "m2"])
    assert (await hook.calls())["/v2/filter"] == 3
    await changed(fed, webhooks, "hook", {"filterPath": None})
    await eventually_held(
        fed, HeldReason.PROFILE_INVALID, "'hook' is not a filter plugin (it is one for: score, select)"
    )
    await told(fed, "SchedulingProfileInvalid", "'hook' is not a filter plugin")
    await changed(fed, webhooks, "hook", {"payloadVersions": ["v1alpha1-batch", "v1alpha1"], "filterPath": "/filter"})
    await eventually(lambda: _not_held(fed), PATIENCE)
    assert (await hook.told())["last"]["clusters"]
    await changed(fed, webhooks, "hook", {"payloadVersions": ["v7"]})
    await told(fed, "WebhookConfigurationError", "no payload version is supported: it has v7")
    await eventually_held(fed, HeldReason.PROFILE_INVALID, "cannot be used: no payload version is supported")
    await fed.client.delete(webhooks, "hook")
    await eventually_held(fed, HeldReason.PROFILE_INVALID, "there is no filter plugin 'hook'")
    assert await placed(fed) == ["m1", "m2"]


async def _not_held(fed):
    return await held(fed) is None


async def test_a_webhook_with_the_name_of_another_plugin_breaks_the_profiles_that_name_it_alone(hook):
    theirs = IN_TREE.with_plugins([Score("theirs", lambda unit, fleet: fleet.zeros)], "a package")
    async with Federation(2, timings=IMPATIENT, plugins=theirs) as fed:
        await profiled(fed, score={"enabled": [{"name": "theirs"}]})
        await profiled(fed, "plain", filter={"disabled": [{"name": "TaintToleration"}]})
        await fed.policy(**EVERYWHERE)
        await fed.policy("plain", schedulingMode="Duplicate", schedulingProfile="plain")
        await fed.deploy(replicas=1)
        await eventually_in(fed, fed.names)
        await configured(fed, hook, "theirs")
        await told(fed, "WebhookConfigurationError", "another plugin has this name")
        await eventually_held(fed, HeldReason.PROFILE_INVALID, "a webhook has the name of another plugin")
        await fed.deploy("other", replicas=1, policy="plain")
        await eventually_in(fed, fed.names, "other")
        assert await placed(fed) == fed.names
        await fed.client.delete(resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "theirs")
        await eventually(lambda: _not_held(fed), PATIENCE)


async def test_a_profile_that_comes_changes_and_goes_concerns_the_objects_that_name_it(fed):
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await eventually_held(fed, HeldReason.PROFILE_MISSING, "SchedulingProfile profile not found")
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    await changed(fed, resources.FEDERATED_CLUSTERS, "m1", {"taints": [taint]})
    await eventually(lambda: fed.inside.caches.clusters.get("m1").spec.taints, PATIENCE)
    await profiled(fed, score={"enabled": [{"name": "Nobody"}]})
    await eventually_held(
        fed, HeldReason.PROFILE_INVALID, "SchedulingProfile profile: there is no score plugin 'Nobody'"
    )
    await told(fed, "SchedulingProfileInvalid", "there is no score plugin 'Nobody'")
    await changed(fed, resources.SCHEDULING_PROFILES, "profile", {"plugins": {"score": None}})
    await eventually_in(fed, ["m2", "m3"])
    tolerant = {"filter": {"disabled": [{"name": "TaintToleration"}]}}
    await changed(fed, resources.SCHEDULING_PROFILES, "profile", {"plugins": tolerant})
    await eventually_in(fed, fed.names)
    await changed(fed, resources.SCHEDULING_PROFILES, "profile", {"pluginConfig": [{"name": "Nobody", "args": 1}]})
    await told(fed, "PluginConfigUnused", "arguments for plugins that take none, or are not enabled: Nobody")
    await fed.client.delete(resources.SCHEDULING_PROFILES, "profile")
    await eventually_held(fed, HeldReason.PROFILE_MISSING, "SchedulingProfile profile not found")
    assert await placed(fed) == fed.names
