"""The player: carries out a script in a world, each step at its time, and in the end makes everything well again."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from argosy.kube.resource import Resource
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, deployment
from tests.world import steps
from tests.world.faults import Faults
from tests.world.mistakes import Mistakes
from tests.world.script import DIFFERING, namespace_of
from tests.world.script import NAMESPACES as TEAMS
from tests.world.steps import Script, Step
from tests.world.world import World

__all__ = ["Player"]

#: What a user gets to see when something is down.
TROUBLE = (ApiError, TransportError)
_AGAIN = 2.0
#: Seconds after which everything that was on its way has arrived.
_ARRIVED = 1.0


class Player:
    def __init__(self, world: World):
        self._world = world
        self._faults = Faults(world)
        self._actions: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            steps.Deploy: self._deploy,
            steps.Configure: self._configure,
            steps.Provide: self._provide,
            steps.Scale: self._scale,
            steps.Roll: self._roll,
            steps.Delete: self._delete,
            steps.Follow: self._follow,
            steps.Release: self._release,
            steps.Rule: self._rule,
            steps.Override: self._override,
            steps.Differ: self._differ,
            steps.Taint: self._taint,
            steps.Tamper: self._tamper,
            steps.Replace: self._replace,
            steps.Pause: self._pause,
            steps.Leave: self._leave,
            **self._faults.actions,
            **Mistakes(world, self._until_done).actions,
        }

    async def play(self, script: Script) -> None:
        """To the last step, and then until everything is well: what still runs then runs as it should."""
        began = self._world.loop.time()
        for name in TEAMS:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with suppress(AlreadyExists):
                await self._world.user.create(NAMESPACES, manifest)
        tasks = [asyncio.create_task(self._at(began + step.at, step)) for step in script]
        await asyncio.gather(*tasks)
        await self._faults.heal()
        await asyncio.sleep(_ARRIVED)
        await self._clean_up(script)

    async def _clean_up(self, script: Script) -> None:
        """What a user had given up on may have been done later."""
        for step in script:
            match step:
                case steps.Pause():
                    await self._until_done(lambda step=step: self._annotate(step, None))
                case steps.Leave():
                    await self._until_done(lambda step=step: self._until_joined(step.cluster))
                case steps.Replace():
                    await self._until_done(lambda step=step: self._take_away(step))

    async def _at(self, when: float, step: Step) -> None:
        await asyncio.sleep(when - self._world.loop.time())
        with suppress(*TROUBLE):
            await self._actions[type(step)](step)

    # Users.

    async def _deploy(self, step: steps.Deploy) -> None:
        manifest = deployment(step.name, step.replicas, step.policy, namespace_of(step.name))
        if step.cpu:
            manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": step.cpu}}
        if step.needs:
            envs = [{"configMapRef": {"name": step.needs}}]
            manifest["spec"]["template"]["spec"]["containers"][0]["envFrom"] = envs
        await self._world.user.create(DEPLOYMENTS, manifest)

    async def _provide(self, step: steps.Provide) -> None:
        """By a user who does not give up: without it nothing that needs it runs."""
        await self._until_done(lambda: self._provided(step))

    async def _provided(self, step: steps.Provide) -> None:
        user, namespace = self._world.user, namespace_of(step.name)
        metadata = {"name": step.name, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": step.value}}
        try:
            await user.patch(CONFIGMAPS, step.name, {"data": body["data"]}, namespace, kind=Patch.MERGE)
        except NotFound:
            await user.create(CONFIGMAPS, body)

    async def _configure(self, step: steps.Configure) -> None:
        labels = {keys.PROPAGATION_POLICY_LABEL: step.policy}
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": step.name, "namespace": namespace_of(step.name), "labels": labels},
            "data": {"value": step.value},
        }
        try:
            change = {"data": {"value": step.value}, "metadata": {"labels": labels}}
            await self._world.user.patch(CONFIGMAPS, step.name, change, namespace_of(step.name), kind=Patch.MERGE)
        except NotFound:
            await self._world.user.create(CONFIGMAPS, manifest)

    async def _scale(self, step: steps.Scale) -> None:
        await self._world.user.patch(
            DEPLOYMENTS, step.name, {"spec": {"replicas": step.replicas}}, namespace_of(step.name)
        )

    async def _roll(self, step: steps.Roll) -> None:
        containers = [{"name": "main", "image": step.image}]
        change = {"spec": {"template": {"spec": {"containers": containers}}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, namespace_of(step.name), kind=Patch.STRATEGIC)

    async def _delete(self, step: steps.Delete) -> None:
        await self._world.user.delete(
            DEPLOYMENTS if step.kind == "Deployment" else CONFIGMAPS, step.name, namespace_of(step.name)
        )

    async def _follow(self, step: steps.Follow) -> None:
        change = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: step.policy}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, namespace_of(step.name), kind=Patch.MERGE)

    async def _release(self, step: steps.Release) -> None:
        change = {"metadata": {"annotations": {keys.NO_SELECTION: "true" if step.released else None}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, namespace_of(step.name), kind=Patch.MERGE)

    async def _rule(self, step: steps.Rule) -> None:
        """In all namespaces."""
        await asyncio.gather(*(self._rule_in(namespace, step) for namespace in TEAMS))

    async def _rule_in(self, namespace: str, step: steps.Rule) -> None:
        await self._policy(resources.PROPAGATION_POLICIES, step.policy, namespace, step.spec)

    async def _override(self, step: steps.Override) -> None:
        """In all namespaces."""
        spec = None if step.rules is None else {"overrideRules": step.rules}
        await asyncio.gather(
            *(self._policy(resources.OVERRIDE_POLICIES, DIFFERING, namespace, spec) for namespace in TEAMS)
        )

    async def _policy(self, policies: Resource, name: str, namespace: str, spec: dict[str, Any] | None) -> None:
        user = self._world.user
        if spec is None:
            await user.delete(policies, name, namespace)
            return
        manifest = {
            "apiVersion": keys.API_VERSION,
            "kind": policies.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        try:
            found = await user.get(policies, name, namespace)
        except NotFound:
            await user.create(policies, manifest)
        else:
            await user.update(policies, {**found, "spec": spec})

    async def _differ(self, step: steps.Differ) -> None:
        change = {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: DIFFERING if step.differs else None}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, namespace_of(step.name), kind=Patch.MERGE)

    async def _taint(self, step: steps.Taint) -> None:
        taints = [{"key": "user", "effect": step.effect}] if step.effect else None
        change = {"spec": {"taints": taints}}
        await self._world.user.patch(resources.FEDERATED_CLUSTERS, step.cluster, change, kind=Patch.MERGE)

    async def _tamper(self, step: steps.Tamper) -> None:
        client = self._world.administrator(step.member)
        if step.replicas is None:
            await client.delete(DEPLOYMENTS, step.name, namespace_of(step.name))
        else:
            await client.patch(DEPLOYMENTS, step.name, {"spec": {"replicas": step.replicas}}, namespace_of(step.name))

    async def _replace(self, step: steps.Replace) -> None:
        client = self._world.administrator(step.member)
        with suppress(NotFound):
            await client.delete(DEPLOYMENTS, step.name, namespace_of(step.name))
        await client.create(DEPLOYMENTS, deployment(step.name, 1, "", namespace_of(step.name)))
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._take_away(step))

    async def _take_away(self, step: steps.Replace) -> None:
        """Unless it is one of ours by now."""
        client = self._world.administrator(step.member)
        with suppress(NotFound):
            found = await client.get(DEPLOYMENTS, step.name, namespace_of(step.name))
            if (found["metadata"].get("labels") or {}).get(keys.MANAGED_LABEL) != "true":
                await client.delete(DEPLOYMENTS, step.name, namespace_of(step.name))

    async def _pause(self, step: steps.Pause) -> None:
        with suppress(*TROUBLE):
            await self._annotate(step, "true")
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._annotate(step, None))

    async def _annotate(self, step: steps.Pause, value: str | None) -> None:
        change = {"metadata": {"annotations": {keys.PAUSED: value}}}
        user = self._world.user
        with suppress(NotFound):
            if step.what == "fleet":
                await user.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, change, kind=Patch.MERGE)
            elif step.what == "cluster":
                await user.patch(resources.FEDERATED_CLUSTERS, step.name, change, kind=Patch.MERGE)
            else:
                await user.patch(DEPLOYMENTS, step.name, change, namespace_of(step.name), kind=Patch.MERGE)

    async def _leave(self, step: steps.Leave) -> None:
        with suppress(*TROUBLE):
            await self._world.user.delete(resources.FEDERATED_CLUSTERS, step.cluster)
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._until_joined(step.cluster))

    async def _until_joined(self, cluster: str) -> None:
        """As a user sees it: it is there, and not about to leave."""
        user = self._world.user
        while True:
            with suppress(AlreadyExists):
                return await self._world.join(cluster)
            with suppress(NotFound):
                found = await user.get(resources.FEDERATED_CLUSTERS, cluster)
                if "deletionTimestamp" not in found["metadata"]:
                    return None
            await asyncio.sleep(_AGAIN)

    async def _until_done(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A user who does not give up."""
        while True:
            try:
                return await work()
            except TROUBLE:
                await asyncio.sleep(_AGAIN)
