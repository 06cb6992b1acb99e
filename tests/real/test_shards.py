"""Shards as processes on stock Kubernetes: the audit logs of control plane and members show one owner for every object."""

from datetime import datetime

from argosy.api import keys
from argosy.api.shards import Shard, bucket_of, lease_name
from argosy.control.install.installer import install
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from tests.real.controllers import Controllers, StockFederation, Write, settled, stock_federation

MANAGED = f"{keys.MANAGED_LABEL}=true"
TEAMS = [f"team-{number}" for number in range(16)]
#: Of each namespace.
NAMES = [f"c{number}" for number in range(4)]


async def test_every_object_is_written_by_one_shard_and_another_division_takes_over_whole(
    kubernetes: Kubernetes,
) -> None:
    async with stock_federation(kubernetes, members=2) as fed:
        await install(fed.client)
        pair = [_shard(fed, index, 2) for index in range(2)]
        await fed.leading(*pair)
        await fed.join_all()
        await fed.namespaces(*TEAMS)
        for team in TEAMS:
            fed.namespace = team
            for name in NAMES:
                await fed.configure(name, {"a": "1"})
            await fed.deploy("web", replicas=1)
        await fed.eventually(lambda: _everywhere(fed, "1"), "everything is in all members")
        await settled(fed)
        _assert_one_owner(fed.writes(), 2)
        await _assert_labelled(fed)
        before = await _uids(fed)

        # Other shards wait for these to go, and then find everything as it is.
        three = [_shard(fed, index, 3) for index in range(3)]
        for process in three:
            await fed.eventually(lambda process=process: _waits_for_others(process), "the new ones wait")
        standby = _shard(fed, 1, 2, "standby")
        await fed.eventually(standby.waits, "a second process of a shard waits for the first")
        for process in (standby, *pair):
            await process.process.stop(grace=30)
        # When the last of the old ones gave its lease back.
        ended = max([_time((await fed.lease(lease_name(Shard(index, 2))))["renewTime"]) for index in range(2)])
        await fed.leading(*three)
        await settled(fed)
        new = [write for write in fed.writes() if write.shard.endswith("/3")]
        assert all(write.received > ended for write in new), "nobody wrote out of turn"
        assert {write.resource for write in new} <= {"federatedclusters", "events"}
        assert await _uids(fed) == before

        for team in TEAMS:
            for name in NAMES:
                await fed.client.patch(CONFIGMAPS, name, {"data": {"a": "2"}}, team)
        await fed.eventually(lambda: _everywhere(fed, "2"), "the change is everywhere")
        await settled(fed)
        _assert_one_owner([write for write in fed.writes() if write.shard.endswith("/3")], 3)
        assert await _uids(fed) == before
        assert not [write for write in fed.writes() if write.verb == "delete"]

        # The owner of some namespaces dies; the others go on, and theirs wait for who comes.
        victim = three[1]
        victim.process.kill()
        mine = next(team for team in TEAMS if Shard(1, 3).owns(team))
        other = next(team for team in TEAMS if not Shard(1, 3).owns(team))
        for team in (mine, other):
            await fed.client.delete(CONFIGMAPS, "c0", team)
        fed.namespace = other
        await fed.eventually(lambda: _lacks(fed, "c0"), "an owner that lives does its work")
        fed.namespace = mine
        assert len(await fed.copies("c0", CONFIGMAPS)) == 2
        for living in (three[0], three[2]):
            await fed.eventually(lambda living=living: _misses(living, Shard(1, 3)), "the others say who is missing")
            assert await living.leads()
        again = _shard(fed, 1, 3, "again")
        await fed.leading(again)
        await fed.eventually(lambda: _lacks(fed, "c0"), "its follower does its work")

        # Namespaces are shard 0's, what is in them is not.
        await fed.client.delete(NAMESPACES, mine)
        await fed.eventually(lambda: _namespace_gone(fed, mine), "the namespace is gone everywhere")
        _assert_one_owner([write for write in fed.writes() if write.shard.endswith("/3")], 3)
        for process in (*pair, *three, again):
            assert "Traceback" not in process.log, process.log[-3000:]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _shard(fed: StockFederation, index: int, count: int, name: str = "") -> Controllers:
    arguments = ("--shard", f"{index}/{count}", "--no-install")
    return fed.controllers(name or f"shard-{index}-of-{count}", *arguments)


async def _waits_for_others(process: Controllers) -> bool:
    return lease_name(Shard(0, 2)) in await process.readyz()


async def _misses(process: Controllers, shard: Shard) -> bool:
    return f"shard {shard} is missing" in await process.readyz("?verbose")


async def _everywhere(fed: StockFederation, value: str) -> bool:
    for name in fed.names:
        maps = (await fed.member(name).list(CONFIGMAPS, label_selector=MANAGED)).items
        if len(maps) != len(TEAMS) * len(NAMES) or any(each["data"] != {"a": value} for each in maps):
            return False
        if len((await fed.member(name).list(DEPLOYMENTS, label_selector=MANAGED)).items) != len(TEAMS):
            return False
    return True


async def _uids(fed: StockFederation) -> dict[str, set[str]]:
    return {
        name: {
            each["metadata"]["uid"]
            for resource in (CONFIGMAPS, DEPLOYMENTS)
            for each in (await fed.member(name).list(resource, label_selector=MANAGED)).items
        }
        for name in fed.names
    }


async def _lacks(fed: StockFederation, name: str) -> bool:
    return not await fed.copies(name, CONFIGMAPS)


async def _namespace_gone(fed: StockFederation, namespace: str) -> bool:
    clients = [fed.client, *(fed.member(name) for name in fed.names)]
    listed = [await client.list(NAMESPACES) for client in clients]
    return not any(item["metadata"]["name"] == namespace for each in listed for item in each.items)


async def _assert_labelled(fed: StockFederation) -> None:
    for copy in (await fed.member("m1").list(CONFIGMAPS, label_selector=MANAGED)).items:
        assert copy["metadata"]["labels"][keys.BUCKET_LABEL] == str(bucket_of(copy["metadata"]["namespace"]))


def _assert_one_owner(writes: list[Write], shards: int) -> None:
    """By the rule, and by what the logs say: one writer an object, in each cluster and over all of them."""
    assert {write.shard for write in writes} == {f"{index}/{shards}" for index in range(shards)}
    writers: dict[tuple[str, str, str], set[str]] = {}
    for write in writes:
        if write.resource == "events" and write.namespace == "default":
            continue  # of objects without a namespace
        # Members' secrets are their clusters', which are in no namespace.
        of_cluster = write.resource == "secrets" and write.namespace == keys.SYSTEM_NAMESPACE and not write.cluster
        namespace = "" if write.resource == "namespaces" or of_cluster else write.namespace
        index = int(write.shard.split("/")[0])
        assert Shard(index, shards).owns(namespace), write
        writers.setdefault((write.resource, namespace, write.name), set()).add(write.shard)
    assert len([key for key in writers if key[0] == "federatedobjects"]) >= len(TEAMS) * len(NAMES)
    assert all(len(shards) == 1 for shards in writers.values())
