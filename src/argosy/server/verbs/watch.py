"""watch: open a stream of events, from a version, from the current state, or with the initial events marked off."""

from functools import partial

from argosy.server import status
from argosy.server.request import Call
from argosy.server.selection import Selection
from argosy.server.storage.base import Compacted
from argosy.server.verbs.base import Api
from argosy.server.verbs.list import check_list_options, parse_version
from argosy.server.watcher import Render, Watcher

__all__ = ["watch"]


async def watch(api: Api, call: Call, render: Render | None = None, longest: float | None = None) -> Watcher:
    """A version that is no longer known ends the stream at once with an ERROR event (410), as with kube-apiserver."""
    check_list_options(call, watch=True)
    selection = Selection(
        call.kind, call.namespace, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""), call.name
    )
    version = parse_version(call.query.get("resourceVersion", ""), partial(status.plain, 500))
    timeout = float(max(0, call.integer("timeoutSeconds"))) or longest
    bookmarks = call.flag("allowWatchBookmarks")
    store = api.store
    table = store.table(call.kind.storage_key)
    initial = call.query.get("sendInitialEvents", "")
    if initial in ("true", "1") or (not initial and version == 0):
        if version > store.version:
            raise status.version_too_large(version, store.version)
        return Watcher(
            store,
            selection,
            initial=[entry for entry in table.select(selection) if selection.matches(entry)],
            mark_initial_end=bool(initial) and bookmarks,
            since=store.version,
            bookmarks=bookmarks,
            timeout=timeout,
            render=render,
        )
    if version == 0:
        # Initial events were declined: start from now.
        version = store.version
    try:
        replayed = await store.replay(selection, version)
    except Compacted:
        watcher = Watcher(store, selection)
        watcher.fail(status.expired(f"too old resource version: {version} ({table.window_start})"))
        return watcher
    # No await between reading the window and registering: nothing is missed, nothing comes twice.
    past = [*replayed, *table.since(max(version, replayed[-1].version if replayed else 0))]
    return Watcher(
        store,
        selection,
        past=past,
        since=version,
        bookmarks=bookmarks,
        timeout=timeout,
        render=render,
    )
