"""deletecollection: delete every object of a selection, one by one; answers with the list of them."""

import asyncio

from argosy.kube.errors import NotFound
from argosy.kube.transport import Response
from argosy.server.encoding import encode_list
from argosy.server.entry import served
from argosy.server.request import Call
from argosy.server.selection import Selection
from argosy.server.verbs.base import Api, answer
from argosy.server.verbs.delete import read_options, remove
from argosy.server.verbs.list import check_list_options
from argosy.server.verbs.update import TRIES

__all__ = ["deletecollection"]


async def deletecollection(api: Api, call: Call) -> Response:
    options = read_options(call)
    check_list_options(call, watch=False)
    selection = Selection(
        call.kind, call.namespace, call.query.get("labelSelector", ""), call.query.get("fieldSelector", "")
    )
    table = api.store.table(call.kind.storage_key)
    chosen = [entry for entry in table.select(selection) if selection.matches(entry)]
    for number, entry in enumerate(chosen):
        latest = table.entries.get(entry.key)
        for _ in range(TRIES):
            # One that is gone, or was made anew under the same name meanwhile, is not ours to delete.
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
    items = [served(call.kind, entry) for entry in chosen]
    return answer(call, encode_list(call.kind, items, {"resourceVersion": str(api.store.version)}))
