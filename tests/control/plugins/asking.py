"""What the tests of this folder ask of plugins, and how they see what came of it."""

from pathlib import Path

import msgspec

from argosy.api import keys, resources
from argosy.fleet.snapshot import Fleet
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.scheduling.framework import Profile
from argosy.plan.scheduling.package_plugins import question_of
from argosy.plan.scheduling.schedule import decide
from argosy.plan.scheduling.unit import Unit
from argosy.plugins import cluster
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.federation import QUICK

#: Long enough for a process on a busy machine to answer, short enough to be waited for.
TIMINGS = msgspec.structs.replace(QUICK, plugin_answer=2.0, plugin_load=PATIENCE, plugin_retry=0.3, breaker_open=0.1)


FLEET = Fleet.of([cluster(f"m{number}", labels={"zone": f"z{number % 2}"}) for number in range(5)])
WEB = Unit(group="apps", version="v1", kind="Deployment", name="web")
DIVIDED = msgspec.structs.replace(WEB, mode="Divide", desired_replicas=7)


async def profile(fed, name="profile", config=(), **plugins):
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "SchedulingProfile",
        "metadata": {"name": name},
        "spec": {"plugins": plugins, "pluginConfig": list(config)},
    }
    await fed.client.create(resources.SCHEDULING_PROFILES, body)


async def placed_in(fed, name, clusters):
    async def probe():
        return sorted(await fed.copies(name)) == clusters

    await eventually(probe, why=f"{name} in {clusters}")


async def held(fed, name):
    return held_of((await fed.federated(f"{name}-deployments.apps"))["metadata"].get("annotations") or {})


async def held_for(fed, name, text):
    async def probe():
        found = await held(fed, name)
        return found is not None and found.reason == HeldReason.UNSCHEDULABLE and text in found.message

    try:
        await eventually(probe)
    except AssertionError:
        raise AssertionError(f"{name} is not held for {text!r}: {await held(fed, name)}") from None


def theirs(workers):
    return question_of(next(decide(WEB, FLEET, Profile(filters=(workers.registry.filters["Theirs"],)))))


async def gone(pid, seconds=PATIENCE):
    def probe():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    await eventually(probe, seconds, why=f"process {pid} is gone")
