"""What `bench.propagate --ground stock` measures: many Deployments at once and one at a time on stock members, and a restart.

The bars are those of scale in the same surroundings of KubeAdmiral, which was measured on a stock control plane with three stock
members on two cores: 3.8 to 7.3 Deployments a second (the bar is five times the better figure), 52 control-plane writes for
each (events among them), 102 ms to all members one at a time, and a restart that writes every source's status again.
Where the control plane is kube-apiserver its audit log counts the writes; the embedded one counts by its version.
"""

import asyncio
import sys
import time
from collections import Counter
from typing import Any

from argosy.api import resources
from argosy.kube.objects import Partial, key_of
from bench.ground import DEPLOYMENTS, Ground, installed
from bench.phase import Phase, creation
from bench.report import Report, percentile

RATE = 5 * 7.3
WRITES = 52 / 5
MEDIAN = 60.0
STATUS = 0.5
#: How long after a restart writes are counted: longer than any delay there is for a status.
_SETTLED = 10.0
_AGENT = "argosy-controllers"


async def measure(ground: Ground, name: str, count: int, single: int, report: Report) -> None:
    """`name` is the control plane's, in front of every row."""
    idle = ground.resident()
    await one_at_a_time(ground, name, single, report)
    await at_once(ground, name, count, report)
    report.add(f"{name}: controllers resident, idle", idle, "MiB", "lower")
    report.add(f"{name}: controllers resident, peak", ground.peak(), "MiB", "lower")
    await restart(ground, name, report)


async def one_at_a_time(ground: Ground, name: str, count: int, report: Report) -> None:
    replicas = len(ground.names)
    everywhere, reported, lag = [], [], []
    for number in range(count):
        deployment = f"single-{number}"
        started = time.perf_counter()
        await creation(ground, deployment)()
        await ground.until(lambda deployment=deployment: ground.everywhere(deployment))
        everywhere.append(time.perf_counter() - started)
        await ground.until(lambda deployment=deployment: _ready_in_members(ground, deployment))
        ready = time.perf_counter()
        await ground.until(lambda deployment=deployment: ground.reported(deployment, replicas))
        now = time.perf_counter()
        reported.append(now - started)
        lag.append(now - ready)
    one = f"{name}: one at a time"
    report.add(f"{one}, median to all members", percentile(everywhere, 0.5) * 1000, "ms", "lower", MEDIAN)
    report.add(f"{one}, status after the members' own", percentile(lag, 0.5), "s", "lower", STATUS)
    report.add(f"{one}, status after the create (pods start meanwhile)", percentile(reported, 0.5), "s", "lower")


def _ready_in_members(ground: Ground, name: str) -> bool:
    found = ground.present.get(name, {})
    return all(found[member].status.ready_replicas == found[member].spec.replicas for member in ground.names)


async def at_once(ground: Ground, name: str, count: int, report: Report) -> None:
    names = [f"bench-{number}" for number in range(count)]
    replicas = len(ground.names)
    before, seen, cpu = await _written(ground), len(await _ours_on_plane(ground)), ground.cpu()
    created = await Phase(ground).run({each: creation(ground, each) for each in names}, ground.everywhere)
    many = f"{name}: {count} at once"
    report.add(f"{many}, present everywhere", created["rate"], "Deployments/s", "higher", RATE)
    report.add(f"{many}, P50 to the last member", created["p50"], "ms", "lower")
    started = time.perf_counter()
    await ground.until_all(names, lambda each: ground.reported(each, replicas))
    report.add(f"{many}, all statuses back, after presence", time.perf_counter() - started, "s", "lower")
    await asyncio.sleep(2)  # the last events, which are gathered, and audit lines
    report.add(f"{many}, controllers' CPU", (ground.cpu() - cpu) * 1000 / count, "ms each", "lower")
    after = await _written(ground)
    objects = (after["objects"] - before["objects"]) / count
    events = (after["events"] - before["events"]) / count
    # The embedded control plane's version counts the user's own write too.
    objects -= 0 if ground.plane_cluster is not None else 1
    report.add(f"{many}, control-plane writes, events included", objects + events, "each", "lower", WRITES)
    await _tell_kinds(ground, seen, count)
    report.add(f"{many}, events among them", events, "each", "lower")
    members = (after["members"] - before["members"]) / count / len(ground.names)
    report.add(f"{many}, writes in each member", members, "each", "lower", 1)


