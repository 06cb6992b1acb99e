"""Plans where a plugin lives elsewhere: the command asks the webhook as the controllers do, and says when it could not."""

import pytest

from argosy.api import keys, resources
from argosy.cli.client.manifests import Manifest
from argosy.cli.client.whatif import Scenario, forecast_of
from argosy.kube.client import Patch
from tests.harness.federation import Federation, deployment
from tests.harness.webhook import webhook_process

pytestmark = pytest.mark.real_time("the plugin is a process that is asked over HTTP")


@pytest.fixture
async def fed():
    async with Federation(3) as fed:
        yield fed


@pytest.fixture
async def hook():
    async with webhook_process() as hook:
        yield hook


async def make(fed, resource, name, spec):
    body = {"apiVersion": keys.API_VERSION, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await fed.client.create(resource, body)


async def test_a_webhook_is_asked_and_one_that_does_not_answer_is_named(fed, hook):
    await hook.behave(rejected=["m2"])
    spec = {
        "payloadVersions": ["v1alpha1"],
        "urlPrefix": hook.url,
        "filterPath": "/filter",
        "httpTimeout": "30s",
    }
    await make(fed, resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "hook", spec)
    plugins = {"filter": {"enabled": [{"name": "hook", "type": "Webhook"}]}}
    await make(fed, resources.SCHEDULING_PROFILES, "asking", {"plugins": plugins})
    await fed.policy("policy", schedulingMode="Duplicate", schedulingProfile="asking")
    supposed = Scenario(applied=(Manifest(deployment("web", 3, "policy"), "test"),))

    foretold = await forecast_of(fed.client, supposed, "default", lambda _: None)
    assert [each.cluster for each in foretold.objects[0].clusters] == ["m1", "m3"]
    assert foretold.notes == ()

    await hook.behave(mode="hang")
    hasty = {"spec": {"httpTimeout": "400ms"}}
    await fed.client.patch(resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "hook", hasty, kind=Patch.MERGE)
    foretold = await forecast_of(fed.client, supposed, "default", lambda _: None)
    assert len(foretold.notes) == 1
    assert foretold.notes[0].startswith("the webhook hook could not be asked from here")
