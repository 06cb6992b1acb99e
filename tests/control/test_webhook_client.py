"""The client of a webhook against a real server: how it asks, and what it makes of servers that do not behave."""

import asyncio
import base64
import time
import tracemalloc

import numpy as np
import pytest

from argosy.api.profiles import WebhookConfigurationSpec, WebhookTLSConfig
from argosy.control.scheduling import webhooks
from argosy.control.scheduling.webhooks import WebhookClient
from argosy.control.timings import Timings
from argosy.fleet.snapshot import Fleet
from argosy.kube.config import ConfigError
from argosy.plan.scheduling.framework import Ask, Ranked, Remote
from argosy.plan.scheduling.unit import Unit
from argosy.plan.scheduling.webhook import question_of
from argosy.plugins import cluster
from tests.harness.eventually import eventually, holds
from tests.harness.webhook import MISBEHAVIOURS, webhook_process, webhook_server

pytestmark = pytest.mark.real_time("this is about HTTP")

CLUSTERS = {f"c{number:02}": cluster(f"c{number:02}") for number in range(60)}
FLEET = Fleet.of(CLUSTERS.values())
NEW = Unit(name="web", current={})
ANSWERED_IN_TIME = Timings(breaker_failures=5, breaker_open=0.2)


@pytest.fixture
async def server():
    async with webhook_server() as server:
        yield server


@pytest.fixture
async def client(server):
    clients = []

    def make(timeout="5s", versions=("v1alpha1",), timings=ANSWERED_IN_TIME, url=None, **spec):
        spec = WebhookConfigurationSpec(
            tuple(versions), url or server.url, "/filter", "/score", "/select", timeout, **spec
        )
        clients.append(WebhookClient("hook", spec, CLUSTERS.get, timings))
        return clients[-1]

    yield make
    for each in clients:
        await each.close()


def question(phase, count=60, unit=NEW):
    return question_of(Ask(Remote("hook", phase), unit, FLEET, Ranked(np.arange(count), np.arange(count))))


@pytest.mark.parametrize(("versions", "calls"), [(("v1alpha1",), 60), (("v1alpha1-batch", "v1alpha1"), 1)])
async def test_it_asks_about_all_clusters_over_connections_that_it_keeps(server, client, versions, calls):
    server.behaviour |= {"rejected": ["c1"], "scores": {"c03": 7, "c04": -2}, "most": 2}
    hook = client(versions=versions)
    filtered = await hook.answer(question("filter"))
    assert [name for name, passed in zip(FLEET.names, filtered.passed, strict=True) if not passed] == [
        f"c1{number}" for number in range(10)
    ]
    scored = await hook.answer(question("score"))
    assert scored.scores.tolist()[2:6] == [0, 7, -2, 0]
    assert (await hook.answer(question("select"))).rows.tolist() == [59, 58]
    assert server.calls["filter"] == server.calls["score"] == calls
    assert server.calls["select"] == 1
    assert len(server.connections) <= min(calls, webhooks.REQUESTS)


async def test_the_request_is_the_protocols(server, client):
    await client().answer(question("filter", 1))
    (asked,) = server.asked
    assert asked["path"] == "/filter"
    assert asked["headers"]["User-Agent"] == "kubeadmiral-scheduler"
    assert asked["headers"]["Content-Type"] == asked["headers"]["Accept"] == "application/json"
    assert asked["schedulingUnit"]["name"] == "web"
    assert asked["cluster"]["metadata"]["name"] == "c00"


SAID = {
    "hang": "request failed: no answer within 0.3 s",
    "status": "unexpected status code: 500, body: out of order xxx",
    "garbage": "the answer cannot be read: not valid JSON",
    "not-text": "the answer cannot be read: not valid JSON",
    "not-an-object": "the answer cannot be read: ",
    "wrong-types": "the answer cannot be read: Expected ",
    "unknown-names": "",
    "endless": "the answer is longer than {longest} bytes",
    "crumbs": "the answer comes in pieces of less than 64 bytes",
    "cut": "request failed: Server disconnected",
    "redirect": "unexpected status code: 302, body: ",
    "refuse": "no {phase} today",
    "compressed": "the answer cannot be read: not valid JSON",
}


