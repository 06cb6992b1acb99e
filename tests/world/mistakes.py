"""Mistakes: how a user makes each of them, and takes it back."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import orjson

from argosy.api import keys, resources
from argosy.kube import timestamps
from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists, Forbidden, NotFound
from argosy.kube.resource import Resource
from argosy.plan.brake.cause import Cause
from argosy.plan.brake.orders import Order, Orders
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from tests.world import steps
from tests.world.mistaken import FLEET
from tests.world.script import NAMESPACES as TEAMS
from tests.world.world import World

__all__ = ["Mistakes"]

Object = dict[str, Any]
Work = Callable[[], Coroutine[Any, Any, None]]
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_KINDS = (DEPLOYMENTS, CONFIGMAPS)
_POLICIES = ("even", "copies")
_TAINT = [{"key": "user", "effect": "NoExecute"}]
_AGAIN = 2.0


class Mistakes:
    def __init__(self, world: World, until_done: Callable[[Work], Awaitable[None]]):
        """`until_done` is a user who does not give up."""
        self._world = world
        self._until_done = until_done
        self.actions = {steps.Mistake: self._mistake, steps.Label: self._label}

    async def _label(self, step: steps.Label) -> None:
        await self._until_done(lambda: self._cluster(step.cluster, labels={FLEET[0]: step.value}))

    async def _mistake(self, step: steps.Mistake) -> None:
        makes = {
            "labels vanish": self._labels_vanish,
            "another policy": self._another_policy,
            "policy narrowed": self._policy_narrowed,
            "policy of nowhere": self._policy_of_nowhere,
            "profile missing": self._profile_missing,
            "cluster labels wiped": self._cluster_labels_wiped,
            "taints in a loop": self._taints,
            "sources pruned": self._prune,
            "definitions deleted": self._definitions_deleted,
            "type config deleted": self._type_config_deleted,
            "clusters deleted": self._clusters_deleted,
        }
        await makes[step.what](step)

    async def _each(self, works: Iterable[Work], pause: float) -> None:
        """One after the other, or all at once."""
        if not pause:
            await asyncio.gather(*(self._until_done(work) for work in works))
            return
        for work in works:
            await self._until_done(work)
            await asyncio.sleep(pause)

    # Objects.

    async def _sources(self) -> list[tuple[Resource, Object]]:
        """All that name a policy."""
        found: list[tuple[Resource, Object]] = []

        async def read() -> None:
            found.clear()
            for kind in _KINDS:
                for namespace in TEAMS:
                    found.extend((kind, each) for each in (await self._world.user.list(kind, namespace)).items)

        await self._until_done(read)
        return [
            (kind, each)
            for kind, each in found
            if keys.PROPAGATION_POLICY_LABEL in (each["metadata"].get("labels") or {})
        ]

    async def _labels_vanish(self, step: steps.Mistake) -> None:
        await self._relabelled(step, None)

    async def _another_policy(self, step: steps.Mistake) -> None:
        elsewhere = {"schedulingMode": "Duplicate", "placement": [{"cluster": "m1"}]}
        for namespace in TEAMS:
            await self._until_done(lambda namespace=namespace: self._policy(namespace, "elsewhere", elsewhere))
        await self._relabelled(step, "elsewhere")

    async def _relabelled(self, step: steps.Mistake, label: str | None) -> None:
        sources = await self._sources()
        await self._each((self._labels(kind, each, label) for kind, each in sources), step.pause)
        await asyncio.sleep(step.seconds)
        was = keys.PROPAGATION_POLICY_LABEL
        await self._each((self._labels(kind, each, each["metadata"]["labels"][was]) for kind, each in sources), 0.0)

    def _labels(self, kind: Resource, source: Object, label: str | None) -> Work:
        async def work() -> None:
            metadata, change = source["metadata"], {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: label}}}
            await self._world.user.patch(kind, metadata["name"], change, metadata["namespace"], kind=Patch.MERGE)

        return work

    async def _prune(self, step: steps.Mistake) -> None:
        """Undone by a rescue: what was held keeps running, and is taken over when it is applied again."""
        sources = await self._sources()
        await self._each((self._deletion(kind, each) for kind, each in sources), step.pause)
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._order(Orders(rescued=(self._given(Cause.SOURCES_DELETED),))))
        await self._each((self._applied_again(kind, each) for kind, each in sources), 0.0)

    def _deletion(self, kind: Resource, source: Object) -> Work:
        async def work() -> None:
            with suppress(NotFound):
                await self._world.user.delete(kind, source["metadata"]["name"], source["metadata"]["namespace"])

        return work

    def _applied_again(self, kind: Resource, source: Object) -> Work:
        metadata = {key: source["metadata"][key] for key in ("name", "namespace", "labels")}
        manifest = {key: value for key, value in source.items() if key != "status"} | {"metadata": metadata}

        async def work() -> None:
            while True:
                with suppress(AlreadyExists):
                    await self._world.user.create(kind, manifest)
                    return
                found = await self._world.user.get(kind, metadata["name"], metadata["namespace"])
                if found["metadata"]["uid"] != source["metadata"]["uid"]:
                    return
                await asyncio.sleep(_AGAIN)

        return work

    # Policies.

    async def _policy_narrowed(self, step: steps.Mistake) -> None:
        await self._policies(step, {"placement": [{"cluster": "m1"}]})

    async def _policy_of_nowhere(self, step: steps.Mistake) -> None:
        await self._policies(step, {"clusterSelector": {"no": "such"}})

    async def _profile_missing(self, step: steps.Mistake) -> None:
        await self._policies(step, {"schedulingProfile": "missing"})

    async def _policies(self, step: steps.Mistake, change: Object) -> None:
        before: dict[tuple[str, str], Object] = {}

        async def read() -> None:
            for namespace in TEAMS:
                for name in _POLICIES:
                    found = await self._world.user.get(resources.PROPAGATION_POLICIES, name, namespace)
                    before[namespace, name] = found["spec"]

        def written(namespace: str, name: str, spec: Object) -> Work:
            return lambda: self._policy(namespace, name, spec)

        await self._until_done(read)
        await self._each((written(*key, {**spec, **change}) for key, spec in before.items()), step.pause)
        await asyncio.sleep(step.seconds)
        await self._each((written(*key, spec) for key, spec in before.items()), 0.0)

    async def _policy(self, namespace: str, name: str, spec: Object) -> None:
        user, policies = self._world.user, resources.PROPAGATION_POLICIES
        try:
            found = await user.get(policies, name, namespace)
        except NotFound:
            metadata = {"name": name, "namespace": namespace}
            manifest = {"apiVersion": keys.API_VERSION, "kind": policies.kind, "metadata": metadata, "spec": spec}
            with suppress(AlreadyExists):
                await user.create(policies, manifest)
        else:
            await user.update(policies, {**found, "spec": spec})

    # The federation itself.

    async def _cluster(self, name: str, *, labels: Object | None = None, taints: list[Object] | None = None) -> None:
        change = {"metadata": {"labels": labels}} if labels is not None else {"spec": {"taints": taints}}
        await self._world.user.patch(resources.FEDERATED_CLUSTERS, name, change, kind=Patch.MERGE)

    async def _cluster_labels_wiped(self, step: steps.Mistake) -> None:
        def label(name: str, value: str | None) -> Work:
            return lambda: self._cluster(name, labels={FLEET[0]: value})

        await self._each((label(name, None) for name in step.clusters), step.pause)
        await asyncio.sleep(step.seconds)
        await self._each((label(name, FLEET[1]) for name in step.clusters), 0.0)

    async def _taints(self, step: steps.Mistake) -> None:
        def taint(name: str, taints: list[Object] | None) -> Work:
            return lambda: self._cluster(name, taints=taints)

        await self._each((taint(name, _TAINT) for name in step.clusters), step.pause)
        await asyncio.sleep(step.seconds)
        await self._each((taint(name, None) for name in step.clusters), 0.0)

    async def _definitions_deleted(self, step: steps.Mistake) -> None:
        """They are protected, and so is the system namespace."""

        def deletion(kind: Resource, name: str) -> Work:
            async def work() -> None:
                with suppress(Forbidden):
                    await self._world.user.delete(kind, name)
                    raise AssertionError(f"{name} was deleted")

            return work

        named = [f"{each}.{keys.GROUP}" for each in ("federatedobjects", "federatedclusters", "propagationpolicies")]
        works = [deletion(_DEFINITIONS, name) for name in named] + [deletion(NAMESPACES, keys.SYSTEM_NAMESPACE)]
        await self._each(works, step.pause)
        await asyncio.sleep(step.seconds)

    async def _type_config_deleted(self, step: steps.Mistake) -> None:
        configs, name = resources.FEDERATED_TYPE_CONFIGS, "configmaps"
        before: list[Object] = []

        async def read() -> None:
            before.append(await self._world.user.get(configs, name))

        async def delete() -> None:
            with suppress(NotFound):
                await self._world.user.delete(configs, name)

        async def create() -> None:
            metadata = {key: before[0]["metadata"].get(key) for key in ("name", "labels", "annotations")}
            while True:
                with suppress(AlreadyExists):
                    await self._world.user.create(configs, {**before[0], "metadata": metadata})
                    return
                found = await self._world.user.get(configs, name)
                if "deletionTimestamp" not in found["metadata"]:
                    return
                await asyncio.sleep(_AGAIN)

        await self._until_done(read)
        await self._until_done(delete)
        await asyncio.sleep(step.seconds)
        await self._until_done(create)

    async def _clusters_deleted(self, step: steps.Mistake) -> None:
        """It cannot be taken back: in the end they leave, and join again. What ran there goes on running."""

        def deletion(name: str) -> Work:
            async def work() -> None:
                with suppress(NotFound):
                    await self._world.user.delete(resources.FEDERATED_CLUSTERS, name)

            return work

        await self._each((deletion(name) for name in self._world.members), step.pause)
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._order(Orders(confirmed=(self._given(Cause.LEAVING),))))
        for name in self._world.members:
            await self._until_done(lambda name=name: self._until_left(name))
        for name in self._world.members:
            await self._until_done(lambda name=name: self._joined(name))

    async def _until_left(self, name: str) -> None:
        while True:
            try:
                await self._world.user.get(resources.FEDERATED_CLUSTERS, name)
            except NotFound:
                return
            await asyncio.sleep(_AGAIN)

    async def _joined(self, name: str) -> None:
        with suppress(AlreadyExists):
            await self._world.join(name)
        await self._cluster(name, labels={FLEET[0]: FLEET[1]})

    # Orders.

    def _given(self, what: str) -> Order:
        return Order(what, timestamps.now(), "user")

    async def _order(self, orders: Orders) -> None:
        text = orjson.dumps(msgspec.to_builtins(orders)).decode()
        body = {"metadata": {"annotations": {keys.BRAKE_ORDERS: text}}}
        await self._world.user.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body, kind=Patch.MERGE)
