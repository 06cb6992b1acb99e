"""What a restart costs a large federation: `argosy up` is killed, and started on everything there is.

Half of the objects are Deployments and half ConfigMaps, each in two of ten members. Members are API servers alone, each a process
of its own; no pods run. Measured are the seconds until a user's edit is accepted and in its members, and until the control plane
rests; and what it writes to members although nothing changed.
"""

import asyncio
import time

from argosy.api import keys, resources
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.resource import Resource
from bench.ground import DEPLOYMENTS, Ground
from bench.idle import bare, each
from bench.phase import manifest
from bench.processes import run
from bench.report import Report, parser

#: Of each kind.
OBJECTS = 30_000
MEMBERS = 10
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
_POLL = 0.05
#: It rests once it has taken less than this part of a core for so many seconds.
_LITTLE, _LOOK = 0.1, 3.0
_PATIENCE = 1800.0


def pair(number: int) -> str:
    """The policy that places in two members next to each other."""
    return f"pair-{number % MEMBERS}"


async def create_policies(ground: Ground) -> None:
    for number in range(MEMBERS):
        chosen = (ground.names[number], ground.names[(number + 1) % MEMBERS])
        spec = {"schedulingMode": "Duplicate", "placement": [{"cluster": name} for name in chosen]}
        metadata = {"name": pair(number), "namespace": "default"}
        policy = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": metadata, "spec": spec}
        await ground.client.create(resources.PROPAGATION_POLICIES, policy)


async def create(ground: Ground, number: int) -> None:
    """A Deployment and a ConfigMap."""
    labels = {keys.PROPAGATION_POLICY_LABEL: pair(number)}
    deployment = manifest(f"web-{number}", 1)
    deployment["metadata"]["labels"] = labels
    metadata = {"name": f"map-{number}", "namespace": "default", "labels": labels}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "0"}}
    await ground.client.create(DEPLOYMENTS, deployment, into=bytes)
    await ground.client.create(CONFIGMAPS, configmap, into=bytes)


async def versions(ground: Ground) -> int:
    """How often all members were written."""
    pages = [await client.list(CONFIGMAPS, "default", limit=1) for client in ground.members.values()]
    return sum(int(page.resource_version) for page in pages)


async def rested(ground: Ground, started: float) -> float:
    """Seconds from the start until it takes no more time of a processor."""
    samples = [(time.monotonic(), ground.cpu())]
    while True:
        await asyncio.sleep(0.25)
        now, cpu = time.monotonic(), ground.cpu()
        samples = [each for each in samples if each[0] > now - _LOOK - 0.3]
        first, spent = samples[0] if samples else (now, cpu)
        if now - first >= _LOOK and cpu - spent < _LITTLE * (now - first):
            return first - started
        if now - started > _PATIENCE:
            raise SystemExit("the controllers do not come to rest")
        samples.append((now, cpu))


async def edit(ground: Ground, number: int) -> tuple[float, float]:
    """When an edit was accepted, and when both members had it. Until then it is tried again."""
    body, name = {"data": {"value": str(time.time())}}, f"map-{number}"
    while True:
        ground.cpu()  # where it has ended there is nothing to wait for
        try:
            await ground.client.patch(CONFIGMAPS, name, body, "default", kind=Patch.MERGE)
            break
        except (ApiError, TransportError):
            await asyncio.sleep(_POLL)
    accepted = time.monotonic()
    for place in (ground.names[number % MEMBERS], ground.names[(number + 1) % MEMBERS]):
        await until_there(ground.members[place], name, body["data"])
    return accepted, time.monotonic()


async def later(ground: Ground) -> float:
    began = time.monotonic()
    _, arrived = await edit(ground, 8)
    return arrived - began


async def until_there(client: Client, name: str, data: dict[str, str]) -> None:
    while True:
        if (await client.get(CONFIGMAPS, name, "default"))["data"] == data:
            return
        await asyncio.sleep(_POLL)


async def measure(objects: int) -> Report:
    report = Report("restart", {"deployments": objects, "configmaps": objects, "members": MEMBERS, "copies of each": 2})
    async with bare(MEMBERS, embedded=True) as ground:
        await create_policies(ground)
        began = time.monotonic()
        await each(map(str, range(objects)), lambda number: create(ground, int(number)))
        await rested(
            ground, began
        )  # until all statuses are collected: what is left over would be done after the restart
        report.add("seconds to create all", time.monotonic() - began, "s", "lower")
        report.add("control plane resident, before", ground.resident(), "MiB", "lower")
        written = await versions(ground)
        ground.controllers.kill()
        started = time.monotonic()
        ground.controllers.start()
        resting = asyncio.create_task(rested(ground, started))
        accepted, arrived = await edit(ground, 7)
        report.add("first edit: accepted", accepted - started, "s", "lower", 1)
        report.add("first edit: in its members", arrived - started, "s", "lower")
        report.add("second edit, while all is looked at: in its members", await later(ground), "s", "lower")
        report.add("seconds until at rest", await resting, "s", "lower", 60)
        report.add("writes to members, but for the edits", await versions(ground) - written - 4, "", "lower", 0)
        report.add("control plane resident, after", ground.resident(), "MiB", "lower")
        report.add("control plane resident, peak", ground.peak(), "MiB", "lower")
    return report


async def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--objects", type=int, default=OBJECTS, help="of each kind (default: %(default)s)")
    arguments = options.parse_args()
    report = await measure(300 if arguments.quick else arguments.objects)
    report.finish(arguments)


if __name__ == "__main__":
    run(main())
