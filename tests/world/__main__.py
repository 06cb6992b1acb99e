"""Play a world: `python -m tests.world --seed 1`. Prints the hash of its trace: the same for the same seed, always."""

import argparse
import asyncio
import os
import sys

from argosy.api import keys, resources
from tests.harness.eventually import eventually
from tests.harness.user import DEPLOYMENTS, deployment
from tests.world.world import World, play


async def story(world: World) -> None:
    """A few workloads, while everything that can crash does so once."""
    policy = {
        "apiVersion": keys.API_VERSION,
        "kind": "PropagationPolicy",
        "metadata": {"name": "policy", "namespace": "default"},
        "spec": {"schedulingMode": "Divide"},
    }
    await world.user.create(resources.PROPAGATION_POLICIES, policy)
    for number in range(5):
        await world.user.create(DEPLOYMENTS, deployment(f"web-{number}", 6, "policy"))
    for place in world.places:
        place.crash()
        await asyncio.sleep(5)
        await place.start()
        await asyncio.sleep(5)
    await eventually(lambda: arrived(world), 300, "all replicas are ready")


async def arrived(world: World) -> bool:
    found = (await world.user.list(DEPLOYMENTS, "default")).items
    return [(each.get("status") or {}).get("readyReplicas") for each in found] == [6] * 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--trace", type=argparse.FileType("w"), help="a file for everything that was said")
    arguments = parser.parse_args()
    world, _ = play(arguments.seed, story, output=arguments.trace)
    print(f"{world.trace.digest} after {world.trace.requests} requests in {world.loop.time():.1f} s")
    sys.stdout.flush()
    # Everything stopped where it was; nobody is to tidy up.
    os._exit(0)


if __name__ == "__main__":
    main()
