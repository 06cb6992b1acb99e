"""What if: a supposed change, as a user would make it, carried out on a copy of what is there; and what would follow.

Files go through the server's dry run, so that they are checked and completed as they would be; the rest happens in memory.
Nothing is written.
"""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from argosy.api import keys, resources
from argosy.api.policies import PropagationPolicy
from argosy.cli.client.kinds import of_object, resolve
from argosy.cli.client.manifests import Manifest
from argosy.cli.client.plugin_session import PluginSession
from argosy.cli.client.snapshot import read_snapshot
from argosy.cli.commands.apply import applied
from argosy.cli.output.failures import Failure
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, NotFound, Unauthorized
from argosy.plan.explain.forecast import Forecast
from argosy.plan.explain.snapshot import Irrelevant, ObjectKey, ScenarioError, Snapshot
from argosy.plan.explain.whatif import WhatIf

__all__ = ["Scaled", "Scenario", "forecast_of"]


class Scaled(NamedTuple):
    kind: str
    name: str
    replicas: int


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is to change, in the order it does."""

    applied: tuple[Manifest, ...] = ()
    scaled: tuple[Scaled, ...] = ()
    #: FederatedClusters.
    joined: tuple[Manifest, ...] = ()
    cordoned: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    #: Not a change: the controllers count Katalyst's resources.
    katalyst: bool = False


async def forecast_of(client: Client, supposed: Scenario, namespace: str, tell: Callable[[str], None]) -> Forecast:
    """`namespace` is for objects that name none; `tell` hears how far it is. Raises Failure or ApiError."""
    today = await read_snapshot(client, tell, katalyst=supposed.katalyst, supposed=_policies(supposed.applied))
    try:
        then, notes = await _applied(client, today, supposed.applied, namespace)
        for scaled in supposed.scaled:
            then = then.with_replicas(await _key(client, then, scaled, namespace), scaled.replicas)
        for newcomer in supposed.joined:
            then = _joined(then, newcomer)
        for name in supposed.cordoned:
            then = then.with_cordoned(name)
        for name in supposed.lost:
            then = then.with_lost(name)
    except ScenarioError as error:
        raise Failure(str(error), "nothing was looked at; correct this and try again") from None
    found = await _answer(today, then, tell)
    return msgspec.structs.replace(found, notes=(*notes, *found.notes))


def _policies(manifests: tuple[Manifest, ...]) -> list[PropagationPolicy]:
    """As far as they are readable: a server's dry run says what is wrong with others."""
    found = []
    for each in (manifest.object for manifest in manifests):
        if each["apiVersion"] == keys.API_VERSION and each["kind"].endswith("PropagationPolicy"):
            with contextlib.suppress(msgspec.ValidationError):
                found.append(msgspec.convert(each, PropagationPolicy))
    return found


async def _key(client: Client, snapshot: Snapshot, scaled: Scaled, namespace: str) -> ObjectKey:
    kind, name = scaled.kind, scaled.name
    resource = await resolve(client, kind)
    config = snapshot.type_of(resource.api_version, resource.kind)
    if config is None:
        raise Failure(f"{resource.kind} is not federated: no FederatedTypeConfig names it")
    key = ObjectKey(config.name, namespace if resource.namespaced else "", name)
    if key not in snapshot.sources:
        await client.get(resource, name, key.namespace or None)  # raises where there is none
        raise Failure(
            f"{kind}/{name} is not propagated: no policy claims it", f"`argosy status {kind}/{name}` says more"
        )
    return key


def _joined(snapshot: Snapshot, newcomer: Manifest) -> Snapshot:
    obj = newcomer.object
    if (obj["apiVersion"], obj["kind"]) != (keys.API_VERSION, "FederatedCluster"):
        raise Failure(f"{newcomer.place}: this is no FederatedCluster of {keys.API_VERSION}", "--add-cluster takes one")
    return snapshot.with_new_cluster(obj)


async def _applied(
    client: Client, snapshot: Snapshot, manifests: tuple[Manifest, ...], namespace: str
) -> tuple[Snapshot, list[str]]:
    """The snapshot with the files applied, and what there is to say about them."""
    notes: list[str] = []
    made: set[str] = set()
    for manifest in manifests:
        try:
            obj = await _dry_run(client, manifest.object, namespace, made)
            snapshot = snapshot.with_object(obj)
        except Irrelevant as irrelevant:
            notes.append(f"{manifest.place}: {irrelevant}")
        except ScenarioError as error:
            raise Failure(f"{manifest.place}: {error}") from None
        except Unauthorized:
            raise
        except ApiError as error:
            raise Failure(f"{manifest.place}: {error.message}", "nothing was changed") from None
        except Failure as failure:
            raise Failure(f"{manifest.place}: {failure.message}", failure.hint) from None
    return snapshot, notes


async def _dry_run(client: Client, obj: dict[str, Any], default: str, made: set[str]) -> dict[str, Any]:
    """The object as it would be stored. `made` are the namespaces that earlier files would make."""
    metadata = obj["metadata"]
    if (obj["apiVersion"], obj["kind"]) == (keys.API_VERSION, "FederatedCluster"):
        try:
            await client.get(resources.FEDERATED_CLUSTERS, metadata["name"])
        except NotFound:
            return obj  # one that joins: what is said of its status counts, and a server would drop it
    if (obj["apiVersion"], obj["kind"]) == ("v1", "Namespace"):
        made.add(metadata["name"])
    resource = await of_object(client, obj["apiVersion"], obj["kind"])
    namespace = metadata.get("namespace") or default
    try:
        _, stored = await applied(client, obj, default, dry_run=True)
    except NotFound:
        if not resource.namespaced or namespace not in made:
            raise
        # Checked in a namespace that is there, under a name that is not.
        stand_in = {**metadata, "namespace": "default", "name": f"{metadata['name'][:40]}-argosy-plan"}
        _, stored = await applied(client, {**obj, "metadata": stand_in}, default, dry_run=True)
        stored["metadata"] |= {"name": metadata["name"], "namespace": namespace}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **stored}


async def _answer(today: Snapshot, supposed: Snapshot, tell: Callable[[str], None]) -> Forecast:
    elsewhere = PluginSession(supposed)
    try:
        await elsewhere.open()
        question = WhatIf(elsewhere.known_to(today), elsewhere.known_to(supposed))
        for number, key in enumerate(question.keys, 1):
            await elsewhere.run(question.steps(key))
            tell(f"deciding: {number} of {len(question.keys)} objects")
        found = question.forecast()
        return msgspec.structs.replace(found, notes=(*found.notes, *elsewhere.notes))
    finally:
        await elsewhere.close()
