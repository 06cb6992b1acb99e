"""Sharded lists and watches (KEP-5866) on a kube-apiserver that knows them, and on one that does not: the same cache."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import pytest

from argosy.kube.client import Client
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial, decode
from argosy.kube.resource import Resource
from argosy.kube.shards import Shard
from argosy.testing import API_SERVER
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.real.test_kube_informer import held, running

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SHARDS = [Shard(index, 3) for index in range(3)]
KNOWING = msgspec.structs.replace(API_SERVER, feature_gates={"ShardedListAndWatch": True})


@pytest.fixture(params=["gate on", "gate off"])
async def known(request: pytest.FixtureRequest) -> bool:
    return request.param == "gate on"


@pytest.fixture
async def client(kubernetes: Kubernetes, known: bool) -> AsyncIterator[Client]:
    made = (await kubernetes.shared(KNOWING if known else API_SERVER)).client()
    yield made
    await made.close()


async def create(client: Client, namespace: str, *names: str) -> None:
    await asyncio.gather(*(client.create(MAPS, {"metadata": {"name": name}}, namespace) for name in names))


async def test_lists_of_all_shards_together_are_the_whole(client: Client, namespace: str, known: bool) -> None:
    await create(client, namespace, *(f"a{number}" for number in range(30)))
    whole = {one.metadata.name: one.metadata.uid for one in (await client.list(MAPS, namespace, into=Partial)).items}
    parts = [await client.list(MAPS, namespace, shard=shard, limit=7, into=Partial) for shard in SHARDS]
    names = [[one.metadata.name for one in part.items] for part in parts]
    assert sorted(name for part in names for name in part) == sorted(whole)
    assert all(shard.covers(whole[name]) for shard, part in zip(SHARDS, names, strict=True) for name in part)
    pages = [page async for page in client.pages(MAPS, namespace, shard=SHARDS[2])]
    assert [page.shard_selector for page in pages] == [SHARDS[2].selector if known else ""]


async def test_informers_of_all_shards_share_what_happens(client: Client, namespace: str, known: bool) -> None:
    await create(client, namespace, *(f"a{number}" for number in range(20)))
    async with AsyncExitStack() as stack:
        informers = [
            await stack.enter_async_context(running(Informer(client, MAPS, Partial, namespace=namespace, shard=shard)))
            for shard in SHARDS
        ]
        assert [informer.shard_served for informer in informers] == [known] * 3
        await create(client, namespace, *(f"b{number}" for number in range(20)))
        for number in range(0, 20, 2):
            await client.patch(MAPS, f"a{number}", {"data": {"x": "1"}}, namespace)
            await client.delete(MAPS, f"b{number}", namespace)
        fresh = (await client.list(MAPS, namespace, into=Partial)).items
        for shard, informer in zip(SHARDS, informers, strict=True):
            wanted = {
                f"{namespace}/{one.metadata.name}": one.metadata.resource_version
                for one in fresh
                if shard.covers(one.metadata.uid)
            }
            await eventually(lambda informer=informer, wanted=wanted: held(informer) == wanted)
        assert sum(len(informer) for informer in informers) == len(fresh)
        assert [informer.lists for informer in informers] == [1, 1, 1]


async def test_what_a_watch_brings_is_the_shard_where_the_server_knows_it(
    client: Client, namespace: str, known: bool
) -> None:
    start = (await client.list(MAPS, namespace)).resource_version
    await create(client, namespace, *(f"a{number}" for number in range(12)))
    shard = SHARDS[0]
    watch = client.watch(MAPS, namespace, resource_version=start, shard=shard, timeout_seconds=2, bookmarks=False)
    async with watch as events:
        came = [decode(event.object, Partial).metadata.uid async for event in events]
    objects = (await client.list(MAPS, namespace, into=Partial, field_selector="metadata.name!=kube-root-ca.crt")).items
    sent = [one.metadata.uid for one in objects if shard.covers(one.metadata.uid) or not known]
    assert set(sent) <= set(came)
    assert known == all(shard.covers(uid) for uid in came)


async def test_a_shard_is_not_deleted_as_a_collection(client: Client, namespace: str) -> None:
    with pytest.raises(ValueError, match="cannot be deleted"):
        await client.delete_collection(MAPS, namespace, shard=SHARDS[0])
