"""The informer against a real kube-apiserver: every way a watch is lost, and what is in the cache afterwards."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import AlreadyExists, ApiError, Gone, NotFound, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata, Partial, key_of, version_number
from argosy.kube.resource import Resource
from argosy.testing import API_SERVER, CONTROL_PLANE, Cluster
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.relay import Relay

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
FAST = Backoff(base=0.02, cap=0.2)
SELECTED = "test=kube"


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "kube"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncIterator[Informer[Any]]:
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), 30)
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def informing(client: Client, namespace: str = "default", **options: Any) -> Any:
    return running(
        Informer(client, MAPS, Partial, namespace=namespace, label_selector=SELECTED, backoff=FAST, **options)
    )


def relayed(cluster: Cluster, relay: Relay, **options: Any) -> Client:
    connection = Connection(relay.url, ca_data=cluster.authority.certificate, token=cluster.token)
    return Client(HttpTransport(connection, **options))


class Story:
    """What an informer told of each object, checked as it comes: each change starts where the last one ended, versions grow."""

    def __init__(self, informer: Informer[Partial]):
        self.broken: list[str] = []
        self.told: dict[str, Partial] = {}
        self._latest: dict[str, int] = {}
        informer.add_handler(self._take)

    def _take(self, change: Change[Partial]) -> None:
        if change.old is not self.told.get(change.key):
            self.broken.append(f"{change.key}: starts from {change.old}, the last told was {self.told.get(change.key)}")
        if change.new is None:
            self.told.pop(change.key, None)
            return
        self.told[change.key] = change.new
        version = version_number(change.new.metadata.resource_version) or 0
        if version <= self._latest.get(change.key, 0):
            self.broken.append(f"{change.key}: {version} after {self._latest[change.key]}")
        self._latest[change.key] = version

    def missing(self, written: dict[str, int]) -> list[str]:
        """Objects of whose last acknowledged version neither it nor anything newer was told."""
        return [key for key, version in written.items() if self._latest.get(key, 0) < version]


def held(informer: Informer[Partial]) -> dict[str, str]:
    return {key_of(one.metadata): one.metadata.resource_version for one in informer.values()}


async def listed(client: Client, namespace: str = "default") -> dict[str, str]:
    found = (await client.list(MAPS, namespace, label_selector=SELECTED)).items
    return {f"{namespace}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in found}


async def test_an_informer_follows(client: Client, namespace: str) -> None:
    async with informing(client, namespace) as informer:
        story = Story(informer)
        for name in ("a", "b", "c"):
            await client.create(MAPS, config_map(name, namespace))
        await client.patch(MAPS, "b", {"data": {"x": "1"}}, namespace)
        await client.delete(MAPS, "c", namespace)
        wanted = await listed(client, namespace)
        await eventually(lambda: held(informer) == wanted)
        assert len(wanted) == 2
        assert informer.lists == 1
        assert story.broken == []


async def test_what_was_compacted_while_the_line_was_dead_is_listed_anew(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    direct = cluster.client()
    for name in ("stays", "goes"):
        await direct.create(MAPS, config_map(name))
    async with Relay("127.0.0.1", cluster.ports.apiserver) as relay:
        watcher = relayed(cluster, relay, timeout=2.0)
        async with informing(watcher) as informer:
            story = Story(informer)
            old = informer.version
            # Its watch stays open and says nothing more, so that what it knows is old once it is back.
            relay.freeze()
            await change_and_forget(cluster, direct)
            with pytest.raises(Gone):
                await watch_from(direct, old)
            relay.cut()
            wanted = await listed(direct)
            await eventually(lambda: held(informer) == wanted, 30)
            assert set(wanted) == {"default/stays", "default/new"}
            assert informer.lists == 2
            assert story.broken == []
        await watcher.close()
    await direct.close()


async def change_and_forget(cluster: Cluster, client: Client) -> None:
    await client.delete(MAPS, "goes", "default")
    await client.create(MAPS, config_map("new"))
    await cluster.compact()
    # The watch cache of a running server still knows; a new one starts from what etcd has.
    cluster["kube-apiserver"].kill()
    cluster["kube-apiserver"].start()
    await cluster.ready()


async def watch_from(client: Client, version: str) -> None:
    async with client.watch(MAPS, "default", resource_version=version) as events:
        async for _ in events:
            return


async def test_a_server_killed_again_and_again_leaves_the_cache_equal_to_a_fresh_list(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    watcher, writer, reader = cluster.client(timeout=2.0), cluster.client(timeout=2.0), cluster.client()
    ended = asyncio.Event()
    async with informing(watcher) as informer:
        story = Story(informer)
        writing = asyncio.create_task(write_at_random(writer, ended, random.Random(7)))
        for _ in range(3):
            before = version_number(informer.version) or 0
            await eventually(lambda before=before: (version_number(informer.version) or 0) > before + 20, 60)
            cluster["kube-apiserver"].kill()
            cluster["kube-apiserver"].start()
            await cluster.ready()
        ended.set()
        written = await writing
        assert len(written) > 5
        wanted = await listed(reader)
        await eventually(lambda: held(informer) == wanted, 60)
        assert story.broken == []
        assert story.missing(written) == []
        assert {key: one.metadata.resource_version for key, one in story.told.items()} == wanted
    await watcher.close()
    await writer.close()
    await reader.close()


async def write_at_random(client: Client, ended: asyncio.Event, chance: random.Random) -> dict[str, int]:
    """Create, change and delete a few objects until told to end; the last acknowledged version of each."""
    written: dict[str, int] = {}
    while not ended.is_set():
        name = f"w{chance.randrange(12)}"
        try:
            match chance.randrange(3):
                case 0:
                    made = await client.create(MAPS, config_map(name), into=Partial)
                case 1:
                    made = await client.patch(
                        MAPS, name, {"data": {"x": str(chance.random())}}, "default", into=Partial
                    )
                case _:
                    await client.delete(MAPS, name, "default")
                    continue
            written[f"default/{name}"] = version_number(made.metadata.resource_version) or 0
        except (AlreadyExists, NotFound):
            continue
        except (TransportError, ApiError):
            await asyncio.sleep(0.05)
    return written


async def test_a_connection_gone_silent_is_noticed_within_the_deadline(kubernetes: Kubernetes, namespace: str) -> None:
    cluster = await kubernetes.shared(API_SERVER)
    direct = cluster.client()
    async with Relay("127.0.0.1", cluster.ports.apiserver) as relay:
        watcher = relayed(cluster, relay, timeout=2.0)
        async with informing(watcher, namespace, liveness=3.0) as informer:
            story = Story(informer)
            await direct.create(MAPS, config_map("before", namespace))
            await eventually(lambda: len(informer) == 1)
            relay.silence()
            silent = time.monotonic()
            await direct.create(MAPS, config_map("during", namespace))
            await direct.delete(MAPS, "before", namespace)
            await eventually(lambda: informer.last_error is not None, 30)
            # A machine that is busy may be late by a little; a deadline that does not work is late by minutes.
            assert time.monotonic() - silent < 3.0 + 15.0
            assert held(informer).keys() == {f"{namespace}/before"}, "not knowing is no deletion"
            relay.heal()
            wanted = await listed(direct, namespace)
            await eventually(lambda: held(informer) == wanted, 30)
            assert story.broken == []
        await watcher.close()
    await direct.close()


class Shown(msgspec.Struct, frozen=True):
    """A projection with more than metadata in it."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = {}
    type: str = ""


