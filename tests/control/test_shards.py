"""Shards: several controllers divide the objects of one control plane, and each object has one owner in everything."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.shards import WHOLE, Shard, bucket_of
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.manager import Manager
from argosy.control.members.connect import http_connector
from argosy.control.options import Options
from argosy.control.sharding.peers import PeerReservations
from argosy.control.sharding.publisher import ReservationPublisher
from argosy.fleet.credentials import Connection
from argosy.kube.challenge import Challenge
from argosy.kube.client import Client
from argosy.kube.transport import Event, Page, Request, Response, Transport
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, QUICK, Federation
from tests.harness.inside import Inside
from tests.harness.user import deployment, exists
from tests.harness.virtual_server import connector

MANAGED = f"{keys.MANAGED_LABEL}=true"
#: Several managers in one process have no time for a member that must answer within a quarter of a second.
PATIENT = msgspec.structs.replace(QUICK, health_period=4.0, health_threshold=10.0)
#: (shard, cluster or "" for the control plane, method, path)
Note = tuple[str, str, str, str]


class Noting:
    """A transport that notes every write before it is sent."""

    def __init__(self, inner: Transport, note: Callable[[str, str], None]):
        self._inner = inner
        self._note = note

    @property
    def name(self) -> str:
        return self._inner.name

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            self._note(request.method, request.path)
        return await self._inner.send(request)

    async def list(self, request: Request) -> Page:
        return await self._inner.list(request)

    def watch(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._inner.watch(request)

    async def close(self) -> None:
        await self._inner.close()


class ShardedFederation(Federation):
    """As many managers as there are shards, all of whose writes are noted."""

    def __init__(self, members: int, shards: int, options: Options | None = None):
        super().__init__(members, timings=PATIENT, options=options or Options())
        self.shards = shards
        self.managers: list[Manager] = []
        self.notes: list[Note] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start_controllers(self) -> None:
        self.managers = [self._manager(Shard(index, self.shards)) for index in range(self.shards)]
        self.manager = self.managers[0]
        self._tasks = [asyncio.create_task(manager.run()) for manager in self.managers]
        await eventually(lambda: all(manager.ready.is_set() for manager in self.managers), 30, "controllers ready")

    async def stop_controllers(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def divide(self, shards: int) -> None:
        """Stop all, and start so many."""
        await self.stop_controllers()
        self.shards = shards
        await self.start_controllers()

    def _manager(self, shard: Shard) -> Manager:
        connect_to = connector() or http_connector()

        def connect(name: str, connection: Connection, challenge: Challenge | None) -> Client:
            return self._noting(shard, name, connect_to(name, connection, challenge))

        client = self._noting(shard, "", self.plane.client())
        options = msgspec.structs.replace(self.options, shard=shard)
        return Manager(client, options=options, timings=self.timings, connect=connect)

    def _noting(self, shard: Shard, cluster: str, client: Client) -> Client:
        return Client(Noting(client.transport, lambda *what: self.notes.append((str(shard), cluster, *what))))

    def ready_clusters(self) -> list[str]:
        """Those that every shard has seen to be: each schedules by what it sees."""
        views = [Inside(each).caches.clusters.values() for each in self.managers]
        seen = [{cluster.name for cluster in view if cluster.ready} for view in views]
        return sorted(set.intersection(*seen))

    async def settled(self) -> None:
        await _still(lambda: len([note for note in self.notes if "/federatedclusters/" not in note[3]]) + self._busy())

    def _busy(self) -> float:
        """Never twice the same while a worker has something to do: on a busy machine nothing may be written for long."""
        loops = ("federate", "dispatch", "aggregate")
        queues = [Inside(each).queue(loop) for each in self.managers for loop in loops]
        return random.random() if any(len(queue) or queue.processing for queue in queues) else 0.0

    async def copies_everywhere(self, resource: Any) -> dict[str, dict[str, str]]:
        """uid of each managed object, by member and key."""
        found: dict[str, dict[str, str]] = {}
        for name in self.names:
            listed = await self.member(name).list(resource, label_selector=MANAGED)
            metadata = [item["metadata"] for item in listed.items]
            found[name] = {f"{m['namespace']}/{m['name']}": m["uid"] for m in metadata}
        return found


async def test_all_shards_watch_again_when_the_owner_hears_of_a_member():
    """Only the owner probes; the others' watches have long pauses by then."""
    fed = ShardedFederation(1, 2)
    fed.timings = msgspec.structs.replace(PATIENT, health_period=120.0, retry_most=60.0)
    async with fed:

        def heard_of() -> list[bool]:
            return [Inside(each).caches.clusters.get("m1").silent_since is None for each in fed.managers]

        def watching(manager: Manager) -> bool:
            (member,) = Inside(manager).members
            return not member.unwatched()

        await fed.servers["m1"].close_door()
        await eventually(lambda: heard_of() == [False, False])
        await asyncio.sleep(100.0)
        await fed.servers["m1"].open_door()
        await eventually(lambda: heard_of() == [True, True])
        await eventually(lambda: all(watching(each) for each in fed.managers), 5.0)


