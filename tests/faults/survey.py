"""A look at the whole federation from outside: what the control plane wants, what the members hold, and how the two differ."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from argosy.api import keys, resources
from argosy.kube.client import Client
from tests.faults.ledger import NAMESPACE, State
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS

__all__ = ["Survey", "settled", "stored", "survey"]

MANAGED = f"{keys.MANAGED_LABEL}=true"
Object = dict[str, Any]


class Survey:
    def __init__(self, sources: dict[str, Object], federated: dict[str, Object], copies: dict[str, dict[str, Object]]):
        self.sources = sources
        self.federated = federated
        self.copies = copies

    def versions(self) -> dict[tuple[str, str], tuple[str, str]]:
        """(member, name) -> uid and resourceVersion of each copy."""
        return {
            (member, name): (copy["metadata"]["uid"], copy["metadata"]["resourceVersion"])
            for member, copies in self.copies.items()
            for name, copy in copies.items()
        }

    def differences(self) -> list[str]:
        """Empty when every Deployment is where it should be, as it should be, and reported."""
        found = [f"{name} is still being deleted" for name, obj in self.sources.items() if _deleting(obj)]
        found += [f"{name} is not federated" for name in self.sources if name not in self.federated]
        for name, federated in self.federated.items():
            if name not in self.sources:
                found.append(f"the federated object of {name} has no source")
            else:
                found += [f"{name}: {text}" for text in self._object(name, self.sources[name], federated)]
        for member, copies in self.copies.items():
            found += [f"{name} leaked in {member}" for name in copies if name not in self.sources]
        return found

    def _object(self, name: str, source: Object, federated: Object) -> list[str]:
        found = []
        template = federated["spec"]["template"]
        if (template["spec"]["replicas"], _image(template)) != (source["spec"]["replicas"], _image(source)):
            found.append("the federated object is behind its source")
        holding = {member for member, copies in self.copies.items() if name in copies}
        placed = {c["cluster"] for entry in federated["spec"].get("placements", ()) for c in entry["placement"]}
        if holding != placed:
            found.append(f"placed in {sorted(placed)}, held by {sorted(holding)}")
        for member in holding & placed:
            copy = self.copies[member][name]
            if (copy["spec"]["replicas"], _image(copy)) != (_replicas(federated, member), _image(template)):
                found.append(f"{member} holds another version")
            # Until its pods have ended the member itself goes on writing the copy's status.
            if not _reported(copy) or (copy["status"].get("terminatingReplicas") or 0) > 0:
                found.append(f"{member} is still rolling out")
        total = sum(self.copies[member][name]["spec"]["replicas"] for member in holding)
        if total != source["spec"]["replicas"]:
            found.append(f"{total} replicas in members, {source['spec']['replicas']} wanted")
        status = federated.get("status") or {}
        if status.get("syncedGeneration") != federated["metadata"]["generation"]:
            found.append("not reported as synced")
        if {entry["cluster"]: entry["status"] for entry in status.get("clusters", ())} != dict.fromkeys(placed, "OK"):
            found.append(f"the status says {status.get('clusters')}")
        if not _reported(source):
            found.append(f"the source's status is {source.get('status')}")
        return found


async def survey(plane: Client, members: Mapping[str, Client]) -> Survey:
    sources, federated, *copies = await asyncio.gather(
        plane.list(DEPLOYMENTS, NAMESPACE),
        plane.list(resources.FEDERATED_OBJECTS, NAMESPACE),
        *(client.list(DEPLOYMENTS, NAMESPACE, label_selector=MANAGED) for client in members.values()),
    )
    return Survey(
        _by_name(sources.items),
        {obj["spec"]["template"]["metadata"]["name"]: obj for obj in federated.items if _of_deployment(obj)},
        {name: _by_name(found.items) for name, found in zip(members, copies, strict=True)},
    )


async def settled(plane: Client, members: Mapping[str, Client], deadline: float) -> Survey:
    """The first survey without a difference; fails when there is none before the deadline (on the monotonic clock)."""
    while True:
        found = await survey(plane, members)
        differences = found.differences()
        if not differences:
            return found
        assert time.monotonic() < deadline, "not converged:\n" + "\n".join(differences)
        await asyncio.sleep(0.05)


async def stored(plane: Client) -> dict[str, State]:
    """What clients' objects say now; one that is being deleted counts as deleted."""
    deployments, maps = await asyncio.gather(plane.list(DEPLOYMENTS, NAMESPACE), plane.list(CONFIGMAPS, NAMESPACE))
    found = {
        obj["metadata"]["name"]: State(obj["spec"]["replicas"], _image(obj))
        for obj in deployments.items
        if not _deleting(obj)
    }
    found |= {obj["metadata"]["name"]: State(int(obj["data"]["n"])) for obj in maps.items if "n" in obj["data"]}
    return found


def _by_name(objects: list[Object]) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


def _of_deployment(federated: Object) -> bool:
    return bool(federated["spec"]["template"]["kind"] == "Deployment")


def _deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _image(obj: Object) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


def _replicas(federated: Object, member: str) -> int:
    """The template's, unless something was said about this member."""
    replicas = federated["spec"]["template"]["spec"]["replicas"]
    for entry in federated["spec"].get("overrides", ()):
        for cluster in entry["clusters"]:
            for patch in cluster["patches"]:
                if cluster["cluster"] == member and patch["path"] == "/spec/replicas":
                    replicas = patch["value"]
    return int(replicas)


def _reported(source: Object) -> bool:
    status, wanted = source.get("status") or {}, source["spec"]["replicas"]
    return (
        status.get("observedGeneration") == source["metadata"]["generation"]
        and status.get("replicas") == wanted
        and status.get("updatedReplicas") == wanted
        and status.get("readyReplicas") == wanted
    )
