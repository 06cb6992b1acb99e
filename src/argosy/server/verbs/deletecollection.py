"""deletecollection: delete every object of a selection, one by one; returns their list."""

import asyncio

from argosy.kube.errors import NotFound
from argosy.kube.transport import Page, Response
from argosy.server.http.request import Call
from argosy.server.printers.rendering import render_list
from argosy.server.verbs.base import Api
from argosy.server.verbs.delete import read_options, remove
from argosy.server.verbs.list import matching, select, served_items
from argosy.server.verbs.update import TRIES

__all__ = ["deletecollection"]


async def deletecollection(api: Api, call: Call) -> Response:
    options = await read_options(api, call)
    selection = await select(api, call)
    table = api.store.table(call.kind.storage_key)
    chosen, _ = await matching(api, call, selection, table.select(selection))
    for number, entry in enumerate(chosen):
        latest = table.entries.get(entry.key)
        for _ in range(TRIES):
            # An object that is gone, or was created anew under the same name meanwhile, is not deleted.
            if latest is None or latest.uid != entry.uid:
                break
            try:
                if await remove(api, call, latest, options) is not None:
                    break
            except NotFound:
                break
            latest = table.entries.get(entry.key)
        if number % 100 == 99:
            await asyncio.sleep(0)
    items = await served_items(api, call, chosen)
    page = Page(items, str(api.store.version))
    return await render_list(api, call, page)