async def _still(probe: Callable[[], object], seconds: float = 0.7) -> None:
    last, since = probe(), asyncio.get_running_loop().time()

    def unchanged() -> bool:
        nonlocal last, since
        now = asyncio.get_running_loop().time()
        if probe() != last:
            last, since = probe(), now
        return now - since > seconds

    await eventually(unchanged, 60, "nothing changes any more")


def _namespace_of(path: str) -> str:
    """The namespace an object of this path is in: "" for namespaces themselves and whatever is in none."""
    parts = path.split("/")
    if "namespaces" not in parts:
        return ""
    after = parts[parts.index("namespaces") + 1 :]
    return after[0] if len(after) > 1 and after[1] not in ("status", "finalize") else ""


def _configmap(namespace: str, name: str, value: str = "1") -> dict[str, Any]:
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


async def _furnish(fed: Federation, namespaces: list[str]) -> None:
    for namespace in namespaces:
        await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await fed.policy(namespace=namespace, schedulingMode="Duplicate")
        await fed.client.create(CONFIGMAPS, _configmap(namespace, "settings"))
        await fed.deploy("web", 2, namespace=namespace)


def _expected(fed: Federation, namespaces: list[str], name: str) -> dict[str, set[str]]:
    return {member: {f"{namespace}/{name}" for namespace in namespaces} for member in fed.names}


async def _all_there(fed: ShardedFederation, namespaces: list[str]) -> bool:
    for resource, name in ((CONFIGMAPS, "settings"), (DEPLOYMENTS, "web")):
        found = await fed.copies_everywhere(resource)
        if {member: set(copies) for member, copies in found.items()} != _expected(fed, namespaces, name):
            return False
    return True


def _random_names(seed: int, count: int) -> list[str]:
    chosen = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    return sorted({"n" + "".join(chosen.choices(letters, k=chosen.randint(1, 20))) for _ in range(count)})


@pytest.mark.parametrize(("first", "then", "seed"), [(2, 3, 1), (3, 1, 2), (1, 2, 3)])
async def test_every_object_has_one_owner_and_other_divisions_find_it_as_it_is(
    first: int, then: int, seed: int
) -> None:
    namespaces = _random_names(seed, 14)
    async with ShardedFederation(2, shards=first) as fed:
        await _furnish(fed, namespaces)
        await eventually(lambda: _all_there(fed, namespaces), 60, "everything is in all members")
        await fed.settled()
        _assert_one_owner(fed.notes, first)
        _assert_holds_its_own_only(fed)
        before = [await fed.copies_everywhere(resource) for resource in (CONFIGMAPS, DEPLOYMENTS)]
        versions = await _versions(fed)

        fed.notes.clear()
        await fed.divide(then)
        await fed.settled()
        assert [note for note in fed.notes if note[1]] == [], "another division alone writes nothing in members"
        assert await _versions(fed) == versions, [note for note in fed.notes if "federatedclusters" not in note[3]]

        for namespace in namespaces:
            await fed.client.patch(CONFIGMAPS, "settings", {"data": {"value": "2"}}, namespace)
        await eventually(lambda: _all_have(fed, namespaces, "2"), 60, "the change is everywhere")
        await fed.settled()
        _assert_one_owner(fed.notes, then)
        assert [await fed.copies_everywhere(resource) for resource in (CONFIGMAPS, DEPLOYMENTS)] == before
        assert not [note for note in fed.notes if note[2] == "DELETE"]
        await _assert_labelled(fed, namespaces, then)


