"""Tenants: clients of the control plane who make, change and delete objects all through a storm, and know what they did.

Each has a propagation policy and an override policy of its own, so that nobody else changes what its objects are to be.
"""

import asyncio
import random
import time
from collections.abc import Awaitable
from typing import Any, NamedTuple

from argosy.api import keys, resources
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.resource import Resource
from tests.faults.ledger import Ledger
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, deployment

__all__ = ["NAMESPACE", "App", "Journal", "Placement", "Setting", "Settings", "State", "Tenant"]

NAMESPACE = "storm"
_POLICIES, _OVERRIDES = resources.PROPAGATION_POLICIES, resources.OVERRIDE_POLICIES


class App(NamedTuple):
    """What a tenant wants of a Deployment."""

    replicas: int
    image: str


class Settings(NamedTuple):
    """... of a ConfigMap."""

    value: str


class Placement(NamedTuple):
    """... of its propagation policy."""

    mode: str
    clusters: tuple[str, ...]


class Setting(NamedTuple):
    """... of its override policy: Deployments have other minReadySeconds in one cluster."""

    cluster: str
    seconds: int


State = App | Settings | Placement | Setting


class Moment(NamedTuple):
    begun: float
    ended: float
    state: State | None
    acknowledged: bool


class Journal(Ledger[State]):
    """A ledger that also knows when. Names are those of `name_of`."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Moment]] = {}
        self.unanswered = 0

    async def write(self, name: str, state: State | None, request: Awaitable[dict[str, Any]]) -> bool:
        begun = time.time()
        answered = await super().write(name, state, request)
        self.unanswered += not answered
        self.history.setdefault(name, []).append(Moment(begun, time.time(), state, answered))
        return answered

    def meanwhile(self, name: str, since: float, until: float) -> list[State | None]:
        """Every state that may have been the stored one at some time between the two."""
        found: list[State | None] = []
        superseded = float("inf")
        for moment in reversed(self.history.get(name, ())):
            if moment.begun <= until and superseded >= since:
                found.append(moment.state)
            if moment.acknowledged:
                superseded = moment.ended
        return found

    def changed(self, name: str, since: float, until: float) -> bool:
        return any(moment.begun <= until and moment.ended >= since for moment in self.history.get(name, ()))


def name_of(resource: Resource, name: str) -> str:
    return f"{resource.plural}/{name}"


class Tenant:
    def __init__(self, name: str, mode: str, client: Client, members: list[str], journal: Journal, seed: int):
        self.name = name
        self.policy = name_of(_POLICIES, name)
        self.override = name_of(_OVERRIDES, name)
        self._mode = mode
        self._client = client
        self._members = members
        self._journal = journal
        self._chance = random.Random(f"{seed} {name}")
        self._made = 0

    async def prepare(self) -> None:
        placement = Placement(self._mode, tuple(self._members))
        body = self._manifest(_POLICIES, _placement_spec(placement))
        assert await self._journal.write(self.policy, placement, self._client.create(_POLICIES, body))
        setting = Setting(self._members[0], 1)
        body = self._manifest(_OVERRIDES, _override_spec(setting))
        assert await self._journal.write(self.override, setting, self._client.create(_OVERRIDES, body))

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self._step()
            await self.know()
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))

    async def know(self) -> None:
        """What became of writes that were not answered."""
        own = [name for name in self._journal.open if self._is_own(name)]
        for name in own:
            while True:
                try:
                    found = await self._read(name)
                except (TransportError, ApiError):
                    await asyncio.sleep(0.2)
                    continue
                self._journal.settle(name, found)
                break

    def _is_own(self, name: str) -> bool:
        own = name.partition("/")[2]
        return own == self.name or own.startswith(self.name + "-")

    async def _step(self) -> None:
        chance, known = self._chance, self._journal.acknowledged
        apps = [n for n, s in known.items() if isinstance(s, App) and self._is_own(n)]
        maps = [n for n, s in known.items() if isinstance(s, Settings) and self._is_own(n)]
        steps = {self._create: 6 if len(apps) + len(maps) < 4 else 1, self._place: 1, self._set: 1}
        if len(apps) + len(maps) >= 10:
            del steps[self._create]
        if apps:
            steps |= {lambda: self._change(chance.choice(apps)): 5}
        if maps:
            steps |= {lambda: self._fill(chance.choice(maps)): 2}
        if apps or maps:
            steps |= {lambda: self._delete(chance.choice(apps + maps)): 1}
        (step,) = chance.choices(list(steps), list(steps.values()))
        await step()

    async def _create(self) -> None:
        self._made += 1
        name = f"{self.name}-{self._made}"
        if self._chance.random() < 0.3:
            labels = {keys.PROPAGATION_POLICY_LABEL: self.name}
            metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
            settings = Settings(str(self._made))
            manifest = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": {"value": settings.value},
            }
            await self._journal.write(name_of(CONFIGMAPS, name), settings, self._client.create(CONFIGMAPS, manifest))
            return
        app = App(self._chance.randint(1, 12), "nginx:1.29")
        manifest = deployment(name, app.replicas, self.name, NAMESPACE, **{keys.OVERRIDE_POLICY_LABEL: self.name})
        await self._journal.write(name_of(DEPLOYMENTS, name), app, self._client.create(DEPLOYMENTS, manifest))

    async def _change(self, name: str) -> None:
        old = self._journal.acknowledged[name]
        assert isinstance(old, App)
        # Never the same again: a write that changes nothing is answered with the version that is there.
        replicas = self._chance.choice([n for n in range(13) if n != old.replicas])
        image = f"nginx:1.{self._chance.randint(29, 40)}" if self._chance.random() < 0.5 else old.image
        container = {"name": "main", "image": image}
        body = {"spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}}}
        request = self._client.patch(DEPLOYMENTS, _bare(name), body, NAMESPACE, kind=Patch.STRATEGIC)
        await self._journal.write(name, App(replicas, image), request)

    async def _fill(self, name: str) -> None:
        settings = Settings(f"{self._chance.randrange(10**9)}")
        request = self._client.patch(CONFIGMAPS, _bare(name), {"data": {"value": settings.value}}, NAMESPACE)
        await self._journal.write(name, settings, request)

    async def _delete(self, name: str) -> None:
        resource = _RESOURCES[name.partition("/")[0]]
        await self._journal.write(name, None, self._client.delete(resource, _bare(name), NAMESPACE))

    async def _place(self) -> None:
        old = self._journal.acknowledged[self.policy]
        count = self._chance.randint(1, len(self._members))
        placement = Placement(self._mode, tuple(sorted(self._chance.sample(self._members, count))))
        if placement == old:
            return
        request = self._client.patch(_POLICIES, self.name, {"spec": _placement_spec(placement)}, NAMESPACE)
        await self._journal.write(self.policy, placement, request)

    async def _set(self) -> None:
        setting = Setting(self._chance.choice(self._members), self._chance.randint(1, 50))
        if setting == self._journal.acknowledged[self.override]:
            return
        request = self._client.patch(_OVERRIDES, self.name, {"spec": _override_spec(setting)}, NAMESPACE)
        await self._journal.write(self.override, setting, request)

    async def _read(self, name: str) -> State | None:
        plural, _, bare = name.partition("/")
        try:
            found = await self._client.get(_RESOURCES[plural], bare, NAMESPACE)
        except NotFound:
            return None
        return None if "deletionTimestamp" in found["metadata"] else state_of(plural, found)

    def _manifest(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": self.name, "namespace": NAMESPACE}
        return {"apiVersion": keys.API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": spec}


_RESOURCES = {resource.plural: resource for resource in (DEPLOYMENTS, CONFIGMAPS, _POLICIES, _OVERRIDES)}


def state_of(plural: str, found: dict[str, Any]) -> State:
    """What a stored object says."""
    if plural == DEPLOYMENTS.plural:
        return App(found["spec"]["replicas"], found["spec"]["template"]["spec"]["containers"][0]["image"])
    if plural == CONFIGMAPS.plural:
        return Settings(found["data"]["value"])
    if plural == _POLICIES.plural:
        spec = found["spec"]
        return Placement(spec["schedulingMode"], tuple(sorted(each["cluster"] for each in spec["placement"])))
    (rule,) = found["spec"]["overrideRules"]
    return Setting(rule["targetClusters"]["clusters"][0], rule["overriders"]["jsonpatch"][0]["value"])


def _bare(name: str) -> str:
    return name.partition("/")[2]


def _placement_spec(placement: Placement) -> dict[str, Any]:
    return {
        "schedulingMode": placement.mode,
        "placement": [{"cluster": name, "preferences": {"weight": 1}} for name in placement.clusters],
    }


def _override_spec(setting: Setting) -> dict[str, Any]:
    patch = {"operator": "add", "path": "/spec/minReadySeconds", "value": setting.seconds}
    target = {"clusters": [setting.cluster]}
    return {"overrideRules": [{"targetClusters": target, "overriders": {"jsonpatch": [patch]}}]}
