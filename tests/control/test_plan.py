"""`argosy plan` against what then happens: random plans on a federation with simulated members, each one executed.

A plan is made as the command makes it, then carried out as a user would; once the federation is at rest, what became of
every federated object must be the forecast to the letter. The seed is printed; ARGOSY_SEED repeats a run.
"""

import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from argosy.api import keys, resources
from argosy.api.federated import FederatedObject
from argosy.cli.client.manifests import Manifest
from argosy.cli.client.snapshot import read_snapshot
from argosy.cli.client.whatif import Scaled, Scenario, forecast_of
from argosy.cli.commands.apply import applied
from argosy.cli.output.report import replicas_wanted
from argosy.plan.explain.forecast import ObjectChange, object_change
from argosy.plan.explain.snapshot import CORDON, LOSS, Snapshot
from argosy.plan.explain.whatif import changes, pass_over
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline.held import held_of
from argosy.plan.scheduling.evaluation import without_remote_plugins
from tests.harness import candidates
from tests.harness.ground import Ground, World, simulated_ground
from tests.harness.user import DEPLOYMENTS, deployment, federated_cluster

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLANS = 200
#: Deployments and the ConfigMap of a run.
APPS = 6


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    async with simulated_ground(tmp_path_factory.mktemp("plane")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        yield made


def nothing(_: str) -> None:
    """Nobody watches the progress of a test."""


class Planner:
    """Draws plans, and carries them out."""

    def __init__(self, world: World, seed: int):
        self.world = world
        self.random = random.Random(seed)
        self.apps = [f"app-{number}" for number in range(APPS)]

    @property
    def client(self) -> Any:
        return self.world.client

    def draw(self) -> Scenario:
        kinds = [self._scale, self._scale, self._app, self._policy, self._override, self._cluster, self._config]
        return self.random.choice(kinds)()

    def _scale(self) -> Scenario:
        chosen = self.random.sample(self.apps, self.random.randint(1, 2))
        return Scenario(scaled=tuple(Scaled("deploy", name, self.random.randint(0, 5)) for name in chosen))

    def _app(self) -> Scenario:
        policy = self.random.choice(("even", "free", "still", "even", "free", "still", "missing", ""))
        return self._applied(self.app(self.random.choice(self.apps), policy))

    def _policy(self) -> Scenario:
        return self._applied(self.policy(self.random.choice(("even", "free", "still"))))

    def _override(self) -> Scenario:
        return self._applied(self.override())

    def _config(self) -> Scenario:
        return self._applied(self.config())

    def _cluster(self) -> Scenario:
        """Cordon one, or give one other labels and no taint."""
        name = self.random.choice(self.world.names)
        if self.random.random() < 0.4:
            return Scenario(cordoned=(name,))
        labels = {"name": name, "tier": self.random.choice(("gold", "iron"))}
        taint = {"key": "maintenance", "effect": self.random.choice(("NoSchedule", "NoExecute"))}
        spec = {"taints": [taint] if self.random.random() < 0.3 else []}
        metadata = {"name": name, "labels": labels}
        return self._applied(
            {"apiVersion": keys.API_VERSION, "kind": "FederatedCluster", "metadata": metadata, "spec": spec}
        )

    def _applied(self, *objects: dict[str, Any]) -> Scenario:
        return Scenario(applied=tuple(Manifest(each, "test") for each in objects))

    # Objects, each time others.

    def app(self, name: str, policy: str) -> dict[str, Any]:
        override = {keys.OVERRIDE_POLICY_LABEL: "differ"} if self.random.random() < 0.3 else {}
        made = deployment(name, self.random.randint(0, 5), policy, self.world.namespace, **override)
        made["spec"]["template"]["spec"]["containers"][0]["image"] = f"nginx:1.{self.random.randint(27, 29)}"
        return made

    def policy(self, name: str) -> dict[str, Any]:
        """`even` divides by weights, `free` by room, `still` does not reschedule for a changed policy."""
        spec: dict[str, Any] = {"schedulingMode": self.random.choice(("Divide", "Divide", "Duplicate"))}
        if name == "even":
            spec["placement"] = [
                {"cluster": each, "preferences": {"weight": self.random.randint(0, 3)}} for each in self.world.names
            ]
        if self.random.random() < 0.3:
            spec["maxClusters"] = self.random.randint(1, 3)
        if self.random.random() < 0.2:
            spec["clusterSelector"] = {"tier": "gold"}
        if self.random.random() < 0.3:
            spec["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]
        when = {"policyContentChanged": name != "still", "clusterLabelsChanged": self.random.random() < 0.5}
        spec["reschedulePolicy"] = {
            "rescheduleWhen": when,
            "replicaRescheduling": {"avoidDisruption": self.random.random() < 0.7},
        }
        return self._own("PropagationPolicy", name, spec)

    def override(self) -> dict[str, Any]:
        path = self.random.choice(("/spec/minReadySeconds", "/spec/revisionHistoryLimit"))
        patch = {"path": path, "operator": "add", "value": self.random.randint(1, 3)}
        targets = self.random.sample(self.world.names, self.random.randint(1, 2))
        rule = {"targetClusters": {"clusters": targets}, "overriders": {"jsonpatch": [patch]}}
        return self._own("OverridePolicy", "differ", {"overrideRules": [rule]})

    def config(self) -> dict[str, Any]:
        labels = {keys.PROPAGATION_POLICY_LABEL: self.random.choice(("even", "free"))}
        metadata = {"name": "settings", "namespace": self.world.namespace, "labels": labels}
        data = {"level": self.random.choice(("low", "high"))}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def _own(self, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.world.namespace}
        return {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}

    # As a user does it.

    async def carry_out(self, supposed: Scenario) -> None:
        for manifest in supposed.applied:
            await applied(self.client, manifest.object, self.world.namespace)
        for scaled in supposed.scaled:
            body = {"spec": {"replicas": scaled.replicas}}
            await self.client.patch(DEPLOYMENTS, scaled.name, body, self.world.namespace, subresource="scale")
        for name in supposed.cordoned:
            await self.taint(name, {"key": CORDON.key, "effect": CORDON.effect})

    async def taint(self, name: str, taint: dict[str, str]) -> None:
        found = await self.client.get(resources.FEDERATED_CLUSTERS, name)
        taints = [each for each in found["spec"].get("taints") or () if each["key"] != taint["key"]]
        await self.client.patch(resources.FEDERATED_CLUSTERS, name, {"spec": {"taints": [*taints, taint]}})


async def at_rest(world: World, lost: str = "", after: str = "") -> Snapshot:
    """What is there once all other clusters are ready, and the pipeline itself has nothing to add to any object."""

    async def probe() -> Snapshot:
        found = await read_snapshot(world.client, nothing)
        assert all(cluster.ready for name, cluster in found.clusters.items() if name != lost), "a cluster is not ready"
        for key in found.sources:
            existing = found.federated_object(key)
            outcome = without_remote_plugins(pass_over(found, key, existing))
            assert not changes(found, key, existing, outcome), f"{key.text}: {existing} is to be {outcome}"
        return found

    return await world.eventually(probe, f"the federation is at rest {after}".rstrip())


def happened(before: Snapshot, after: Snapshot) -> list[ObjectChange]:
    """The difference between what was there and what is, in the words of a forecast."""
    found = []
    for key in sorted(after.sources):
        was, now = before.federated_object(key), after.federated_object(key)
        change = object_change(
            after.type_configs[key.type],
            after.source(key),
            was,
            now,
            held_before=held_of(annotations_of(was)) if was is not None else None,
            held=held_of(annotations_of(now)) if now is not None else None,
        )
        if change.changes:
            found.append(change)
    return found


def told(changes: Iterable[ObjectChange]) -> dict[str, Any]:
    """By object, in a form whose differences can be read."""
    return {f"{each.kind} {each.name}": msgspec.to_builtins(each) for each in changes}


def foretold_replicas(snapshot: Snapshot, name: str) -> dict[str, int]:
    """What the federated object says its members are to have."""
    return replicas_wanted(msgspec.convert(federated(snapshot, name), FederatedObject))


def is_held(snapshot: Snapshot, name: str) -> bool:
    return held_of(annotations_of(federated(snapshot, name))) is not None


def federated(snapshot: Snapshot, name: str) -> Any:
    key = next(key for key in snapshot.federated if key.name == name and key.type == "deployments.apps")
    return snapshot.federated_object(key)


async def test_random_plans_foretell_what_their_execution_does(world: World) -> None:
    seed = int(os.environ.get("ARGOSY_SEED") or secrets.randbelow(2**32))
    print(f"ARGOSY_SEED={seed}")
    planner = Planner(world, seed)
    for name in ("even", "free", "still"):
        await applied(world.client, planner.policy(name), world.namespace)
    await applied(world.client, planner.override(), world.namespace)
    await applied(world.client, planner.config(), world.namespace)
    for name in planner.apps:
        await applied(
            world.client, planner.app(name, planner.random.choice(("even", "free", "still"))), world.namespace
        )
    before = await at_rest(world)
    start, changing = time.monotonic(), 0
    for number in range(PLANS):
        plan = planner.draw()
        foretold = await forecast_of(world.client, plan, world.namespace, nothing)
        assert foretold.unsettled == ()
        await planner.carry_out(plan)
        after = await at_rest(world, after=f"after plan {number}: {plan}")
        assert told(foretold.objects) == told(happened(before, after)), f"ARGOSY_SEED={seed}, plan {number}: {plan}"
        changing += foretold.changes
        before = after
    print(f"{changing} of {PLANS} plans changed something; {time.monotonic() - start:.1f} s")
    assert changing > PLANS // 4
    for name in planner.apps:
        if not is_held(before, name):  # else it is carried nowhere, whatever its template says by now
            await world.eventually_replicas(foretold_replicas(before, name), name)


#: Rescheduled for whatever there is.
EAGER = {
    "reschedulePolicy": {
        "rescheduleWhen": {"policyContentChanged": True, "clusterLabelsChanged": True, "clusterJoined": True},
        "replicaRescheduling": {"avoidDisruption": True},
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workloads(world: World) -> None:
    """One of each way to be divided, on clusters that repel nothing."""
    for name in world.names:
        await world.client.patch(resources.FEDERATED_CLUSTERS, name, {"spec": {"taints": []}})
    await at_rest(world)
    even = [{"cluster": f"m{number}", "preferences": {"weight": 1}} for number in range(1, 5)]
    await world.policy("weighed", placement=even, **EAGER)
    await world.policy("roomy", **EAGER)
    await world.policy("copied", schedulingMode="Duplicate", **EAGER)
    for number, policy in enumerate(("weighed", "roomy", "copied")):
        await world.deploy(policy, 7 + number, policy)


@pytest.mark.usefixtures("workloads")
async def test_losing_a_cluster_is_what_was_foretold(ground: Ground, world: World) -> None:
    before = await at_rest(world)
    foretold = await forecast_of(world.client, Scenario(lost=("m2",)), world.namespace, nothing)
    ground.candidates["m2"].relay.refuse()
    ground.candidates["m2"].relay.cut()
    await ground.eventually_unready("m2")
    await give_up(world, "m2")
    after = await at_rest(world, "m2")
    assert told(foretold.objects) == told(happened(before, after))
    # What is copied everywhere would leave for nowhere, so it stays.
    assert {each.name for each in foretold.objects} >= {"weighed", "roomy"}
    assert foretold.clusters["m2"].stopped > 0
    ground.candidates["m2"].relay.heal()
    await ground.eventually_ready("m2")
    await world.client.patch(resources.FEDERATED_CLUSTERS, "m2", {"spec": {"taints": []}})
    await at_rest(world)


async def give_up(world: World, name: str) -> None:
    """As failover does, or an operator who will not wait for it."""
    taint = {"key": LOSS.key, "effect": LOSS.effect}
    await world.client.patch(resources.FEDERATED_CLUSTERS, name, {"spec": {"taints": [taint]}})


@pytest.mark.usefixtures("workloads")
async def test_a_cluster_that_joins_gets_what_was_foretold(ground: Ground, world: World) -> None:
    before = await at_rest(world)
    async with candidates.simulated("m4", nodes=3) as candidate, candidate.relay:
        try:
            ground.candidates["m4"] = candidate
            resources_said = {"allocatable": {"cpu": "48", "memory": "192Gi"}}
            newcomer = {**federated_cluster("m4", candidate.url), "status": {"resources": resources_said}}
            supposed = Scenario(joined=(Manifest(newcomer, "test"),))
            foretold = await forecast_of(world.client, supposed, world.namespace, nothing)
            await ground.join("m4")
            await ground.eventually_ready("m4")
            after = await at_rest(world)
            assert told(foretold.objects) == told(happened(before, after))
            assert {each.name for each in foretold.objects} >= {"copied", world.namespace}
            await ground.unjoin("m4")
        finally:
            await candidate.client.close()
            del ground.candidates["m4"]
