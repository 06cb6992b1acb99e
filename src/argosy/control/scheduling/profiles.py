"""Profiles: which scheduling plugins exist at the moment, and which objects a changed profile or plugin affects.

Plugins are built in, installed as Python packages, or webhooks; profiles choose among them. An unusable profile gets an event
of its own, besides those of the objects that wait for it. While packages are being loaded, an unknown name may be one of their
plugins: decisions ask for it and wait, and no event is recorded for the profile.

Decides nothing: `plan.scheduling.profile` defines what a profile means. Owns a task for each profile whose arguments a Python
package is asked about; `close` ends them.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from argosy.api import resources
from argosy.api.conditions import EventReason
from argosy.api.types import PropagationPolicy, SchedulingProfile
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.wake import Follow, Signal
from argosy.kube.events import EventRecorder
from argosy.kube.informer import Change
from argosy.kube.references import reference_of
from argosy.plan.claims.claim import ref_of
from argosy.plan.scheduling.framework import FrameworkError, Remote
from argosy.plan.scheduling.profile import POINTS, Registry, enabled_names, unused
from argosy.plan.scheduling.schedule import profile_of

__all__ = ["Profiles"]


class Profiles:
    name = "profiles"

    def __init__(
        self,
        caches: Caches,
        webhooks: Webhooks,
        installed: Registry,
        events: EventRecorder | None = None,
        workers: PluginWorkers | None = None,
    ) -> None:
        """Without a recorder no events are recorded: another shard does.

        With `workers`, the installed plugins are those they have loaded so far.
        """
        self._workers = workers
        self._checking: set[asyncio.Task[None]] = set()
        self._caches = caches
        self._webhooks = webhooks
        self._installed = installed
        self._events = events
        #: The name of a profile that was created, deleted or changed in meaning; see `naming`.
        self.changes: Signal[str] = Signal("profiles")
        self.registry = installed
        #: Names in profiles that may be plugins of a package being loaded.
        self._awaited: frozenset[str] = frozenset()

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._caches.profiles, self._profile_changed, "which plugins run")
        yield Follow(self._webhooks.changes, self._webhook_changed, "which plugins there are, behind HTTP")
        if self._workers is not None:
            yield Follow(self._workers.loaded, self._package_loaded, "which plugins there are, of Python packages")

    def of(self, policy: PropagationPolicy | None) -> SchedulingProfile | None:
        """The profile a policy names, if it exists."""
        name = policy.spec.scheduling_profile if policy is not None else ""
        return self._caches.profiles.get(name) if name else None

    def _profile_changed(self, change: Change[SchedulingProfile]) -> None:
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            return
        if change.new is not None:
            if any(_is_unknown(name, self.registry) for name in enabled_names(change.new.spec)):
                self._look_up()
            self._check(change.new)
        self.changes.tell(change.key)

    def _webhook_changed(self, name: str) -> None:
        """A webhook was created, deleted or changed."""
        self._look_up()
        if self._installed.points_of(name):
            configuration = self._caches.webhooks.get(name)
            if configuration is not None:
                why = "another plugin has this name: profiles that name it cannot be used"
                self._webhooks.tell(configuration, "Warning", EventReason.WEBHOOK_CONFIGURATION_ERROR, why)
        for profile in self._caches.profiles.values():
            if name in enabled_names(profile.spec):
                self._check(profile)
                self.changes.tell(profile.metadata.name)

    def _package_loaded(self, _: None) -> None:
        """A package was loaded, or failed to: profiles that name its plugins are checked."""
        assert self._workers is not None
        awaited, before = self._awaited, self.registry
        self._installed = self._workers.registry
        self._look_up()
        for profile in self._caches.profiles.values():
            for name in enabled_names(profile.spec):
                if name in awaited - self._awaited or before.unusable.get(name) != self.registry.unusable.get(name):
                    self._check(profile)
                    self.changes.tell(profile.metadata.name)
                    break

    def _look_up(self) -> None:
        """Update the set of existing plugins."""
        known = self._installed.with_remotes(self._webhooks.remotes()).with_unusable(self._webhooks.unusable)
        awaited: dict[str, str] = {}
        if self._workers is not None and self._workers.loading:
            wanted = {name for profile in self._caches.profiles.values() for name in enabled_names(profile.spec)}
            unknown = (name for name in wanted if _is_unknown(name, known))
            awaited = {name: package for name in unknown if (package := self._workers.awaited_from(name))}
        for name, package in awaited.items():
            # Its extension points are not known yet either. Decisions record the package, most likely the same as before, so
            # that nothing is decided anew just because of a restart.
            known = known.with_plugins((Remote(name, point, packaged=True) for point in POINTS), package)
        self._awaited, self.registry = frozenset(awaited), known

    def naming(self, profiles: Collection[str]) -> Iterator[SourceKey]:
        """The objects whose policies use one of the profiles."""
        for policies in self._caches.policies.values():
            for policy in policies.values():
                if policy.spec.scheduling_profile in profiles:
                    ref = ref_of(policy)
                    yield from self._caches.sources_naming(f"{ref.label}={ref.key}")
                    yield from self._caches.sources_selected_by(ref)

    def check_all(self) -> None:
        """Called once everything is known: until then a profile may name plugins that have not arrived yet."""
        for profile in self._caches.profiles.values():
            self._check(profile)

    def _check(self, profile: SchedulingProfile) -> None:
        if self._events is None or not self._caches.webhooks.has_synced:
            return
        if not self._awaited.isdisjoint(enabled_names(profile.spec)):
            return
        try:
            plugins = profile_of(profile, self.registry)
        except FrameworkError as error:
            self._tell(profile, EventReason.PROFILE_INVALID, str(error))
            return
        ignored = unused(plugins, profile.spec)
        if ignored:
            message = f"arguments for plugins that take none, or are not enabled: {', '.join(ignored)}"
            self._tell(profile, EventReason.PROFILE_ARGUMENTS_UNUSED, message)
        every = (*plugins.filters, *plugins.scores, *plugins.selects, *plugins.replicas.values())
        given = {one.name: one for one in every if isinstance(one, Remote) and one.arguments}
        if given and self._workers is not None:
            task = asyncio.ensure_future(self._check_arguments(profile, self._workers, list(given.values())))
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

    async def _check_arguments(self, profile: SchedulingProfile, workers: PluginWorkers, given: list[Remote]) -> None:
        """Only the plugins themselves can check their arguments."""
        for remote in given:
            if why := await workers.refuses(remote):
                self._tell(profile, EventReason.PROFILE_INVALID, why)

    async def close(self) -> None:
        tasks = tuple(self._checking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tell(self, profile: SchedulingProfile, reason: EventReason, message: str) -> None:
        if self._events is None:
            return
        about = reference_of(resources.SCHEDULING_PROFILES, profile.metadata)
        self._events.event(about, "Warning", reason, message)


def _is_unknown(name: str, registry: Registry) -> bool:
    return name not in registry.unusable and not registry.points_of(name)