def longest(phase, version):
    if phase == "select":
        return 1024 * 1024
    return 64 * 1024 if version == "v1alpha1" else 256 * 1024


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha1-batch"])
@pytest.mark.parametrize("phase", ["filter", "score", "select"])
@pytest.mark.parametrize("mode", MISBEHAVIOURS)
async def test_whatever_it_does_is_told_and_ends_in_time(server, client, mode, phase, version):
    server.behaviour["mode"] = mode
    hook = client(timeout="300ms" if mode == "hang" else "60s", versions=(version,))
    reply = await hook.answer(question(phase, 3))
    told = reply.error or "; ".join(reply.errors.values())
    if mode == "unknown-names" and version == "v1alpha1" and phase != "select":
        assert not told  # where one cluster is asked about there is no name to get wrong
        return
    assert SAID[mode].format(phase=phase, longest=longest(phase, version)) in told
    assert len(told) < 1000
    server.behaviour["mode"] = "well"

    async def well():
        again = await hook.answer(question(phase, 3))
        return not again.error and not again.errors

    await eventually(well)


async def test_an_answer_in_crumbs_does_not_hold_up_the_loop(client):
    async with webhook_process() as elsewhere:  # what sending them costs is not ours
        await elsewhere.behave("crumbs")
        asking = asyncio.create_task(client(url=elsewhere.url).answer(question("filter", 40)))
        longest_turn = 0.0
        while not asking.done():
            started = time.perf_counter()
            await asyncio.sleep(0)
            longest_turn = max(longest_turn, time.perf_counter() - started)
        assert "pieces of less than 64 bytes" in next(iter((await asking).errors.values()))
    assert longest_turn < 0.2


async def test_of_long_answers_nothing_is_kept(client):
    """Sixty of them, one after the other, take no more than a few."""
    async with webhook_process() as elsewhere:
        await elsewhere.behave(padding=60_000)
        hook = client(timeout="60s", url=elsewhere.url)
        hook._requests = asyncio.Semaphore(1)
        await hook.answer(question("filter", 1))
        tracemalloc.start()
        try:
            reply = await hook.answer(question("filter"))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert reply.passed.all()
    assert most < 20 * 60_000


async def test_one_that_hangs_is_left_alone_and_asked_again_when_it_answers(server, client):
    server.behaviour["mode"] = "hang"
    hook = client(timeout="200ms")
    first = await hook.answer(question("filter"))
    assert len(first.errors) == 60
    second = await hook.answer(question("filter"))
    assert second.error == "webhookPlugin(hook): request failed: no answer within 0.2 s"
    # Both together: the first wave, what went out before its failures were known, and one to see whether it is back. Those
    # behind the first failures are not sent at all.
    assert server.calls["filter"] <= webhooks.REQUESTS + ANSWERED_IN_TIME.breaker_failures
    server.behaviour["mode"] = "well"

    async def back():
        reply = await hook.answer(question("filter"))
        return not reply.error and not reply.errors and bool(reply.passed.all())

    await eventually(back)


async def test_one_that_comes_back_is_asked_one_question_first(server, client):
    server.behaviour["mode"] = "hang"
    hook = client(timeout="1s", timings=Timings(breaker_failures=5, breaker_open=0.01))
    await hook.answer(question("filter"))
    calls = server.calls["filter"]
    assert hook._breaker.is_open

    async def probed():
        await hook.answer(question("filter"))
        return server.calls["filter"] > calls

    await eventually(probed)
    assert server.calls["filter"] == calls + 1


async def test_so_many_questions_at_a_time_and_no_more(server, client):
    server.behaviour["mode"] = "hang"
    hook = client(timeout="30s")
    asking = [asyncio.create_task(hook.answer(question("select"))) for _ in range(3 * webhooks.QUESTIONS)]
    await eventually(lambda: server.calls["select"] == webhooks.QUESTIONS)
    asking[0].cancel()
    await eventually(lambda: server.calls["select"] == webhooks.QUESTIONS + 1)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert server.calls["select"] == webhooks.QUESTIONS + 1


