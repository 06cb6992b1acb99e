"""Generated sequences are answered by the embedded server as by kube-apiserver; `python -m tests.real.sequences` has more."""

import asyncio

from argosy.testing import API_SERVER
from argosy.testing.pytest_plugin import Kubernetes
from tests.real.sequences.duel import Difference, duel, shrunk
from tests.real.sequences.generator import sequence
from tests.real.sequences.servers import both

SEEDS = range(1, 41)
STEPS = 40
AT_A_TIME = 3


async def test_both_servers_answer_alike(kubernetes: Kubernetes) -> None:
    cluster = await kubernetes.shared(API_SERVER)
    waiting = iter(SEEDS)
    found: dict[int, Difference] = {}
    async with both(cluster.connection()) as (embedded, stock):

        async def worker() -> None:
            for seed in waiting:
                difference = await duel(embedded, stock, sequence(seed, STEPS))
                if difference is not None:
                    found[seed] = await shrunk(embedded, stock, difference)

        await asyncio.gather(*(worker() for _ in range(AT_A_TIME)))
    told = (f"python -m tests.real.sequences --seed {seed} --steps {STEPS}\n{one}" for seed, one in found.items())
    assert not found, "\n\n".join(told)
