"""Reading the fleet's state for `argosy status fleet`."""

from argosy.api import keys, resources
from argosy.api.conditions import DRIFTED
from argosy.api.types import FederatedCluster
from argosy.cli.client import brake
from argosy.cli.client.attendance import read_unattended
from argosy.cli.output.fleet import FleetReport, ObjectState, report
from argosy.control.caches.views import FederatedView
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from argosy.plan.brake.held_removal import held_removal_of
from argosy.plan.brake.orders import orders_of
from argosy.plan.pipeline.held import held_of

__all__ = ["read_fleet"]

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def read_fleet(client: Client) -> FleetReport:
    clusters = (await client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster)).items
    system = await client.get(_NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial)
    orders = orders_of(system.metadata.annotations)
    objects = []
    for namespaced in (True, False):
        found = await client.list(resources.federated_objects(namespaced), into=FederatedView)
        objects += [_state(each) for each in found.items]
    return report(
        clusters,
        sorted(objects, key=lambda each: each.name),
        await brake.held_objects(client),
        paused=system.metadata.annotations.get(keys.PAUSED) == "true",
        off=orders.off if orders.is_off(clock.now()) else None,
        shards=[each.text for each in await read_unattended(client)],
    )


def _state(view: FederatedView) -> ObjectState:
    metadata = view.metadata
    owner = next((each for each in metadata.owner_references if each.controller), None)
    name = f"{owner.kind.lower()}/{owner.name}" if owner is not None else metadata.name
    held = held_of(metadata.annotations)
    propagated = any(each.type == "Propagated" and each.status == "True" for each in view.status.conditions)
    waits = held_removal_of(metadata.annotations) is not None
    return ObjectState(
        f"{name} in {metadata.namespace}" if metadata.namespace else name,
        view.placed,
        {each.cluster: each.status for each in view.status.clusters},
        propagated or waits,
        held.message if held is not None and not waits else "",
        any(each.type == DRIFTED and each.status == "True" for each in view.status.conditions),
    )
