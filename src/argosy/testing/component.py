"""Component: one process of a cluster: started, watched, paused, killed, restarted on the same data.

Nothing here belongs to an event loop: a cluster may be started in one test's loop and used in the next one's.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Component"]

_LAUNCH = Path(__file__).with_name("launch.py")
_POLL = 0.01
#: Go collects garbage less often: clusters of tests take less of the processor, and more memory.
_GO = {"GOGC": "400"}


class Component:
    """A process in its own session, without descriptors of ours, that dies with us.

    By the kernel's rule "us" is the thread that calls `start`: call it from one that lives as long as the cluster.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path):
        self.name = name
        self.command = list(command)
        self.log = folder / f"{name}.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_by_us = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, or before it was started."""
        return self._process.poll() if self._process is not None else None

    @property
    def crashed(self) -> bool:
        """Whether it ended without `kill` or `stop`."""
        return self.exit_code is not None and not self._ended_by_us

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        self._ended_by_us = False
        # A proxy, a kubeconfig or a cloud in our own environment must not affect it.
        environ = {"PATH": os.defpath, "HOME": str(self._folder), "TMPDIR": str(self._folder), "LC_ALL": "C", **_GO}
        taken_over, ready = os.pipe()
        launch = [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), str(ready)]
        with self.log.open("ab") as log, os.fdopen(taken_over, "rb") as end:
            self._process = subprocess.Popen(
                [*launch, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=environ,
                start_new_session=True,
                pass_fds=[ready],
            )
            os.close(ready)
            # Some 30 ms. If paused sooner it would outlive us: the parent-death signal was not set yet.
            end.read()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._ended_by_us |= self.running
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    async def stop(self, grace: float = 10.0) -> None:
        """SIGTERM, and SIGKILL if that is not enough; paused or not."""
        self._ended_by_us |= self.running
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace
        while self.running and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        self.kill()

    def tail(self, lines: int = 15) -> str:
        """The last lines of the log; if it ends with a panic, the panic's first lines instead of the stack's last."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 16384))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        every = text.splitlines()
        panic = next((number for number, line in enumerate(every) if line.startswith("panic:")), None)
        return "\n".join(every[-lines:] if panic is None else every[max(0, panic - 3) : panic + lines])

    def _signal(self, number: int) -> None:
        # `running` has reaped it if it is dead, so the pid is never another process's.
        if self.running and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)
