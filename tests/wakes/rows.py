"""The rows of the wake table, without a server: those of one process with all options, and what shards have besides."""

from types import SimpleNamespace
from typing import Any, cast

from argosy.api.shards import Shard
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings
from argosy.kube.client import Client

__all__ = ["rows"]


def rows() -> list[str]:
    """As who/source/why, in the order of the table."""
    whole = _rows(Options(katalyst=True))
    return whole + [row for row in _rows(Options(shard=Shard(1, 2))) if row not in whole]


def _rows(options: Options) -> list[str]:
    transport = cast(Any, SimpleNamespace(name="nobody"))  # nothing is asked of it
    manager = Manager(Client(transport), options=options, workers=PluginWorkers(Timings(), ()))
    return [f"{row.who}/{row.source}/{row.why}" for row in manager.subscriptions.rows]
