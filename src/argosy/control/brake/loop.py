"""The brake's loop: judges what waits once the flood is over. One key, since all that waits is judged together."""

from collections.abc import Iterable
from typing import Any

from argosy.control.brake.brake import Brake
from argosy.control.context import ControllerContext
from argosy.control.wake import Loop, Wake
from argosy.kube.queue import Result, WorkQueue

__all__ = ["BrakeLoop"]

_ALL = "removals"
#: Between two looks at what keeps coming in.
_PAUSE = 0.05


class BrakeLoop(Loop[str]):
    name = "brake"
    workers = 1

    def __init__(self, queue: WorkQueue[str], brake: Brake):
        self.queue = queue
        self._brake = brake

    @classmethod
    def of(cls, shared: ControllerContext) -> "BrakeLoop":
        return cls(shared.queue(), shared.brake)

    def wakes(self) -> Iterable[Wake[Any, str]]:
        yield Wake(
            self._brake.asked, lambda _: (_ALL,), "something would be taken away, or was confirmed", delay=_PAUSE
        )

    async def reconcile(self, key: str) -> Result | None:
        again = self._brake.judge()
        return Result(requeue_after=max(again, _PAUSE)) if again is not None else None
