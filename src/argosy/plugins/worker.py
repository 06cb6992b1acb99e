"""The process that a package's plugins run in: `python -m argosy.plugins.worker FD`.

It loads the given entry points, describes them, and then answers one question after another. It ends with the connection and
with the process that started it, whatever a package is doing. If a question or the loading takes too long, it ends itself with
a traceback that shows where it was (and the control plane kills it, should that fail).

From the control plane it has the content of questions, its files and its user, and the environment that an interpreter needs.
"""

import contextlib
import ctypes
import faulthandler
import logging
import os
import pickle
import resource
import signal
import socket
import sys
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from argosy.fleet.member import Member
from argosy.fleet.snapshot import Fleet, Rows
from argosy.plan.scheduling.framework import Always, Filter, FrameworkError, Ranked, Replicas, Score, Select
from argosy.plan.scheduling.profile import InProcess, configured
from argosy.plugins.bounds import LONGEST_ERROR, LONGEST_TEXT, MOST_TEXTS, cut
from argosy.plugins.guard import guarded
from argosy.plugins.loading import GROUP, plugins_of
from argosy.plugins.wire import CONFIGURE, HEAD, Asked, Described, Hello, Offer, Told, decode_member, framed

__all__ = ["Answering", "main"]

_OTHER_REASON = "another reason"
_PR_SET_PDEATHSIG = 1
_PHASES: dict[type[Any], str] = {Filter: "filter", Score: "score", Select: "select", Replicas: "replicas"}
log = logging.getLogger(__name__)


class Answering:
    """Answers questions with these plugins; remembers the clusters."""

    def __init__(self, plugins: list[InProcess]):
        self._plugins = {(_PHASES[type(plugin)], plugin.name): plugin for plugin in map(guarded, plugins)}
        self.offers = [
            Offer(plugin.name, _PHASES[type(plugin)], getattr(plugin, "weight", 1), plugin.configure is not None)
            for plugin in plugins
        ]
        self._configured: dict[tuple[str, str, bytes], InProcess] = {}
        self._members: dict[str, Member] = {}
        self._names: tuple[str, ...] = ()
        self._fleet = Fleet()

    def answer(self, asked: Asked) -> Told:
        """Raises FrameworkError."""
        if asked.phase == CONFIGURE:
            for phase in _PHASES.values():
                if (phase, asked.plugin) in self._plugins:
                    self._plugin(asked, phase)
            return Told(asked.number)
        plugin, fleet = self._plugin(asked, asked.phase), self._current(asked)
        if isinstance(plugin, Filter):
            return _filtered(plugin, asked, fleet)
        if isinstance(plugin, Score):
            raw = plugin.score(asked.unit, fleet)
            given = raw[asked.rows]
            return Told(asked.number, scores=_bytes(given if raw is fleet.zeros else plugin.normalize(given)))
        if isinstance(plugin, Select):
            chosen = plugin.select(asked.unit, fleet, Ranked(asked.rows, asked.scores))
            return Told(asked.number, rows=_bytes(chosen.rows), scores=_bytes(chosen.scores))
        division = plugin.divide(asked.unit, fleet, asked.rows)
        replicas, overflow = _bytes(division.replicas), _bytes(division.overflow)
        return Told(asked.number, scores=replicas, overflow=overflow, texts=list(division.steps))

    def _plugin(self, asked: Asked, phase: str) -> InProcess:
        plugin = self._plugins[phase, asked.plugin]
        if not asked.arguments:
            return plugin
        key = phase, asked.plugin, pickle.dumps(asked.arguments)
        known = self._configured.get(key)
        if known is None:
            if len(self._configured) > 256:
                self._configured.clear()
            known = self._configured[key] = configured(plugin, {plugin.name: asked.arguments[0]})
        return known

    def _current(self, asked: Asked) -> Fleet:
        if asked.names is not None or asked.members:
            if asked.names is not None:
                self._names = asked.names
            for data in asked.members:
                member = decode_member(data)
                self._members[member.name] = member
            self._members = {name: self._members[name] for name in self._names}
            self._fleet = Fleet.of_members(self._members.values())
        return self._fleet.with_available(asked.available)


