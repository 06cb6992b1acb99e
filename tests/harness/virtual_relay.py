"""A relay on the virtual network, which fails as `relay.Relay` does."""

from tests.harness.virtual import VirtualLoop
from tests.harness.virtual_server import CONTROLLERS, HOST, VirtualServer

__all__ = ["VirtualRelay"]


class VirtualRelay:
    """An address that leads to a server. Each request is a connection of its own here; watches last."""

    def __init__(self, loop: VirtualLoop, port: int) -> None:
        self._network = loop.network
        self._loop = loop
        self._port = port
        self._listening = False
        self.port = next(loop.ports)
        self.url = f"https://{HOST}:{self.port}"

    async def __aenter__(self) -> "VirtualRelay":
        self.heal()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._network.hang_up(self.url)

    def silence(self) -> None:
        """Nothing gets through any more, in either direction; nobody is told."""
        self._set_cut(True)

    def cut(self) -> None:
        """Every connection is reset."""
        self._network.hang_up(self.url)
        if self._listening:
            self._listen()

    def refuse(self) -> None:
        """What is under way goes on, new connections are refused."""
        self._network.refuse(self.url)
        self._listening = False

    def heal(self) -> None:
        """All of that is over; what was held back arrives."""
        self._set_cut(False)
        if not self._listening:
            self._listen()
        self._listening = True

    def _listen(self) -> None:
        server = self._loop.behind[f"https://{HOST}:{self._port}"]
        assert isinstance(server, VirtualServer)
        server.listen(self.url)

    def _set_cut(self, cut: bool) -> None:
        self._network.link(CONTROLLERS, self.url).cut = cut
        self._network.link(self.url, CONTROLLERS).cut = cut
