"""Profiles: the plugins of a run, from the available plugins and a SchedulingProfile.

A point starts from the built-in plugins, drops those that are disabled (`*`: all) and appends those that are enabled, in
order, with their weights and arguments. The replicas point is by strategy: a plugin enabled there replaces the built-in one
of its strategy, or all of them. Any error makes the whole profile unusable: it schedules nothing rather than something else
than requested. A name that two plugins claim is an error only in profiles that use it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from argosy.api.profiles import Plugin, PluginSet, SchedulingProfile, SchedulingProfileSpec
from argosy.fleet.member import digest
from argosy.plan.scheduling.framework import Filter, FrameworkError, Profile, Remote, Replicas, Score, Select

__all__ = [
    "POINTS",
    "InProcess",
    "Registry",
    "RemotePlugin",
    "configured",
    "content_of",
    "enabled_names",
    "merge_profile",
    "unused",
]

Point = Literal["filter", "score", "select", "replicas"]
POINTS: tuple[Point, ...] = ("filter", "score", "select", "replicas")
InProcess = Filter | Score | Select | Replicas

#: Sums of weighted scores must fit in 64 bits, however many plugins there are.
_LARGEST_WEIGHT = 10**9
_POINT_OF: dict[type[Any], Point] = {Filter: "filter", Score: "score", Select: "select", Replicas: "replicas"}


class RemotePlugin(NamedTuple):
    """A plugin that runs elsewhere, and its extension points. `content` changes with whatever its answers may depend on."""

    name: str
    phases: tuple[Literal["filter", "score", "select"], ...]
    content: str = ""


class Registry(msgspec.Struct, frozen=True):
    """The plugins a profile may name, by extension point."""

    filters: Mapping[str, Filter | Remote] = {}
    scores: Mapping[str, Score | Remote] = {}
    selects: Mapping[str, Select | Remote] = {}
    replicas: Mapping[str, Replicas | Remote] = {}
    #: Names that cannot be used, and why.
    unusable: Mapping[str, str] = {}
    #: What a name stands for: a version, the settings of a webhook. Other content means another plugin.
    contents: Mapping[str, str] = {}

    def at(self, point: Point) -> Mapping[str, Any]:
        return {"filter": self.filters, "score": self.scores, "select": self.selects, "replicas": self.replicas}[point]

    def points_of(self, name: str) -> list[Point]:
        return [point for point in POINTS if name in self.at(point)]

    def with_plugins(self, plugins: Iterable[InProcess | Remote], origin: str) -> "Registry":
        """With plugins of an external package, which `origin` names."""
        plugins = tuple(plugins)
        added: dict[Point, dict[str, Any]] = {point: {} for point in POINTS}
        unusable = dict(self.unusable)
        for plugin in plugins:
            point = plugin.phase if isinstance(plugin, Remote) else _POINT_OF[type(plugin)]
            if self.points_of(plugin.name):
                unusable[plugin.name] = f"{origin} has a plugin whose name is taken"
            elif plugin.name in added[point]:
                unusable[plugin.name] = f"{origin} has two {point} plugins of that name"
            added[point].setdefault(plugin.name, plugin)
        return self._with(added, unusable, {plugin.name: origin for plugin in plugins})

    def with_remotes(self, remotes: Iterable[RemotePlugin]) -> "Registry":
        added: dict[Point, dict[str, Any]] = {point: {} for point in POINTS}
        unusable, contents = dict(self.unusable), {}
        for remote in remotes:
            if self.points_of(remote.name):
                unusable[remote.name] = "a webhook has the name of another plugin: give it a name of its own"
            for phase in remote.phases:
                added[phase][remote.name] = Remote(remote.name, phase)
            contents[remote.name] = remote.content
        return self._with(added, unusable, contents)

    def with_unusable(self, unusable: Mapping[str, str]) -> "Registry":
        """With names that cannot be used, and why."""
        return msgspec.structs.replace(self, unusable={**self.unusable, **unusable})

    def _with(
        self, added: Mapping[Point, Mapping[str, Any]], unusable: Mapping[str, str], contents: Mapping[str, str]
    ) -> "Registry":
        """Plugins that were there before keep their names."""
        return Registry(
            filters={**added["filter"], **self.filters},
            scores={**added["score"], **self.scores},
            selects={**added["select"], **self.selects},
            replicas={**added["replicas"], **self.replicas},
            unusable=unusable,
            contents={**self.contents, **contents},
        )


def merge_profile(default: Profile, registry: Registry, wanted: SchedulingProfileSpec) -> Profile:
    """The default profile with a SchedulingProfile's changes. Raises FrameworkError, with a message for its author."""
    plugins, arguments = wanted.plugins, _arguments(wanted)
    merged = Profile(
        filters=_merged("filter", default.filters, registry, plugins.filter, arguments),
        scores=_merged("score", default.scores, registry, plugins.score, arguments),
        selects=_merged("select", default.selects, registry, plugins.select, arguments),
        replicas=_merged_replicas(default.replicas, registry, plugins.replicas, arguments),
    )
    if (merged.filters, merged.scores, merged.selects) != (default.filters, default.scores, default.selects):
        return merged
    return msgspec.structs.replace(merged, shared_as=default.shared_as)