async def test_one_that_is_slow_with_every_request_is_given_up_as_a_whole(server, client):
    server.behaviour["delay"] = 1.2  # each in time, and there are more than go out at once
    hook = client(timeout="2s", timings=Timings(webhook_question=0.3))
    reply = await hook.answer(question("filter"))
    assert reply.error == "webhookPlugin(hook): not all requests were answered within 2 s"
    server.behaviour["delay"] = 0
    assert (await client(timeout="30s").answer(question("filter"))).passed.all()


async def test_many_slow_ones_together_have_so_many_requests_under_way_and_no_more(server):
    server.behaviour["mode"] = "hang"
    all_of_them = asyncio.Semaphore(40)
    spec = WebhookConfigurationSpec(("v1alpha1",), server.url, "/filter", "/score", "/select", "30s")
    hooks = [WebhookClient(f"hook{n}", spec, CLUSTERS.get, ANSWERED_IN_TIME, all_of_them) for n in range(4)]
    asking = [asyncio.create_task(hook.answer(question("filter"))) for hook in hooks]
    await eventually(lambda: server.calls["filter"] == 40)
    await holds(lambda: server.calls["filter"] == 40, 0.3)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    for hook in hooks:
        await hook.close()


async def test_nobody_there_is_told(client):
    reply = await client(url="http://127.0.0.1:9").answer(question("score"))
    assert reply.error.startswith("request failed: Connect")


async def test_a_retired_client_answers_what_it_was_asked_and_closes(server, client):
    server.behaviour["mode"] = "hang"
    hook = client()
    waiting = asyncio.create_task(hook.answer(question("select")))
    await eventually(lambda: server.calls["select"] == 1)
    await hook.retire()
    assert hook._session is not None
    server.behaviour["mode"] = "well"
    server._freed.set()
    assert (await waiting).error == "unexpected status code: 503, body: too late"
    assert hook._session is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"versions": ["v2"]}, "no payload version is supported: it has v2, but v1alpha1 or v1alpha1-batch is needed"),
        ({"versions": []}, "it has none"),
        ({"url": "ftp://x"}, "urlPrefix must start with http:// or https://"),
        ({"url": "http://"}, "urlPrefix must start with"),
        ({"url": "http://[x"}, "urlPrefix is not a URL"),
        ({"timeout": "soon"}, "httpTimeout: time: invalid duration"),
        ({"timeout": "-1s"}, "httpTimeout must not be negative"),
        ({"url": "ht\ntps://x"}, "white space"),
        (
            {"tls_config": WebhookTLSConfig(ca_data=base64.b64encode(b"x").decode()), "url": "HTTPS://x"},
            "certificate authority is not PEM",
        ),
        ({"tls_config": WebhookTLSConfig(ca_data="%")}, "tlsConfig.caData is not base64"),
        (
            {"tls_config": WebhookTLSConfig(ca_data=base64.b64encode(b"x").decode()), "url": "https://x"},
            "the certificate authority is not PEM",
        ),
        (
            {"tls_config": WebhookTLSConfig(cert_data=base64.b64encode(b"x").decode()), "url": "https://x"},
            "a client certificate needs both",
        ),
    ],
)
async def test_a_configuration_that_is_no_good_says_why(client, spec, message):
    with pytest.raises(ConfigError) as error:
        client(**spec)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["0s", ""])
async def test_no_time_out_means_five_seconds(client, text):
    assert client(timeout=text).timeout == 5


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("31s", 30), ("24h", 30)])
async def test_no_request_takes_longer_than_half_a_minute(client, text, seconds):
    assert client(timeout=text).timeout == seconds


async def test_a_phase_without_a_path_is_told(server):
    hook = WebhookClient("hook", WebhookConfigurationSpec(("v1alpha1",), server.url), CLUSTERS.get, Timings())
    assert hook.plugin.phases == ()
    assert (await hook.answer(question("score"))).error == "the webhook serves no scorePath"
