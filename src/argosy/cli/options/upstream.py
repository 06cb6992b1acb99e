"""Flags of KubeAdmiral's manager that are none of ours: they are put into our words, or taken out with a word about it, so that
a command line of an installation that moves here works, or says what is to be decided.

Flags of the same name and meaning are ordinary options. docs/running.md has the table.
"""

import sys
from collections import deque
from typing import Any, Final, NamedTuple

import typer

from argosy.cli.output.failures import Failure

__all__ = ["FLAGS", "TakesUpstreamFlags", "Translated", "translated"]

_WITHOUT_EFFECT: Final = {
    "--leader-elect-resource-name": "the lease has a name of its own, by which processes with other shards know it",
    "--cascading-deletion-worker-count": "all copies in a cluster that leaves are deleted as fast as it takes them",
    "--enable-profiling": "there is no profiling server",
    "--max-pod-listers": "it has none in KubeAdmiral either; few fields of pods are read",
    "--enable-pod-pruning": "it has none in KubeAdmiral either; few fields of pods are read",
    "--prometheus-addr": "/metrics is where /livez and /readyz are: --probe-address",
    "--prometheus-port": "/metrics is where /livez and /readyz are: --port",
    "--prometheus-quantiles": "durations are histograms: compute quantiles from their buckets",
    "--export-prometheus": "/metrics is always served",
}
#: Without effect and without a word if they say this: so it is anyway.
_SO_ANYWAY: Final = {
    "--enable-profiling": "false",
    "--export-prometheus": "true",
    "--max-pod-listers": "0",
    "--enable-pod-pruning": "false",
    "--master": "",
    "--controllers": "*",
}
_REFUSED: Final = {
    "--master": ("the address of the control plane is part of its kubeconfig", "use --kubeconfig and --context"),
    "--controllers": (
        "the controllers run together or not at all",
        "leave a step out for a kind in spec.controllers of its FederatedTypeConfig",
    ),
    "--resource-aggregation-node-filter": (
        "capacity is counted over all nodes that take pods",
        "cordon or taint nodes that are not to count",
    ),
}
#: May stand alone, and have their value behind `=`, as Go has it.
_SWITCHES: Final = {
    "--enable-leader-elect": ("--leader-elect", "--no-leader-elect"),
    "--enable-katalyst-support": ("--enable-katalyst-support", ""),
    "--enable-profiling": ("", ""),
    "--export-prometheus": ("", ""),
    "--enable-pod-pruning": ("", ""),
}
_LOGGING: Final = "--klog-"
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "true", "TRUE", "True"}),
    frozenset({"0", "f", "F", "false", "FALSE", "False"}),
)
#: Those that no command has as an option.
FLAGS: Final = frozenset({*_WITHOUT_EFFECT, *_REFUSED, *_SWITCHES, f"{_LOGGING}v"})


class Translated(NamedTuple):
    arguments: list[str]
    #: What is to be said of flags that have no effect.
    words: list[str]


class TakesUpstreamFlags(typer.core.TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        arguments, words = translated(args)
        for word in words:
            print(f"warning: {word}", file=sys.stderr)
        return super().parse_args(ctx, arguments)


def translated(arguments: list[str]) -> Translated:
    """Raises Failure for what cannot be done."""
    kept: list[str] = []
    words: list[str] = []
    left = deque(arguments)
    while left:
        argument = left.popleft()
        flag, given, value = argument.partition("=")
        if argument == "--":
            return Translated([*kept, argument, *left], words)
        if flag in _SWITCHES:
            on = not given or _is_on(flag, value)
            kept += [each for each in [_SWITCHES[flag][0 if on else 1]] if each]
            value = "true" if on else "false"
        elif flag.startswith(_LOGGING):  # some of them are switches
            value = value if given or not left or left[0].startswith("-") else left.popleft()
        elif flag in _WITHOUT_EFFECT or flag in _REFUSED:
            if not given and not left:
                raise Failure(f"{flag} needs a value", code=2)
            value = value if given else left.popleft()
        else:
            kept.append(argument)
            continue
        if flag in _REFUSED and value != _SO_ANYWAY.get(flag):
            why, hint = _REFUSED[flag]
            raise Failure(f"{flag} of KubeAdmiral is not supported: {why}", hint, code=2)
        if flag.startswith(_LOGGING):
            words.append(f"{flag} has no effect: logs go to stderr, and have one level")
        elif flag in _WITHOUT_EFFECT and value != _SO_ANYWAY.get(flag):
            words.append(f"{flag} has no effect: {_WITHOUT_EFFECT[flag]}")
    return Translated(kept, words)


def _is_on(flag: str, value: str) -> bool:
    if value not in _TRUE | _FALSE:
        raise Failure(f"{flag}: {value!r} is neither true nor false", code=2)
    return value in _TRUE
