"""Plugins of Python packages. Each package runs in a process of its own and is asked like a webhook.

External code may hang, spin, crash or exhaust memory. It does so in a process that is killed when a question takes too long,
and started again for the next one. Packages are loaded in the background (`running`): a question meanwhile waits as long as an
answer may take, and then fails with that reason. A plugin that fails to answer several times in a row is not asked for a while
(`Breaker`). Every failure is a Reply: a plugin raises nothing here, only the object that asked waits, and no function of a
package is ever called in this process.

Owns one process per package and the task that asks it; `close` ends them, and `running` also the task that loads them.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from importlib.metadata import EntryPoint
from typing import Any, Literal, TypeVar, cast

import numpy as np

from argosy.control.members.breaker import Breaker, BreakerOpen
from argosy.control.timings import Timings
from argosy.control.wake import Signal
from argosy.fleet.member import Member
from argosy.fleet.snapshot import Fleet
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Ranked, Remote, Reply
from argosy.plan.scheduling.package_plugins import PackagedQuestion, failed
from argosy.plan.scheduling.profile import POINTS, Registry
from argosy.plan.scheduling.unit import Unit
from argosy.plan.scheduling.webhook import short
from argosy.plugins import wire
from argosy.plugins.loading import offered

__all__ = ["PluginWorkers"]

log = logging.getLogger(__name__)

#: Memory of a process beyond what it uses once its package is loaded.
MEMORY = 1024 * 1024 * 1024
#: Memory while it is loaded. Libraries reserve much more than they use.
MEMORY_TO_LOAD = 4 * MEMORY
#: A process ends itself at its timeout, and logs its stack; after this grace it is killed.
_GRACE = 0.5
#: How long a killed process may take to be gone.
_DYING = 5.0
_SLICE = 0.005
_KEPT = frozenset(["PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "VIRTUAL_ENV"])
_KEPT_PREFIXES = ("LC_", "PYTHON")
T = TypeVar("T")


class PluginWorkers:
    """All packages with plugins. `registry` has the plugins of the loaded ones; `loaded` signals each further package."""

    def __init__(self, timings: Timings, found: Iterable[EntryPoint] | None = None, registry: Registry = IN_TREE):
        self._timings = timings
        self._workers = [_Worker(origin, points, timings) for origin, points in offered(found).items()]
        self._plugins: dict[str, _Plugin] = {}
        self._built_in = registry
        #: Packages that are not loaded yet.
        self._loading = list(self._workers)
        self._loaded = asyncio.Condition()
        #: A package was loaded, or failed to.
        self.loaded: Signal[None] = Signal("packages of plugins")
        self.registry = registry

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Loads the packages in the background, and closes them at the end."""
        loading = asyncio.create_task(self.load(), name="load plugins")
        try:
            yield
        finally:
            loading.cancel()
            await asyncio.wait({loading})
            await self.close()

    async def load(self) -> None:
        """Load all packages in parallel. A failure affects only the package's own plugins."""
        await asyncio.gather(*(self._load(worker) for worker in self._workers))

    async def _load(self, worker: "_Worker") -> None:
        await worker.load()
        self._loading.remove(worker)
        for remote in worker.remotes:
            self._plugins.setdefault(remote.name, _Plugin(remote.name, worker, self._timings))
        # In fixed order: the registry must not depend on which package is loaded first.
        registry = self._built_in
        for each in self._workers:
            registry = registry.with_plugins(each.remotes, each.origin).with_unusable(each.unusable)
        self.registry = registry
        log.info("plugins of %s: %s", worker.origin, ", ".join(sorted({one.name for one in worker.remotes})) or "none")
        self.loaded.tell(None)
        async with self._loaded:
            self._loaded.notify_all()

    @property
    def loading(self) -> bool:
        """Whether some packages are not loaded yet."""
        return bool(self._loading)

    def awaited_from(self, name: str) -> str:
        """The package being loaded that may have a plugin of this name; empty if there is none."""
        if not self._loading or name in self._plugins:
            return ""
        likely = [worker for worker in self._loading if worker.has_entry_point(name)]
        return (likely or self._loading)[0].origin

    async def answer(self, question: PackagedQuestion) -> Reply:
        """The plugin's answer. A package gets one question at a time: others to it wait their turn."""
        if package := await self._still_awaited_from(question.plugin):
            return failed(question, f"is not there yet: {package} is being loaded")
        plugin = self._plugins.get(question.plugin)
        if plugin is None or question.plugin not in self.registry.at(question.remote.phase):
            return failed(question, "is not installed any more")
        try:
            return await plugin.ask(question, question.remote.phase)
        except _Silent as silence:
            return failed(question, str(silence))

    async def _still_awaited_from(self, name: str) -> str:
        """As `awaited_from`, but after waiting as long as an answer may take: most packages are loaded by then."""
        package = self.awaited_from(name)
        if package:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timings.plugin_answer), self._loaded:
                    await self._loaded.wait_for(lambda: not self.awaited_from(name))
                    package = ""
        return package

    async def refuses(self, remote: Remote) -> str:
        """Why a plugin cannot take the arguments of a profile; empty if it can, or cannot be asked."""
        plugin = self._plugins.get(remote.name)
        if plugin is None:
            return ""
        nobody = Fleet()
        rows = nobody.zeros.astype(np.intp)
        question = PackagedQuestion(remote, Unit(), nobody, Ranked(rows, nobody.zeros))
        try:
            return (await plugin.ask(question, wire.CONFIGURE)).error
        except _Silent:
            return ""  # objects that need it report that

    @property
    def plugins(self) -> list[str]:
        return list(self._plugins)

    @property
    def silent(self) -> dict[str, str]:
        """Plugins that did not answer last time, and why."""
        return {name: plugin.silent for name, plugin in self._plugins.items() if plugin.silent}

    @property
    def ended(self) -> dict[str, int]:
        """How often the process of each package ended or was killed."""
        return {worker.origin: worker.ended for worker in self._workers}

    def problems(self) -> list[str]:
        """Problems that need a restart of this process."""
        return [f"plugins of {worker.origin}: {worker.stuck}" for worker in self._workers if worker.stuck]

    async def close(self) -> None:
        await asyncio.gather(*(worker.close() for worker in self._workers))