async def _written(ground: Ground) -> dict[str, float]:
    """Writes so far: of objects and events on the control plane, and of Deployments in members, by us."""
    members = 0
    for cluster in ground.member_clusters.values():
        audit = await asyncio.to_thread(lambda cluster=cluster: cluster.audit)
        members += sum(_is_ours(entry) and _resource(entry) == "deployments" for entry in audit)
    if ground.plane_cluster is None:
        version = await ground.version()
        objects = version - ground.events - ground.heartbeats
        return {"objects": objects, "events": ground.events, "members": members}
    ours = [_resource(entry) for entry in await _ours_on_plane(ground)]
    events = ours.count("events")
    return {
        "objects": len(ours) - events - ours.count("federatedclusters"),
        "events": events,
        "members": members,
    }


async def _ours_on_plane(ground: Ground) -> list[dict[str, Any]]:
    cluster = ground.plane_cluster
    audit = await asyncio.to_thread(lambda: cluster.audit) if cluster is not None else []
    return [entry for entry in audit if str(entry.get("userAgent", "")).startswith(_AGENT)]


async def _tell_kinds(ground: Ground, seen: int, count: int) -> None:
    """Which writes those were, for whoever wants fewer of them."""
    kinds: Counter[str] = Counter()
    for entry in (await _ours_on_plane(ground))[seen:]:
        reference, code = entry.get("objectRef") or {}, (entry.get("responseStatus") or {}).get("code", 0)
        what = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
        kinds[f"{entry['verb']} {what}" + (f" ({code})" if code >= 400 else "")] += 1
    for kind, number in kinds.most_common():
        print(f"  {number / count:.2f} {kind}", file=sys.stderr)


def _resource(entry: dict[str, Any]) -> str:
    return str((entry.get("objectRef") or {}).get("resource"))


def _is_ours(entry: dict[str, Any]) -> bool:
    """The components of the member have names of their own."""
    return not str(entry["user"]["username"]).startswith(("system:", "kwok"))


async def restart(ground: Ground, name: str, report: Report) -> None:
    """The controllers end and start again with nothing changed: objects that are another version afterwards were written."""
    before = await _versions(ground)
    await ground.controllers.stop()
    ground.controllers.start()
    started = time.perf_counter()
    await installed(ground)
    # Its own write is the sign that it works again; nothing else is to be seen of controllers that have nothing to do.
    await creation(ground, "after-restart")()
    await ground.until(lambda: ground.everywhere("after-restart"), 120.0)
    report.add(f"{name}: restart, first change carried after", time.perf_counter() - started, "s", "lower")
    await asyncio.sleep(_SETTLED)
    after = await _versions(ground)
    written = sum(after.get(key) != version for key, version in before.items())
    report.add(f"{name}: restart, objects written again", written, "objects", "lower", 0)


async def _versions(ground: Ground) -> dict[str, str]:
    found = {}
    kinds = (DEPLOYMENTS, resources.federated_objects(True), resources.COLLECTED_STATUSES)
    for kind in kinds:
        for item in (await ground.client.list(kind, "default", into=Partial)).items:
            found[f"{kind.plural} {key_of(item.metadata)}"] = item.metadata.resource_version
    for name, client in ground.members.items():
        for item in (await client.list(DEPLOYMENTS, "default", into=Partial)).items:
            found[f"{name} {key_of(item.metadata)}"] = item.metadata.resource_version
    return found
