"""Loading: the plugins of installed packages, found by entry point, as functions in this process.

The control plane does not load them: it asks their own process (`worker`). `installed` is for experiments and tests.

A package that cannot be loaded affects only its own plugins: profiles that name one of its entry points get the reason.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Filter, Replicas, Score, Select
from argosy.plan.scheduling.profile import InProcess, Registry
from argosy.plugins.guard import guarded

__all__ = ["GROUP", "installed", "offered", "plugins_of"]

GROUP: Final = "argosy.plugins"
log = logging.getLogger(__name__)


def installed(found: Iterable[EntryPoint] | None = None, registry: Registry = IN_TREE) -> Registry:
    """The plugins a profile can name: built-in ones, and those of the entry points (by default, of all installed packages)."""
    for origin, points in offered(found).items():
        plugins: list[InProcess] = []
        unusable: dict[str, str] = {}
        for point in points:
            try:
                plugins += plugins_of(point.load())
            except Exception as error:
                log.exception("the plugins of %s (%s) cannot be loaded", origin, point.value)
                unusable[point.name] = f"{origin} cannot be loaded: {type(error).__name__}: {error}"
        registry = registry.with_plugins(map(guarded, plugins), origin).with_unusable(unusable)
        log.info("plugins of %s: %s", origin, ", ".join(sorted({plugin.name for plugin in plugins})) or "none")
    return registry


def offered(found: Iterable[EntryPoint] | None = None) -> dict[str, list[EntryPoint]]:
    """The entry points by package, by default of all installed packages. Loads nothing."""
    by_package: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=GROUP) if found is None else found:
        by_package[_origin(point)].append(point)
    return {origin: sorted(by_package[origin], key=lambda point: point.name) for origin in sorted(by_package)}


def plugins_of(loaded: Any) -> list[InProcess]:
    """The plugins of an entry point, which is one plugin or a collection. Raises TypeError and ValueError."""
    plugins = [loaded] if isinstance(loaded, Filter | Score | Select | Replicas) else loaded
    if not isinstance(plugins, list | tuple | set | frozenset):
        raise TypeError(f"a plugin or a list of plugins is needed, not {type(loaded).__name__}")
    for plugin in plugins:
        if not isinstance(plugin, Filter | Score | Select | Replicas):
            raise TypeError(f"a Filter, Score, Select or Replicas is needed, not {type(plugin).__name__}")
        if not isinstance(plugin.name, str) or not plugin.name:
            raise ValueError("a plugin has no name")
    return list(plugins)


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
