"""The simulated members of `argosy up`: a process beside it, started again when it dies, and joined when it is ready.

Owned by `up` through `run`. The members' process holds the other end of a pipe as its stdin and ends when that closes, so
that it never outlives its owner, not even one that was killed.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable

from argosy.cli.local.folder import MEMBERS, DataFolder
from argosy.cli.local.processes import command, stop
from argosy.cli.output.failures import Failure
from argosy.cli.output.progress import Progress, heard
from argosy.kube.backoff import Backoff

__all__ = ["SimulatedMembers"]

log = logging.getLogger(__name__)

BACKOFF = Backoff(base=1.0, cap=30.0)
#: A process that ran this long was well; its back-off starts over.
RECOVERY = 30.0
GRACE = 15.0


class SimulatedMembers:
    def __init__(
        self,
        folder: DataFolder,
        count: int,
        joined: Callable[[], Awaitable[None]],
        *,
        accept_data_loss: bool = False,
    ):
        """`joined` is awaited each time the members serve. A loss is accepted at the first start only."""
        self._folder = folder
        self._count = count
        self._joined = joined
        self._accept_data_loss = accept_data_loss
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, progress: Progress) -> None:
        """Ready when this returns. Raises the members' own Failure."""
        # One left over from an `up` that was killed is about to end: it must not hold ports and folders any more.
        await asyncio.to_thread(stop, self._folder.sim, MEMBERS, "the simulated members of last time", 5.0)
        reading, writing = os.pipe()
        with self._folder.members_log.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *command("sim", "--members", str(self._count), "--data", str(self._folder.members)),
                    *("--progress-fd", str(writing), "--with-stdin"),
                    *(["--accept-data-loss"] if self._accept_data_loss else []),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=(writing,),
                    # Ctrl-C on the terminal is for us; the members are stopped after the controllers.
                    start_new_session=True,
                )
            finally:
                os.close(writing)
        await self._until_ready(reading, progress)
        self._accept_data_loss = False
        await self._joined()

    async def _until_ready(self, descriptor: int, progress: Progress) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        try:
            while line := await reader.readline():
                if heard(line.decode(errors="replace"), progress):
                    return
        finally:
            transport.close()
        raise Failure("the simulated members ended before they were ready", f"see {self._folder.members_log}")

    async def run(self, quiet: Progress) -> None:
        """Until cancelled: start them again whenever they die."""
        loop = asyncio.get_running_loop()
        died = 0
        while True:
            started = loop.time()
            if self._process is not None:
                code = await self._process.wait()
                self._process = None
                died = 1 if loop.time() - started >= RECOVERY else died + 1
                delay = BACKOFF.delay(died)
                log.error("the simulated members ended (%s); they start again in %.1f s", _ending(code), delay)
            else:
                died += 1
                delay = BACKOFF.delay(died)
            await asyncio.sleep(delay)
            try:
                await self.start(quiet)
                log.info("the simulated members are back")
            except Failure as failure:
                log.error("the simulated members did not start: %s", failure.message)
                await self.stop()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
