"""Remote plugins for a command that decides: webhooks, and the processes of Python packages, answer what it has to
ask, as they do the controllers, and within the same time.

A command asks from where it runs, and Python plugins are those installed there. What it could not be told is noted: there the
controllers may decide otherwise.
"""

from collections.abc import Generator
from typing import TypeVar

import msgspec

from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.scheduling.remote_plugins import RemotePlugins
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.timings import Timings
from argosy.kube.endpoints import EndpointRules
from argosy.kube.informer import Change
from argosy.plan.explain.snapshot import Snapshot
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.package_plugins import question_of

__all__ = ["PluginSession"]

T = TypeVar("T")


class PluginSession:
    """Open and close it. `notes` say who could not answer."""

    def __init__(self, snapshot: Snapshot, timings: Timings = Timings()) -> None:
        self._webhooks = Webhooks(snapshot.clusters.get, timings, endpoints=EndpointRules(http=True))
        for name, configuration in snapshot.webhooks.items():
            self._webhooks.observe(Change(name, None, configuration))
        # Looking through all installed packages takes a while, and without a profile nothing can be chosen.
        self._workers = PluginWorkers(timings, None if snapshot.profiles else ())
        self._answers = RemotePlugins(self._webhooks, self._workers)
        self._registry = IN_TREE
        self._unanswered: dict[tuple[bool, str], str] = {}

    async def open(self) -> None:
        await self._workers.load()
        known = self._workers.registry
        self._registry = known.with_remotes(self._webhooks.remotes()).with_unusable(self._webhooks.unusable)

    def known_to(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with these plugins for its profiles to choose from."""
        return msgspec.structs.replace(snapshot, registry=self._registry)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"the {'plugin' if packaged else 'webhook'} {plugin} could not be asked from here, "
            f"so that the controllers may decide otherwise: {why}"
            for (packaged, plugin), why in sorted(self._unanswered.items())
        )

    async def run(self, steps: Generator[Ask, Reply, T]) -> T:
        """To the end, with every question asked."""
        try:
            ask = next(steps)
            while True:
                reply = await self._answers.answer(question_of(ask))
                why = reply.error or next(iter(reply.errors.values()), "")
                if why:
                    self._unanswered[ask.plugin.packaged, ask.plugin.name] = why
                ask = steps.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    async def close(self) -> None:
        await self._workers.close()
        await self._webhooks.close()
