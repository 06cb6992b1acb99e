"""Generated sequences are answered by the embedded server as by kube-apiserver; `python -m tests.real.sequences` has more."""

import asyncio

from argosy.testing import API_SERVER
from argosy.testing.pytest_plugin import Kubernetes
from tests.real.sequences.duel import Difference, duel, shrunk
from tests.real.sequences.families import family
from tests.real.sequences.generator import sequence
from tests.real.sequences.servers import both
from tests.real.sequences.steps import Step

SEEDS = range(1, 41)
STEPS = 40
FAMILIES = range(1, 16)
FAMILY_STEPS = 14
AT_A_TIME = 3


async def test_both_servers_answer_alike(kubernetes: Kubernetes) -> None:
    await assert_alike(kubernetes, "", STEPS, {seed: sequence(seed, STEPS) for seed in SEEDS})


async def test_both_servers_collect_the_same_garbage(kubernetes: Kubernetes) -> None:
    """Owners and dependents, circles of them among them, under all three policies."""
    runs = {seed: family(seed, FAMILY_STEPS) for seed in FAMILIES}
    await assert_alike(kubernetes, "--families ", FAMILY_STEPS, runs)


async def assert_alike(kubernetes: Kubernetes, option: str, length: int, runs: dict[int, list[Step]]) -> None:
    cluster = await kubernetes.shared(API_SERVER)
    waiting = iter(runs.items())
    found: dict[int, Difference] = {}
    async with both(cluster.connection()) as (embedded, stock):

        async def worker() -> None:
            for seed, steps in waiting:
                difference = await duel(embedded, stock, steps)
                if difference is not None:
                    found[seed] = await shrunk(embedded, stock, difference)

        await asyncio.gather(*(worker() for _ in range(AT_A_TIME)))
    command = f"python -m tests.real.sequences {option}--steps {length}"
    assert not found, "\n\n".join(f"{command} --seed {seed}\n{one}" for seed, one in found.items())
