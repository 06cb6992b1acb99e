"""After the storm: every copy where its tenant wants it and equal to its rendering, no copy without a source, nothing twice.

What tenants want is taken from their journal, what is there from the members. The rendering is plan's own, and whether a copy
equals it is for the member to say: writing it (as a dry run) would change nothing.
"""

import asyncio
from collections import Counter
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.api.types import FederatedObject, FederatedTypeConfig
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.plan.copies import placement
from argosy.plan.copies.render import render
from tests.faults.storm.tenants import NAMESPACE, App, Journal, Placement, Setting, Settings, State, state_of
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS

__all__ = ["Survey"]

Object = dict[str, Any]
_KINDS = (DEPLOYMENTS, CONFIGMAPS)
_MANAGED = f"{keys.MANAGED_LABEL}=true"


class Survey:
    def __init__(self, plane: Client, members: dict[str, Client], journal: Journal):
        self._plane = plane
        self._members = members
        self._journal = journal
        #: Copies looked at by the last one that found nothing wrong.
        self.copies = 0

    async def differences(self) -> list[str]:
        """All there are just now; a part that cannot be asked is one."""
        try:
            async with asyncio.timeout(60):
                return await self._look()
        except (ApiError, TransportError, TimeoutError) as error:
            return [f"not everything can be asked: {error!r}"]

    async def _look(self) -> list[str]:
        sources = await self._of_plane()
        federated = (await self._plane.list(resources.FEDERATED_OBJECTS, NAMESPACE, into=FederatedObject)).items
        copies = {name: await _of_member(client) for name, client in self._members.items()}
        found = self._lost(sources)
        templates = Counter(_name(each) for each in federated)
        found += [f"{name} is federated {count} times" for name, count in templates.items() if count > 1]
        found += [f"the federated object of {name} has no source" for name in templates.keys() - sources.keys()]
        found += [f"{name} is not federated" for name in sources.keys() - templates.keys()]
        for member, held in copies.items():
            found += [f"{name} is an orphan in {member}" for name in held.keys() - sources.keys()]
        for name in sources:
            found += [f"{name}: {text}" for text in self._wanted(name, copies)]
        for each in federated:
            found += [f"{_name(each)}: {text}" for text in _reported(each, copies)]
        if not found:
            found = await self._rendered(federated, copies)
            self.copies = sum(len(held) for held in copies.values())
        return found

    async def _of_plane(self) -> dict[str, Object]:
        label = keys.PROPAGATION_POLICY_LABEL
        return {
            f"{kind.plural}/{each['metadata']['name']}": each
            for kind in _KINDS
            for each in (await self._plane.list(kind, NAMESPACE, label_selector=label)).items
        }

    def _lost(self, sources: dict[str, Object]) -> list[str]:
        """Acknowledged writes of tenants, against what is stored."""
        found = []
        wanted = {n: s for n, s in self._journal.acknowledged.items() if isinstance(s, App | Settings) or s is None}
        for name in wanted.keys() | sources.keys():
            source = sources.get(name)
            if source is not None and "deletionTimestamp" in source["metadata"]:
                found.append(f"{name} is still being deleted")
                continue
            state = state_of(name.partition("/")[0], source) if source is not None else None
            if state != wanted.get(name):
                found.append(f"{name} was acknowledged as {wanted.get(name)} and is {state}")
        return found

    def _wanted(self, name: str, copies: dict[str, dict[str, Object]]) -> list[str]:
        """By the tenant's own words."""
        state: State | None = self._journal.acknowledged.get(name)
        plural, _, bare = name.partition("/")
        tenant = bare.partition("-")[0]
        policy = self._journal.acknowledged[f"{resources.PROPAGATION_POLICIES.plural}/{tenant}"]
        setting = self._journal.acknowledged[f"{resources.OVERRIDE_POLICIES.plural}/{tenant}"]
        assert isinstance(policy, Placement)
        assert isinstance(setting, Setting)
        held = {member: objects[name] for member, objects in copies.items() if name in objects}
        found = []
        if not held.keys() <= set(policy.clusters):
            found.append(f"placed in {policy.clusters}, held by {sorted(held)}")
        divided = policy.mode == "Divide" and isinstance(state, App)
        if not divided and held.keys() != set(policy.clusters):
            found.append(f"wanted in {policy.clusters}, held by {sorted(held)}")
        for member, copy in held.items():
            there = state_of(plural, copy)
            if isinstance(state, App) and isinstance(there, App):
                if there.image != state.image or (not divided and there.replicas != state.replicas):
                    found.append(f"{member} holds {there}, wanted is {state}")
                seconds = setting.seconds if member == setting.cluster else 0
                if copy["spec"].get("minReadySeconds", 0) != seconds:
                    found.append(f"{member} has minReadySeconds {copy['spec'].get('minReadySeconds')} for {seconds}")
            elif there != state:
                found.append(f"{member} holds {there}, wanted is {state}")
        if divided and isinstance(state, App):
            total = sum(copy["spec"]["replicas"] for copy in held.values())
            if total != state.replicas:
                found.append(f"{total} replicas in members, {state.replicas} wanted")
        return found

    async def _rendered(self, federated: list[FederatedObject], copies: dict[str, dict[str, Object]]) -> list[str]:
        listed = await self._plane.list(resources.FEDERATED_TYPE_CONFIGS, into=FederatedTypeConfig)
        configs = {(config.api_version, config.kind): config for config in listed.items}
        found = []
        for each in federated:
            template = each.spec.template
            config = configs[template["apiVersion"], template["kind"]]
            overrides = {"overrides": msgspec.to_builtins(each.spec.overrides)}
            for member in each.placed:
                copy = copies[member][_name(each)]
                patches = placement.overrides_for(overrides, member, config.spec.controllers)
                desired = render(template, patches, copy, each.metadata.annotations, config)
                written = await self._members[member].update(config.resource, desired, NAMESPACE, dry_run=True)
                if _content(written) != _content(copy):
                    found.append(f"{_name(each)} in {member} is not as rendered: {copy} instead of {written}")
        return found


async def _of_member(client: Client) -> dict[str, Object]:
    return {
        f"{kind.plural}/{each['metadata']['name']}": each
        for kind in _KINDS
        for each in (await client.list(kind, NAMESPACE, label_selector=_MANAGED)).items
    }


def _name(federated: FederatedObject) -> str:
    template = federated.spec.template
    return f"{template['kind'].lower()}s/{template['metadata']['name']}"


def _reported(federated: FederatedObject, copies: dict[str, dict[str, Object]]) -> list[str]:
    held = sorted(member for member, objects in copies.items() if _name(federated) in objects)
    found = []
    if held != sorted(federated.placed):
        found.append(f"placed in {list(federated.placed)}, held by {held}")
    states = {entry.cluster: entry.status for entry in federated.status.clusters}
    if states != dict.fromkeys(federated.placed, "OK"):
        found.append(f"the federated object reports {states}")
    if federated.status.synced_generation != federated.metadata.generation:
        found.append("the federated object is not reported as synced")
    return found


def _content(obj: Object) -> Object:
    """What an update could have changed."""
    changing = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in changing}
    return {
        **{key: value for key, value in obj.items() if key not in ("status", "apiVersion", "kind")},
        "metadata": metadata,
    }
