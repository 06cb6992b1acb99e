"""Free loopback ports for processes that cannot inherit a socket.

They are below the ephemeral range, so that no outgoing connection takes the port of a component while it is down, and random,
so that two runs on one machine rarely collide.
"""

import random
import socket

__all__ = ["free_ports"]

_RANGE = range(20000, 32000)


def free_ports(count: int) -> list[int]:
    """Distinct ports on which nobody listens now."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports between {_RANGE.start} and {_RANGE.stop}")
    return found
