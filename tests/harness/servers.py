"""API servers and relays for tests: on loopback, or on the virtual network where the test runs on virtual time."""

from functools import partial
from pathlib import Path
from typing import Any

from argosy.cli.local.caveats import Caveats
from argosy.cli.local.guard import Guard
from argosy.control.install.installer import install
from argosy.server.embedded import EmbeddedServer
from tests.harness.relay import Relay
from tests.harness.virtual import virtual_loop
from tests.harness.virtual_relay import VirtualRelay
from tests.harness.virtual_server import VirtualServer
from tests.world.disk import Disk

__all__ = ["new_plane", "new_relay", "new_server", "set_up"]

#: Of a control plane on which Argosy was just installed. On virtual time the first one of a process is kept for the others.
_installed: Disk | None = None


def new_server(data: Path | None = None, **options: Any) -> EmbeddedServer:
    """Not started."""
    loop = virtual_loop()
    if loop is None:
        return EmbeddedServer(data, **options)
    assert data is None, "there are no folders on virtual time"
    return VirtualServer(loop, **options)


def new_relay(port: int) -> Relay | VirtualRelay:
    """Between the controllers and the server that has this port."""
    loop = virtual_loop()
    return Relay("127.0.0.1", port) if loop is None else VirtualRelay(loop, port)


def new_plane(data: Path | None = None) -> EmbeddedServer:
    """A server to be set up as a control plane."""
    make = partial(new_server, data, admission=(Guard, Caveats))
    if virtual_loop() is None:
        return make()
    return make(disk=_installed.copy() if _installed is not None else Disk())


async def set_up(plane: EmbeddedServer) -> None:
    """What `argosy install` does, on a server that was started."""
    global _installed
    if not isinstance(plane, VirtualServer):
        await install(plane.client())
    elif _installed is None:
        await install(plane.client())
        await plane.at_rest()
        _installed = plane.disk.copy()
