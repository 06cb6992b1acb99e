"""Chance: jitter, uids, generated names and tokens in `kube`, `server`, `control` and `sim` come from here.

As the clock's (`kube.clock`), the source belongs to the process that asks. A real process has the system's, which nobody can
guess. Simulated processes have one that a seed decides.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from random import Random, SystemRandom
from typing import TypeVar
from uuid import UUID

__all__ = ["random", "randrange", "sample", "set_source", "text", "token", "uid", "uniform"]

T = TypeVar("T")
_SYSTEM = SystemRandom()
_source: ContextVar[Random] = ContextVar("chance", default=_SYSTEM)


def set_source(source: Random) -> None:
    """What is started in this context from now on draws from that source."""
    _source.set(source)


def random() -> float:
    """At least 0, less than 1."""
    return _source.get().random()


def uniform(low: float, high: float) -> float:
    return _source.get().uniform(low, high)


def randrange(stop: int) -> int:
    return _source.get().randrange(stop)


def sample(items: Sequence[T]) -> list[T]:
    """All of them, in some order."""
    # Drawn from the source once: the system is slow to ask for each item.
    return Random(_source.get().getrandbits(64)).sample(items, len(items))


def text(alphabet: str, length: int) -> str:
    return "".join(_source.get().choices(alphabet, k=length))


def token(length: int) -> bytes:
    return _source.get().randbytes(length)


def uid() -> str:
    """Of an object: a random UUID."""
    return str(UUID(bytes=_source.get().randbytes(16), version=4))
