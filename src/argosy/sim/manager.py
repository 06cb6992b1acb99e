"""ControllerManager: the scheduler, kubelets and controllers of one simulated cluster, on its API server.

One observer of the server's changes keeps the cluster's records current and then notifies the controllers. Each controller
runs a loop of its own, which ends with the server.
"""

from collections.abc import Sequence

from argosy.server.trusted import StoreEvent
from argosy.sim.addresses import Addresses
from argosy.sim.claims import Claims
from argosy.sim.cluster import NODES, PODS, Cluster
from argosy.sim.controller import Controller
from argosy.sim.cronjobs import CronJobs
from argosy.sim.daemonsets import DaemonSets
from argosy.sim.deployments import Deployments
from argosy.sim.disruptions import Disruptions
from argosy.sim.jobs import Jobs
from argosy.sim.kubelet import Kubelet
from argosy.sim.nodelife import NodeLife
from argosy.sim.quotas import Quotas
from argosy.sim.replicasets import ReplicaSets, ReplicationControllers
from argosy.sim.scheduler import Scheduler
from argosy.sim.spec import NodeSpec
from argosy.sim.statefulsets import StatefulSets

__all__ = ["ControllerManager"]


class ControllerManager:
    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        kubelet = Kubelet(cluster)
        self.nodes = NodeLife(cluster, kubelet)
        self._claims = Claims(cluster)
        self.controllers: tuple[Controller, ...] = (
            Scheduler(cluster),
            kubelet,
            self.nodes,
            ReplicaSets(cluster),
            ReplicationControllers(cluster),
            Deployments(cluster),
            StatefulSets(cluster),
            DaemonSets(cluster),
            Jobs(cluster),
            CronJobs(cluster),
            Disruptions(cluster),
            Quotas(cluster),
            self._claims,
            Addresses(cluster),
        )

    async def open(self, nodes: Sequence[NodeSpec]) -> None:
        """Start, with these nodes and with what every cluster has."""
        self.start()
        await self._claims.open()
        await self.nodes.register(list(nodes))

    def start(self) -> None:
        """Process everything that is stored, then follow the changes until the server stops."""
        access = self._cluster.access
        # Nodes first: pods claim resources on them.
        access.follow(self._observe, NODES.rstrip("/"), PODS.rstrip("/"))
        for controller in self.controllers:
            access.run(controller.name, controller.run())
        self._cluster.record_events()

    def _observe(self, event: StoreEvent) -> None:
        key = event.entry.key
        if key.startswith(PODS):
            pod, freed = self._cluster.observe_pod(event)
            if freed:
                self._tell_room()
            for controller in self.controllers:
                controller.observe_pod(pod, event)
            return
        if key.startswith(NODES):
            self._cluster.observe_node(event)
            self._tell_room()
        for controller in self.controllers:
            controller.observe(event)

    def _tell_room(self) -> None:
        for controller in self.controllers:
            controller.observe_room()