def content_of(profile: SchedulingProfile, registry: Registry) -> str:
    """Changes with everything that a profile's decisions depend on: its spec, and the content behind the names in it."""
    spec = msgspec.to_builtins(profile.spec, order="deterministic")
    behind = [[name, registry.contents.get(name, "")] for name in enabled_names(profile.spec)]
    return f"{digest([spec, behind]):016x}"


def enabled_names(spec: SchedulingProfileSpec) -> list[str]:
    """The plugins it enables, at any point."""
    plugins = spec.plugins
    sets = (plugins.filter, plugins.score, plugins.select, plugins.replicas)
    return sorted({plugin.name for each in sets for plugin in each.enabled})


def unused(profile: Profile, wanted: SchedulingProfileSpec) -> list[str]:
    """Names of plugins that have arguments in this profile but take none."""
    every: list[Any] = [*profile.filters, *profile.scores, *profile.selects, *profile.replicas.values()]
    taking = {plugin.name for plugin in every if _takes_arguments(plugin)}
    return [config.name for config in wanted.plugin_config if config.name not in taking]


def _arguments(wanted: SchedulingProfileSpec) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for config in wanted.plugin_config:
        if config.name in arguments:
            raise FrameworkError(f"pluginConfig has arguments for {config.name!r} twice")
        arguments[config.name] = config.args
    return arguments


_P = TypeVar("_P", Filter | Remote, Score | Remote, Select | Remote)
_Q = TypeVar("_Q", bound=Any)


def _merged(
    point: Point, default: Sequence[_P], registry: Registry, wanted: PluginSet, arguments: Mapping[str, Any]
) -> tuple[_P, ...]:
    disabled = {plugin.name for plugin in wanted.disabled}
    merged = [] if "*" in disabled else [plugin for plugin in default if plugin.name not in disabled]
    for named in wanted.enabled:
        plugin: _P = _found(point, registry, named)
        if any(present.name == plugin.name for present in merged):
            raise FrameworkError(f"{point} plugin {named.name!r} is enabled twice")
        if isinstance(plugin, Score | Remote):
            plugin = plugin._replace(weight=_weight(named))
        merged.append(plugin)
    return tuple(configured(plugin, arguments) for plugin in merged)


def _merged_replicas(
    default: Mapping[str, Replicas | Remote], registry: Registry, wanted: PluginSet, arguments: Mapping[str, Any]
) -> dict[str, Replicas | Remote]:
    """By strategy. A plugin without a strategy divides for all strategies that no other plugin was enabled for."""
    disabled = {plugin.name for plugin in wanted.disabled}
    merged = {strategy: plugin for strategy, plugin in default.items() if not disabled & {"*", plugin.name}}
    taken: dict[str, str] = {}
    for named in wanted.enabled:
        if named.strategy in taken:
            for_whom = f"strategy {named.strategy}" if named.strategy else "all strategies"
            raise FrameworkError(
                f"replicas plugins {taken[named.strategy]!r} and {named.name!r} both divide for {for_whom}"
            )
        taken[named.strategy] = named.name
    for named in sorted(wanted.enabled, key=lambda plugin: plugin.strategy):
        plugin: Replicas | Remote = _found("replicas", registry, named)
        merged.update(dict.fromkeys([named.strategy] if named.strategy else default, plugin))
    return {strategy: configured(plugin, arguments) for strategy, plugin in merged.items()}


def _found(point: Point, registry: Registry, named: Plugin) -> Any:
    name = named.name
    if name in registry.unusable:
        raise FrameworkError(f"{point} plugin {name!r} cannot be used: {registry.unusable[name]}")
    plugin = registry.at(point).get(name)
    if plugin is not None:
        return plugin
    others = registry.points_of(name)
    if others:
        raise FrameworkError(f"{name!r} is not a {point} plugin (it is one for: {', '.join(others)})")
    raise FrameworkError(f"there is no {point} plugin {name!r}")


def _weight(named: Plugin) -> int:
    weight = named.weight or named.wait or 1
    if not 0 < weight <= _LARGEST_WEIGHT:
        raise FrameworkError(f"the weight of plugin {named.name!r} must be from 1 to {_LARGEST_WEIGHT}, not {weight}")
    return weight


def _takes_arguments(plugin: Any) -> bool:
    return plugin.configurable if isinstance(plugin, Remote) else plugin.configure is not None


def configured(plugin: _Q, arguments: Mapping[str, Any]) -> _Q:
    """The plugin with its arguments, if it takes any. A remote plugin is sent them. Raises FrameworkError.

    Arguments of plugins that take none are reported with the profile: see `unused`.
    """
    if plugin.name not in arguments or not _takes_arguments(plugin):
        return plugin
    if isinstance(plugin, Remote):
        sent: _Q = plugin._replace(arguments=(arguments[plugin.name],))
        return sent
    configure: Any = plugin.configure
    try:
        configured = configure(arguments[plugin.name])
    except Exception as error:  # external code
        raise FrameworkError(f"pluginConfig of {plugin.name!r}: {_said(error)}") from None
    if type(configured) is not type(plugin):
        raise FrameworkError(f"pluginConfig of {plugin.name!r}: configure returned another type of plugin")
    kept = {"name": plugin.name, "weight": plugin.weight} if isinstance(plugin, Score) else {"name": plugin.name}
    replaced: _Q = configured._replace(**kept)
    return replaced


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: {error}"