def _filtered(plugin: Filter, asked: Asked, fleet: Fleet) -> Told:
    passed = plugin.feasible(asked.unit, fleet)[asked.rows]
    refused = asked.rows[~passed]
    texts: dict[str, int] = {}
    codes = [texts.setdefault(text, len(texts)) for text in _reasons(plugin, asked, fleet, refused)]
    return Told(asked.number, passed=passed.astype(np.uint8).tobytes(), codes=_bytes(codes), texts=list(texts))


def _reasons(plugin: Filter, asked: Asked, fleet: Fleet, rows: Rows) -> list[str]:
    if plugin.reasons is not None:
        given = plugin.reasons(asked.unit, fleet, rows)
        found = [given.texts[code] for code in given.codes.tolist()]
    elif isinstance(plugin.reason, Always):
        found = [plugin.reason.text] * len(rows)
    else:
        found = [plugin.reason(asked.unit, fleet, row) for row in rows.tolist()]
    few: set[str] = set()
    for at, text in enumerate(found):
        kept = cut(text, LONGEST_TEXT)
        found[at] = kept if kept in few or len(few) < MOST_TEXTS - 1 else _OTHER_REASON
        few.add(found[at])
    return found


def _bytes(numbers: Any) -> bytes:
    return np.asarray(numbers, dtype=np.int64).tobytes()


def main() -> None:
    _end_with(parent=int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    # A plugin's prints go to the log; it gets no input from our terminal, and ignores Ctrl-C.
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    faulthandler.enable()
    hello: Hello = pickle.loads(_read(connection))
    sys.path[:] = hello.path
    _limit_memory(hello.memory_to_load)
    faulthandler.dump_traceback_later(hello.seconds, exit=True)
    answering, unusable = _load(hello)
    faulthandler.cancel_dump_traceback_later()
    _limit_memory(hello.memory)
    connection.sendall(framed(Described(answering.offers, unusable)))
    while True:
        asked: Asked = pickle.loads(_read(connection))
        # Works even if the interpreter is blocked.
        faulthandler.dump_traceback_later(asked.seconds, exit=True)
        try:
            answer = answering.answer(asked)
        except FrameworkError as error:
            answer = Told(asked.number, error=cut(str(error), LONGEST_ERROR))
        except MemoryError:
            answer = Told(asked.number, error=cut(f"plugin {asked.plugin!r} failed: MemoryError", LONGEST_ERROR))
        faulthandler.cancel_dump_traceback_later()
        connection.sendall(framed(answer))


def _end_with(parent: int) -> None:
    """Nothing here outlives the control plane, neither a package that hangs in its import nor a thread that it started.

    The kernel sends the signal when the *thread* that started this process ends. That is the event loop's thread (asyncio and
    uvloop both start processes from it, never from a pool), and without the loop there are no more questions.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before the signal was requested
        os._exit(0)


def _load(hello: Hello) -> tuple[Answering, dict[str, str]]:
    plugins: list[InProcess] = []
    unusable: dict[str, str] = {}
    for name, value in hello.points:
        try:
            plugins += plugins_of(EntryPoint(name, value, GROUP).load())
        except Exception as error:
            log.exception("the plugins of %s (%s) cannot be loaded", hello.origin, value)
            unusable[name] = cut(f"{hello.origin} cannot be loaded: {type(error).__name__}: {error}", LONGEST_ERROR)
    return Answering(plugins), unusable


def _limit_memory(more: int) -> None:
    """Limits memory from here on, beyond what the libraries have reserved so far. It may be set again."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
    except OSError:
        return
    limit = pages * resource.getpagesize() + more
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _read(connection: socket.socket) -> bytes:
    (length,) = HEAD.unpack(_exactly(connection, HEAD.size))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = connection.recv(min(count - len(chunks), 1 << 20))
        if not chunk:
            # The control plane is gone, or has closed the connection. A normal exit would wait for threads of the package.
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(0)
        chunks += chunk
    return bytes(chunks)


if __name__ == "__main__":
    main()