async def _all_have(fed: ShardedFederation, namespaces: list[str], value: str) -> bool:
    for name in fed.names:
        for namespace in namespaces:
            if (await fed.member(name).get(CONFIGMAPS, "settings", namespace))["data"]["value"] != value:
                return False
    return True


async def _versions(fed: ShardedFederation) -> dict[str, str]:
    listed = await fed.client.list(resources.FEDERATED_OBJECTS)
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in listed.items}


def _assert_one_owner(notes: list[Note], shards: int) -> None:
    assert len({note[0] for note in notes}) == shards, "every shard has something to do"
    for shard, cluster, method, path in notes:
        if path.endswith("/events") or "/events/" in path:
            continue  # events of objects without a namespace are in one; whose they are is asserted by their objects
        index = int(shard.split("/")[0])
        # Members' secrets are their clusters', which are in no namespace.
        of_cluster = not cluster and path.startswith(f"/api/v1/namespaces/{keys.SYSTEM_NAMESPACE}/secrets/")
        namespace = "" if of_cluster else _namespace_of(path)
        assert Shard(index, shards).owns(namespace), (shard, cluster, method, path)


def _assert_holds_its_own_only(fed: ShardedFederation) -> None:
    for inside in map(Inside, fed.managers):
        shard = inside.shard
        held = [*inside.caches.sources["configmaps"].keys(), *inside.caches.federated[True].keys()]
        for informer in inside.collector.informers().values():
            held += [key for key in list(informer.keys()) if "/" in key]
        assert held
        assert all(shard.owns(key.split("/")[0]) for key in held)


async def _assert_labelled(fed: ShardedFederation, namespaces: list[str], shards: int) -> None:
    """What was written under shards carries its bucket; nothing was written for that alone."""
    for namespace in namespaces:
        labels = (await fed.member("m1").get(CONFIGMAPS, "settings", namespace))["metadata"]["labels"]
        if shards > 1:
            assert labels[keys.BUCKET_LABEL] == str(bucket_of(namespace))


async def test_a_bucket_that_somebody_took_away_or_changed_comes_back() -> None:
    async with ShardedFederation(1, shards=2) as fed:
        await _furnish(fed, ["team"])
        await eventually(lambda: _all_there(fed, ["team"]), 30)
        await fed.settled()
        before = await fed.copies_everywhere(CONFIGMAPS)
        foreign = next(b for b in range(256) if not _owner_of("team", 2).owns_bucket(b))
        body = {"metadata": {"labels": {keys.BUCKET_LABEL: str(foreign)}}, "data": {"value": "theirs"}}
        await fed.member("m1").patch(CONFIGMAPS, "settings", body, "team")

        async def repaired() -> bool:
            copy = await fed.member("m1").get(CONFIGMAPS, "settings", "team")
            bucket = copy["metadata"]["labels"].get(keys.BUCKET_LABEL)
            return bool(bucket == str(bucket_of("team")) and copy["data"] == {"value": "1"})

        await eventually(repaired, 30, "the copy is as it was")
        assert await fed.copies_everywhere(CONFIGMAPS) == before
        _assert_one_owner_of_members(fed.notes, "team", 2)


def _owner_of(namespace: str, shards: int) -> Shard:
    return next(shard for index in range(shards) if (shard := Shard(index, shards)).owns(namespace))