#: Label selectors, field selectors and both, on kinds that writers flip in and out of them.
WATCHED = [
    (MAPS, {"label_selector": "run={run}"}),
    (MAPS, {"label_selector": "run={run},side=left"}),
    (MAPS, {"label_selector": "run={run},side notin (left),!hidden"}),
    (MAPS, {"label_selector": "run={run}", "field_selector": "metadata.name=w3"}),
    (SECRETS, {"label_selector": "run={run}", "field_selector": "type=example.com/a"}),
    (SECRETS, {"label_selector": "run={run},hidden", "field_selector": "metadata.namespace={run},type!=example.com/a"}),
]


async def test_a_minute_of_random_writers_ends_equal_to_a_fresh_list(kubernetes: Kubernetes, namespace: str) -> None:
    """Selectors and projections, over a line that is cut and goes silent now and then."""
    cluster = await kubernetes.shared(API_SERVER)
    direct = cluster.client()
    chance = random.Random(11)
    async with Relay("127.0.0.1", cluster.ports.apiserver) as relay, asyncio.TaskGroup() as group:
        watcher = relayed(cluster, relay, timeout=3.0)
        informers, stories = [], []
        for resource, selection in WATCHED:
            chosen = {key: text.format(run=namespace) for key, text in selection.items()}
            informers.append(Informer(watcher, resource, Shown, liveness=4.0, backoff=FAST, **chosen))
            stories.append(Story(informers[-1]))
        following = [group.create_task(one.run()) for one in informers]
        ended = asyncio.Event()
        writers = [group.create_task(scribble(direct, namespace, ended, random.Random(seed))) for seed in range(4)]
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            await asyncio.sleep(chance.uniform(1.0, 6.0))
            chance.choice((relay.cut, relay.freeze, relay.silence, relay.cut))()
            await asyncio.sleep(chance.uniform(0.0, 2.0))
            relay.heal()
        ended.set()
        done = sum([await writer for writer in writers])
        for informer, story in zip(informers, stories, strict=True):
            await eventually(lambda informer=informer: is_equal(informer, direct), 60, str(informer.label_selector))
            assert story.broken == []
        for task in following:
            task.cancel()
        await watcher.close()
    assert done > 200
    assert any(len(informer) for informer in informers)
    await direct.close()


async def scribble(client: Client, namespace: str, ended: asyncio.Event, chance: random.Random) -> int:
    """Creates, updates, deletes, and labels that flip objects in and out of what is selected."""
    done = 0
    while not ended.is_set():
        resource = chance.choice((MAPS, SECRETS))
        name = f"w{chance.randrange(15)}"
        side, hidden = chance.choice(("left", "right", None)), chance.choice(("yes", None))
        labels = {"run": chance.choice((namespace, namespace, None)), "side": side, "hidden": hidden}
        given = {key: value for key, value in labels.items() if value}
        try:
            match chance.randrange(6):
                case 0 | 1:
                    body: dict[str, Any] = {"metadata": {"name": name, "labels": given}, "data": {"x": "MQ=="}}
                    if resource is SECRETS:
                        body["type"] = f"example.com/{chance.choice('ab')}"
                    await client.create(resource, body, namespace)
                case 2:
                    await client.patch(resource, name, {"data": {"x": chance.choice(("MQ==", "Mg=="))}}, namespace)
                case 3 | 4:
                    await client.patch(resource, name, {"metadata": {"labels": labels}}, namespace)
                case _:
                    await client.delete(resource, name, namespace)
            done += 1
        except (AlreadyExists, NotFound):
            pass
        await asyncio.sleep(chance.uniform(0, 0.03))
    return done


async def is_equal(informer: Informer[Shown], client: Client) -> bool:
    fresh = await client.list(
        informer.resource, label_selector=informer.label_selector, field_selector=informer.field_selector, into=Shown
    )
    return {key_of(one.metadata): one for one in fresh.items} == {
        key_of(one.metadata): one for one in informer.values()
    }
