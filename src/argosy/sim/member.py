"""Member: one simulated cluster, an API server with its controllers, scheduler and nodes.

`stop` and `start` make its API unreachable and reachable again while the cluster itself goes on, as a network failure would;
`close` ends it. Clients cannot tell it from a real cluster, except that pods run no processes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.kube.client import Client
from argosy.server.embedded import EmbeddedServer
from argosy.sim.cluster import Cluster
from argosy.sim.link import Link
from argosy.sim.manager import ControllerManager
from argosy.sim.spec import MemberSpec, NodeSpec
from argosy.sim.timings import Timings

__all__ = ["Member"]

_HOST = "127.0.0.1"


class Member:
    def __init__(
        self,
        spec: MemberSpec,
        timings: Timings | None = None,
        data: Path | None = None,
        turns: asyncio.Semaphore | None = None,
        *,
        embedded: EmbeddedServer | None = None,
        accept_data_loss: bool = False,
    ):
        """`embedded` replaces the server that is kept in the folder."""
        self.spec = spec
        self.name = spec.name
        self.timings = timings or Timings()
        # With a link in between, the link has the public port.
        port = 0 if spec.latency is not None else spec.port
        self.embedded = embedded or EmbeddedServer(data, host=_HOST, port=port, accept_data_loss=accept_data_loss)
        self.cluster = Cluster(self.embedded.trusted, self.timings, turns, name=spec.name)
        self.manager = ControllerManager(self.cluster)
        self._link: Link | None = None
        self._port = spec.port

    @property
    def port(self) -> int:
        return self._port or self.embedded.port

    @property
    def url(self) -> str:
        return f"https://{_HOST}:{self.port}"

    async def open(self) -> None:
        """Ready when this returns: nodes registered, controllers running, the API served."""
        await self.embedded.start()
        try:
            await self.manager.open(list(self.spec.nodes()))
            await self._open_link()
        except BaseException:
            await self.close()
            raise
        self._port = self._link.port if self._link is not None else self.embedded.port

    async def close(self) -> None:
        await self._close_link()
        await self.embedded.stop()

    async def stop(self) -> None:
        """Make the API unreachable; connections are cut. The cluster goes on."""
        await self._close_link()
        await self.embedded.close_door()

    async def start(self) -> None:
        """Make the API reachable again, at the same address."""
        await self.embedded.open_door()
        await self._open_link()

    async def add_node(
        self,
        name: str,
        capacity: Mapping[str, str],
        labels: Mapping[str, str] = {},
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add a node, which is Ready when this returns. It is removed when its Node object is deleted."""
        index = len(self.cluster.nodes.nodes)
        await self.manager.nodes.register([NodeSpec(name, index, capacity, labels, taints)])

    def lose_node(self, name: str) -> None:
        """A node's kubelet stops: the node becomes unreachable, and its pods are replaced when their tolerations are over."""
        self.manager.nodes.lose(name)

    def recover_node(self, name: str) -> None:
        self.manager.nodes.recover(name)

    def set_latency(self, seconds: float) -> None:
        """Only for a member whose spec has a latency (0 suffices): others have no link."""
        if self._link is None:
            raise ValueError(f"{self.name} was not set up with a latency")
        self._link.set_latency(seconds)

    def client(self) -> Client:
        """A client of the administrator, in this process."""
        return self.embedded.client()

    def kubeconfig(self) -> dict[str, Any]:
        config = self.embedded.kubeconfig(self.name)
        config["clusters"][0]["cluster"]["server"] = self.url
        return config

    async def _open_link(self) -> None:
        if self.spec.latency is None:
            return
        self._link = Link(_HOST, self.embedded.port, self.spec.latency)
        await self._link.open(_HOST, self._port)

    async def _close_link(self) -> None:
        if self._link is not None:
            await self._link.close()