def _assert_one_owner_of_members(notes: list[Note], namespace: str, shards: int) -> None:
    writers = {note[0] for note in notes if note[1] and f"/namespaces/{namespace}/" in note[3]}
    assert writers == {str(_owner_of(namespace, shards))}


async def test_clusters_are_shard_0s_and_the_others_follow() -> None:
    """One that joins later is used by all; one that leaves with its copies loses all of them, each by its owner."""
    namespaces = _random_names(4, 8)
    async with ShardedFederation(2, shards=3) as fed:
        await _furnish(fed, namespaces)
        await eventually(lambda: _all_there(fed, namespaces), 60)
        about_clusters = {note[0] for note in fed.notes if "/federatedclusters/" in note[3] and not note[1]}
        assert about_clusters == {"0/3"}

        body = {"metadata": {"annotations": {keys.CASCADING_DELETE: "true"}}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m2", body)
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m2")
        await eventually(lambda: _left(fed, "m2"), 60, "m2 left the federation")
        copies = await fed.copies_everywhere(DEPLOYMENTS)
        assert copies["m2"] == {}
        assert len(copies["m1"]) == len(namespaces)
        _assert_one_owner(fed.notes, 3)
        await eventually(
            lambda: all(len(Inside(manager).members) == 1 for manager in fed.managers), 30, "all let go of it"
        )


async def _left(fed: Federation, name: str) -> bool:
    return not await exists(fed.client, resources.FEDERATED_CLUSTERS, name)


async def test_a_paused_fleet_is_paused_for_every_shard() -> None:
    namespaces = _random_names(5, 6)
    async with ShardedFederation(1, shards=2) as fed:
        await _furnish(fed, namespaces)
        await eventually(lambda: _all_there(fed, namespaces), 60)
        await fed.annotate(NAMESPACES, keys.SYSTEM_NAMESPACE, None, **{keys.PAUSED: "true"})
        await eventually(lambda: all(Inside(manager).pause.fleet() for manager in fed.managers))
        for namespace in namespaces:
            await fed.client.patch(CONFIGMAPS, "settings", {"data": {"value": "2"}}, namespace)

        async def unchanged() -> bool:
            return await _all_have(fed, namespaces, "1")

        await holds(unchanged, 1.0)
        await fed.annotate(NAMESPACES, keys.SYSTEM_NAMESPACE, None, **{keys.PAUSED: None})
        await eventually(lambda: _all_have(fed, namespaces, "2"), 30)


async def test_what_one_shard_reserved_counts_for_the_others_and_no_longer_than_it_waits() -> None:
    """Members here run nothing by themselves."""
    theirs, ours = (_namespace_owned_by(index) for index in (0, 1))
    async with ShardedFederation(2, shards=2) as fed:
        for namespace in (theirs, ours):
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await fed.client.create(NAMESPACES, made)
        await fed.policy(namespace=theirs, schedulingMode="Duplicate")
        body = deployment("web", 3, "policy", theirs)
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        free = Inside(fed.managers[1]).snapshot.available("cpu").tolist()
        await fed.client.create(DEPLOYMENTS, body, theirs)
        ours_to_place = SourceKey("deployments.apps", f"{ours}/other")

        def seen_by_us() -> list[int]:
            left = Inside(fed.managers[1]).reserved.fleet(ours_to_place).available("cpu").tolist()
            return [before - now for before, now in zip(free, left, strict=True)]

        await eventually(lambda: seen_by_us() == [3000, 3000], 30, "the other shard's replicas are taken off")
        # What is our own is not taken for somebody else's.
        assert Inside(fed.managers[1]).reserved.totals == {}
        assert Inside(fed.managers[0]).peers.totals == {}
        await fed.client.delete(DEPLOYMENTS, "web", theirs)
        await eventually(lambda: seen_by_us() == [0, 0], 30, "nothing is on its way any more")
        _assert_shown_by_its_own(fed.notes)


def _namespace_owned_by(index: int) -> str:
    return next(name for number in range(100) if Shard(index, 2).owns(name := f"team-{number}"))


def _assert_shown_by_its_own(notes: list[Note]) -> None:
    shown = {
        (shard, path.rpartition("/")[2])
        for shard, _, method, path in notes
        if f"/{keys.SYSTEM_NAMESPACE}/configmaps" in path
    }
    assert ("0/2", "argosy-reserved-0") in shown
    assert shown <= {("0/2", "argosy-reserved-0"), ("1/2", "argosy-reserved-1"), ("0/2", "configmaps")}


async def test_a_peer_that_is_silent_for_long_is_not_counted() -> None:
    async with Federation(0) as fed:
        time = 0.0
        timings = msgspec.structs.replace(QUICK, reservations_shown=0.01, reservations_kept=60.0)
        reserved = [{"cpu": {"m1": 500, "m2": 0}}, {}]
        shards = [PeerReservations(fed.client, Shard(index, 2), timings, lambda: time) for index in (0, 1)]
        publishers = [
            ReservationPublisher(
                fed.client, Shard(index, 2), lambda index=index: reserved[index], dict, peers, timings, lambda: time
            )
            for index, peers in enumerate(shards)
        ]
        told = []
        shards[1].released.add_handler(lambda _: told.append("released"))
        tasks = [
            asyncio.create_task(run())
            for peers, publisher in zip(shards, publishers, strict=True)
            for run in (publisher.run, peers.informer.run)
        ]
        try:
            await eventually(lambda: shards[1].totals == {"cpu": {"m1": 500}})
            reserved[0] = {"cpu": {"m1": 700}}
            await eventually(lambda: shards[1].totals == {"cpu": {"m1": 700}})
            assert told == []
            # It goes on being counted for as long as it says so,
            for later in (30.0, 60.0, 90.0, 120.0):
                before = _beat(shards[1])
                time = later
                await eventually(lambda before=before: _beat(shards[1]) != before)
                assert shards[1].totals == {"cpu": {"m1": 700}}
            # ... and not when it has stopped.
            for task in tasks[:2]:
                task.cancel()
            time = 200.0
            await eventually(lambda: shards[1].totals == {})
            assert told == ["released"]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_a_process_before_us_showed_is_taken_back_and_nothing_is_shown_of_nothing() -> None:
    async with Federation(0) as fed:
        old = {
            "metadata": {"name": "argosy-reserved-1", "labels": {keys.RESERVED_LABEL: "2"}},
            "data": {"reserved": '{"cpu":{"m1":900}}'},
        }
        await fed.client.create(CONFIGMAPS, old, keys.SYSTEM_NAMESPACE)
        timings = msgspec.structs.replace(QUICK, reservations_shown=0.01)
        shards = [PeerReservations(fed.client, Shard(index, 2), timings) for index in (0, 1)]
        publishers = [
            ReservationPublisher(fed.client, Shard(index, 2), dict, dict, peers, timings)
            for index, peers in enumerate(shards)
        ]
        tasks = [
            asyncio.create_task(run())
            for peers, publisher in zip(shards, publishers, strict=True)
            for run in (peers.informer.run, publisher.run)
        ]

        async def taken_back() -> bool:
            found = await fed.client.get(CONFIGMAPS, "argosy-reserved-1", keys.SYSTEM_NAMESPACE)
            return bool(found["data"]["reserved"] == "{}")

        try:
            await eventually(taken_back)
            await eventually(lambda: shards[0].totals == {})
            assert not await exists(fed.client, CONFIGMAPS, "argosy-reserved-0", keys.SYSTEM_NAMESPACE)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _beat(peers: PeerReservations) -> str:
    return peers.informer.get(f"{keys.SYSTEM_NAMESPACE}/argosy-reserved-0").data["beat"]


def test_without_shards_nothing_is_left_out() -> None:
    assert WHOLE.member_selector() == ""
    assert Options().shard == WHOLE