class _Plugin:
    def __init__(self, name: str, worker: "_Worker", timings: Timings):
        self.silent = ""
        self._worker = worker
        self._name = name
        self._breaker = Breaker(timings.breaker_failures, timings.breaker_open)

    async def ask(self, question: PackagedQuestion, phase: str) -> Reply:
        """Raises _Silent."""
        return await self._worker.in_turn(lambda: self._ask(question, phase))

    async def _ask(self, question: PackagedQuestion, phase: str) -> Reply:
        try:  # checked now that it is our turn: other questions may have failed meanwhile
            self._breaker.check()
        except BreakerOpen:
            raise _Silent(self.silent) from None
        try:
            reply = await self._worker.ask(question, phase)
        except _Silent as silence:
            self.silent = str(silence)
            self._breaker.failed()
            log.warning("plugin %s %s", self._name, silence)
            raise
        except BaseException:
            self._breaker.abandoned()
            raise
        self.silent = ""
        self._breaker.succeeded()
        return reply


class _Silent(Exception):
    """There is no answer; the message continues after the plugin's name."""


class _Worker:
    """The process of one package."""

    def __init__(self, origin: str, points: list[EntryPoint], timings: Timings):
        self.origin = origin
        self.ended = 0
        self.stuck = ""
        #: The package's plugins, once it is loaded, and entry points that cannot be used, with the reason.
        self.remotes: tuple[Remote, ...] = ()
        self.unusable: dict[str, str] = {}
        self._points = tuple((point.name, point.value) for point in points)
        self._timings = timings
        self._turn = asyncio.Lock()
        #: The task whose turn it is.
        self._busy: asyncio.Task[Any] | None = None
        self._closed = False
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._number = 0
        #: The clusters as the process knows them.
        self._known: dict[str, Member] = {}

    async def in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Cancellation while waiting has no effect on the process. Once started, the work is finished or the process killed,
        even if the caller is cancelled."""
        await self._turn.acquire()
        task = self._busy = asyncio.ensure_future(work())
        task.add_done_callback(lambda _: self._turn.release())
        return await asyncio.shield(task)

    def has_entry_point(self, name: str) -> bool:
        return any(name == point for point, _ in self._points)

    async def load(self) -> None:
        await self.in_turn(self._load)

    async def _load(self) -> None:
        try:
            described = await self._start()
        except Exception as error:
            why = f"{self.origin} cannot be loaded: it {error if isinstance(error, _Silent) else f'failed: {error}'}"
            log.error("%s", why, exc_info=None if isinstance(error, _Silent) else error)
            described = wire.Described([], dict.fromkeys((name for name, _ in self._points), why))
        self.remotes = tuple(
            Remote(offer.name, phase, offer.weight, packaged=True, configurable=offer.configurable)
            for offer in described.offers
            if (phase := _phase(offer.phase)) is not None
        )
        self.unusable = {name: why for name, why in described.unusable.items() if self.has_entry_point(name)}

    async def ask(self, question: PackagedQuestion, phase: str) -> Reply:
        """Call only `in_turn`. Raises _Silent."""
        if self._process is not None and self._process.returncode is not None:
            await self._end(idle=True)
        if self._process is None:
            await self._start()
        seconds = self._timings.plugin_answer
        async with self._heard(seconds, f"gave no answer within {seconds:g} s", _GRACE):
            longest = wire.longest_answer(len(question.ranked.rows))
            answer = wire.told(await self._exchange(await self._asked(question, phase, seconds), longest))
            if answer.number != self._number:
                raise wire.WireError("an answer to another question")
            return wire.reply_of(answer, phase, question.ranked.rows)

    async def close(self) -> None:
        self._closed = True
        if self._busy is not None:
            self._busy.cancel()
            await asyncio.wait({self._busy})
        await self._end(counts=False, idle=True)

    async def _start(self) -> wire.Described:
        if self._closed:
            raise _Silent("is not asked any more")
        ours, theirs = socket.socketpair()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "argosy.plugins.worker",
                str(theirs.fileno()),
                str(os.getpid()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=_environment(),
            )
        except BaseException as error:
            ours.close()
            if isinstance(error, OSError):
                raise _Silent(f"could not be started: {error.strerror}") from None
            raise
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._known = {}
        seconds = self._timings.plugin_load
        hello = wire.Hello(self.origin, self._points, tuple(sys.path), seconds, MEMORY_TO_LOAD, MEMORY)
        async with self._heard(seconds, f"took longer than {seconds:g} s to be loaded"):
            return wire.described(await self._exchange(wire.framed(hello), wire.LONGEST_DESCRIPTION))

    @contextlib.asynccontextmanager
    async def _heard(self, seconds: float, late: str, grace: float = 0.0) -> AsyncIterator[None]:
        """If the process sends nothing readable, it is killed, and _Silent raised with the reason.

        A process ends itself at its timeout: that counts as `late` as well.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(seconds + grace):
                yield
        except TimeoutError:
            await self._end()
            raise _Silent(late) from None
        except (EOFError, OSError):
            in_time = loop.time() - started < seconds
            died = await self._died()
            raise _Silent(died if in_time else late) from None
        except wire.WireError as error:
            await self._end()
            raise _Silent(f"sent an unreadable answer: {short(str(error))}") from None
        except BaseException:
            await self._end()
            raise

    async def _exchange(self, message: bytes, longest: int) -> bytes:
        """The message that comes back. A message longer than `longest` is not read: reading it would block the event loop."""
        assert self._reader is not None
        assert self._writer is not None
        self._writer.write(message)
        await self._writer.drain()
        (length,) = wire.HEAD.unpack(await self._reader.readexactly(wire.HEAD.size))
        if length > longest:
            raise wire.WireError(f"{length} bytes, more than {longest}")
        return await self._reader.readexactly(length)

    async def _asked(self, question: PackagedQuestion, phase: str, seconds: float) -> bytes:
        """The question, with the clusters that changed since the last one."""
        fleet, remote = question.fleet, question.remote
        names: tuple[str, ...] | None = None
        members: tuple[bytes, ...] = ()
        changed = [one for one in fleet.members if self._known.get(one.name) is not one]
        if phase != wire.CONFIGURE and (changed or len(self._known) != len(fleet)):
            names, members = fleet.names, await self._encode(changed)
            self._known = {member.name: member for member in fleet.members}
        self._number += 1
        return wire.framed(
            wire.Asked(
                self._number,
                remote.name,
                phase,
                remote.arguments,
                seconds,
                question.unit,
                names,
                members,
                fleet.amounts_available,
                question.ranked.rows,
                question.ranked.scores,
            )
        )

    async def _encode(self, members: list[Member]) -> tuple[bytes, ...]:
        """Yields to the event loop in between: hundreds of clusters take a while."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _SLICE
        found = []
        for member in members:
            found.append(wire.encode_member(member))
            if loop.time() >= until:
                await asyncio.sleep(0)
                until = loop.time() + _SLICE
        return tuple(found)

    async def _died(self) -> str:
        """How a process ended by itself."""
        process = self._process
        await self._end()
        code = process.returncode if process is not None else None
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"ended its process ({how})"

    async def _end(self, *, counts: bool = True, idle: bool = False) -> None:
        """The process is gone when this returns, or recorded as stuck. Its process group is killed with it, unless it ended
        while idle (`idle`): its pid may belong to another process by now."""
        process, writer = self._process, self._writer
        self._known = {}
        if writer is not None:
            writer.close()
        if process is None:
            return
        self.ended += counts
        kill = not idle or process.returncode is None
        try:
            # If it has ended by itself, this finds its exit code.
            async with asyncio.timeout(0.05 if counts else 0):
                await process.wait()
        except TimeoutError:
            pass
        finally:  # even if cancelled here
            if kill:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(_DYING):
                await process.wait()
        except TimeoutError:
            self.stuck = f"process {process.pid} cannot be ended"
            log.error("plugins of %s: %s", self.origin, self.stuck)
        self._process = self._reader = self._writer = None


def _environment() -> dict[str, str]:
    """What an interpreter needs; the rest of the control plane's environment is not passed on."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    # A question gets one core.
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _phase(text: str) -> Literal["filter", "score", "select", "replicas"] | None:
    return cast(Any, text) if text in POINTS else None
