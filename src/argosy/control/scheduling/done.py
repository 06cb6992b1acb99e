"""Done: how much of a divided Job's work each of its copies has done, for the pass that decides who does the rest.

Read from the copies in members; for members that cannot be read, from the CollectedStatus. A copy that is to be removed is also
remembered as it was last seen, until the federated object has the number.
"""

from collections.abc import Iterable
from typing import Any

from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.collect import Collector, CopyChange
from argosy.control.wake import Follow
from argosy.plan.copies.placement import may_hold_copies, to_be_removed
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.registry import kind_of

__all__ = ["DoneWork"]


class DoneWork:
    name = "done work"

    def __init__(self, caches: Caches, collector: Collector):
        self._caches = caches
        self._collector = collector
        #: By object and cluster, of copies that were to be removed and are gone.
        self._gone: dict[SourceKey, dict[str, int]] = {}

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._collector.changes, self._copy_changed, "what a copy had done counts when it is gone")

    def of(self, key: SourceKey) -> dict[str, int]:
        """By cluster; empty for kinds without such work. Clusters of which nothing is known are left out."""
        kind, view = self._kind(key), self._caches.federated_view(key)
        if kind is None or view is None:
            return {}
        concerned = may_hold_copies(view)
        gone = {name: number for name, number in self._gone.pop(key, {}).items() if name in concerned}
        if gone:
            self._gone[key] = gone
        return {name: number for name in sorted(concerned) if (number := self._done(key, kind, name)) is not None}

    def forget(self, key: SourceKey) -> None:
        self._gone.pop(key, None)

    def _done(self, key: SourceKey, kind: Kind, cluster: str) -> int | None:
        remembered = self._gone.get(key, {}).get(cluster)
        if remembered is not None:
            return remembered
        found = self._collector.get(cluster, key.type, key.key)
        copy = as_object(found) if found is not None else self._collected(key, cluster)
        return _number(kind, copy) if copy is not None else None

    def _collected(self, key: SourceKey, cluster: str) -> Json | None:
        collected = self._caches.collected(key)
        entries = collected.clusters if collected is not None else ()
        fields = next((each.collected_fields for each in entries if each.cluster == cluster), None)
        return fields if isinstance(fields, dict) else None

    def _copy_changed(self, copy: CopyChange) -> None:
        key, old = copy.source, copy.change.old
        if copy.change.new is not None:
            self._gone.get(key, {}).pop(copy.cluster, None)
            return
        kind, view = self._kind(key), self._caches.federated_view(key)
        if kind is None or view is None or old is None or view.metadata.deletion_timestamp:
            return
        if copy.cluster in to_be_removed(view.metadata.annotations):
            self._gone.setdefault(key, {})[copy.cluster] = _number(kind, as_object(old))

    def _kind(self, key: SourceKey) -> Kind | None:
        config = self._caches.catalog.get(key.type)
        kind = kind_of({"apiVersion": config.api_version, "kind": config.kind}) if config is not None else None
        return kind if kind is not None and kind.work else None


def _number(kind: Kind, copy: Json) -> int:
    """Members are not trusted to report what can be understood."""
    try:
        return kind.done(copy)
    except MISSHAPEN:
        return 0
