"""Weather: inflicts the plan's faults on a stage and heals them; notes what happened when."""

import asyncio
import time

from tests.faults.storm.judge import Held
from tests.faults.storm.plan import Fault
from tests.faults.storm.stage import Stage

__all__ = ["Weather"]


class Weather:
    """Faults, as planned; one at a time for each target, several at once for all of them."""

    def __init__(self, stage: Stage):
        self._stage = stage
        self.happened: list[Held] = []
        self.skipped = 0
        self.problems: list[str] = []

    async def rage(self, faults: list[Fault], seconds: float) -> None:
        """All of it is over, and everything healed, when this returns."""
        begun = time.monotonic()
        under_way: list[asyncio.Task[None]] = []
        for fault in faults:
            await asyncio.sleep(max(0.0, begun + fault.at - time.monotonic()))
            under_way.append(asyncio.create_task(self._inflict(fault)))
        await asyncio.sleep(max(0.0, begun + seconds - time.monotonic()))
        for end in await asyncio.gather(*under_way, return_exceptions=True):
            if end is not None:
                self.problems.append(f"a fault could not be healed: {end!r}")

    async def _inflict(self, fault: Fault) -> None:
        target = await self._stage.target(fault.target)
        if target is None or target.busy:
            self.skipped += 1
            return
        target.busy = True
        begun = time.time()
        await target.begin(fault.kind)
        await asyncio.sleep(fault.seconds)
        await target.end(fault.kind)
        self.happened.append(Held(target.name, fault.kind, begun, time.time()))
        target.busy = False
