"""watch: open a stream of events, from a version, from the current state, or with the initial events marked off."""

from collections.abc import Sequence
from functools import partial

from argosy.server import status
from argosy.server.http.request import Call
from argosy.server.registry import Kind
from argosy.server.storage.base import Compacted
from argosy.server.verbs.base import Api
from argosy.server.verbs.list import REQUIREMENT_EFFORT, matching, parse_version, select
from argosy.server.watchcache.entry import Entry, served_as_stored
from argosy.server.watchcache.selection import Selection
from argosy.server.watchcache.store import Store, StoreEvent, Table
from argosy.server.watchcache.watcher import Item, Reader, Renderer, Watcher, judge

__all__ = ["watch"]


#: Limit for the requirements of large selectors, in all watches of a resource together: all are checked with each change.
MAX_REQUIREMENTS = 50_000


async def watch(
    api: Api, call: Call, reader: Reader, renderer: Renderer | None = None, longest: float | None = None
) -> Watcher:
    """An expired version ends the stream at once with an ERROR event (410), as in kube-apiserver."""
    selection = await select(api, call, watch=True)
    version = parse_version(call.query.get("resourceVersion", ""), partial(status.plain, 500))
    timeout = float(max(0, call.integer("timeoutSeconds"))) or longest
    bookmarks = call.flag("allowWatchBookmarks")
    store = api.store
    table = store.table(call.kind.storage_key)
    if call.kind.needs and _converts(call.kind, table, version):
        # Making the events cannot wait, so it is prepared now.
        await api.ready(call)
    initial = call.query.get("sendInitialEvents", "")
    if initial in ("true", "1") or (not initial and version == 0):
        if version > store.version:
            raise status.version_too_large(version, store.version)
        version = store.version
        present: Sequence[Entry] = table.select(selection)
        if not selection.everything:
            # Checking many objects takes a while; changes meanwhile come after them.
            present, _ = await matching(api, call, selection, present)
        marked = bool(initial) and bookmarks
    else:
        present, marked = (), False
        if version == 0:
            # Initial events were declined: start from now.
            version = store.version
    try:
        past = await _judged(api, call, selection, version)
    except Compacted:
        watcher = Watcher(store, selection, reader)
        watcher.fail(status.expired(f"too old resource version: {version} ({table.window_start})"))
        return watcher
    if selection.many and table.requirements + selection.many > MAX_REQUIREMENTS:
        raise status.too_many_requests("too many requirements in the selectors of watches, please try again later")
    return Watcher(
        store,
        selection,
        reader,
        initial=present,
        past=past,
        mark_initial_end=marked,
        since=version,
        bookmarks=bookmarks,
        timeout=timeout,
        renderer=renderer,
    )


def _converts(kind: Kind, table: Table, since: int) -> bool:
    """Whether there may be events of objects stored in another version, or by an older schema."""
    if len(kind.needs) > 1 or kind.storage_version != kind.version or 0 < since < kind.rules_since:
        return True
    return not all(served_as_stored(kind, entry) for entry in table.entries.values())


async def _judged(api: Api, call: Call, selection: Selection, version: int) -> list[Item]:
    """The changes after a version up to this moment, as the selection sees them. Raises Compacted."""
    past: list[Item] = []
    while True:
        events = await _since(api.store, selection, version)
        if not events:
            return past
        effort = len(events) * (1 + selection.requirements * REQUIREMENT_EFFORT)
        if selection.requirements:
            # An object that leaves the selection is shown in its last matching state, which is made anew.
            effort += sum(len(event.previous.value) for event in events if event.previous is not None)
        large = api.large(call, effort)
        past += await api.run(call, effort, _judge, selection, events)
        if not large:
            return past  # without a pause since the events were gathered
        version = events[-1].version


def _judge(selection: Selection, events: Sequence[StoreEvent]) -> list[Item]:
    return [item for event in events if (item := judge(selection, event)) is not None]


async def _since(store: Store, selection: Selection, version: int) -> list[StoreEvent]:
    """Events after a version up to this moment: a watch registered at once misses nothing and gets nothing twice.

    Raises Compacted.
    """
    replayed = await store.replay(selection, version)
    table = store.table(selection.kind.storage_key)
    return [*replayed, *table.since(max(version, replayed[-1].version if replayed else 0))]
