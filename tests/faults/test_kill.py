"""The control plane is killed again and again while clients write to it: in the middle of commits, in the middle of dispatch.

`ARGOSY_KILLS` says how often (20 before a release), `ARGOSY_SEED` repeats a run.
"""

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from argosy.api import keys, resources
from argosy.cli.client import membership
from argosy.kube.client import Client
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial
from tests.faults.gauge import COMMIT, SEND
from tests.faults.ledger import NAMESPACE, POLICY, Ledger, State, Writer, flat_out
from tests.faults.processes import EAGER, Plane, SimulatedMembers
from tests.faults.survey import settled, stored
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, deployment

KILLS = int(os.environ.get("ARGOSY_KILLS", "6"))
SEED = int(os.environ.get("ARGOSY_SEED") or random.randrange(10**6))
CONVERGENCE = 60.0


@pytest.mark.slow
async def test_killed_while_clients_write_nothing_is_lost_leaked_or_written_twice(tmp_path: Path) -> None:
    print(f"ARGOSY_SEED={SEED}")
    chance = random.Random(SEED)
    plane, ledger = Plane(tmp_path / "plane"), Ledger[State]()
    async with SimulatedMembers(tmp_path / "members", 3, speed=20) as members:
        try:
            await plane.start()
            client = plane.client()
            await prepare(client, members, ledger)
            watched = Informer(client, DEPLOYMENTS, Partial, namespace=NAMESPACE, backoff=EAGER)
            watching = asyncio.create_task(watched.run())
            writers = [Writer(number, ledger, chance) for number in range(4)]
            before = (await settled(client, members.clients, time.monotonic() + CONVERGENCE)).versions()
            hits, unanswered, kept, slowest = {COMMIT: 0, SEND: 0}, 0, 0, 0.0
            for turn in range(KILLS):
                ledger.touched.clear()
                arm(plane, turn, chance)
                writing = [asyncio.create_task(writer.run(client)) for writer in writers]
                writing += [asyncio.create_task(flat_out(f"count-{n}", ledger, client)) for n in range(2)]
                await plane.killed(within=10)
                await asyncio.gather(*writing)
                for what in hits:
                    hits[what] += plane.gauge.under_way(what) > 0
                unanswered += bool(ledger.open)

                await plane.start()
                ledger.resolve(await stored(client))
                found = await settled(client, members.clients, plane.ready_at + CONVERGENCE)
                slowest = max(slowest, time.monotonic() - plane.ready_at)
                after = found.versions()
                same = {at: version for at, version in before.items() if at[1] not in ledger.touched}
                assert {at: after.get(at) for at in same} == same, "a copy that was right was written again"
                kept += len(same)
                before = after
                await eventually(lambda found=found: seen(watched) == current(found.sources), why="the watch caught up")
            assert watched.lists == 1, "the watch was resumed where it had ended, each time"
            watching.cancel()
            await client.close()
        finally:
            plane.kill()
    print(
        f"{KILLS} kills (seed {SEED}): {hits[COMMIT]} in a commit, {hits[SEND]} in a write to a member,"
        f" {unanswered} with clients unanswered; {ledger.writes} writes acknowledged, none lost;"
        f" {kept} copies were right and stayed as they were; converged at most {slowest:.1f} s after ready"
    )
    assert min(hits.values()) >= KILLS // 3
    assert unanswered >= KILLS // 2


async def prepare(client: Client, members: SimulatedMembers, ledger: Ledger[State]) -> None:
    """Members joined, a policy, and Deployments that nobody touches any more."""
    for name in members.names:
        await membership.register(client, name, members.connection(name), {})
    for name in members.names:
        await membership.wait_ready(client, name, 30, lambda text: None)
    weights = [{"cluster": name, "preferences": {"weight": 1}} for name in members.names]
    policy = {
        "apiVersion": keys.API_VERSION,
        "kind": "PropagationPolicy",
        "metadata": {"name": POLICY, "namespace": NAMESPACE},
        "spec": {"schedulingMode": "Divide", "placement": weights},
    }
    await client.create(resources.PROPAGATION_POLICIES, policy)
    for number in range(4):
        name = f"still-{number}"
        request = client.create(DEPLOYMENTS, deployment(name, 6, POLICY))
        await ledger.write(name, State(6, "nginx:1.29"), request)


def arm(plane: Plane, turn: int, chance: random.Random) -> None:
    """Every other time in a commit or a write to a member, some way through it; the clients have begun by then."""
    what = (COMMIT, SEND)[turn % 2]
    plane.gauge.arm(what, chance.randint(*((10, 60), (2, 15))[turn % 2]), chance.uniform(0.0, 1.1))


def seen(watched: Informer[Partial]) -> dict[str, str]:
    return {value.metadata.name: value.metadata.resource_version for value in watched.values()}


def current(sources: dict[str, dict[str, object]]) -> dict[str, str]:
    return {name: str(source["metadata"]["resourceVersion"]) for name, source in sources.items()}  # type: ignore[index]
