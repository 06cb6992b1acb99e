"""Subresources that act instead of being stored: bindings, and evictions (which have their own module).

Those that need a node (logs, exec, port-forward, proxies) return an error that says so.
"""

from collections.abc import Callable

import msgspec

from argosy.kube.timestamps import now
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.app import Handler, Handlers
from argosy.server.http.request import Call
from argosy.server.kinds.pods.pods import BindRefused, bind
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Changed
from argosy.server.subresources.evictions import eviction_handler
from argosy.server.subresources.shared import done, only_create
from argosy.server.verbs.base import Api, current, decode_served, read_object
from argosy.server.verbs.commit import encoder
from argosy.server.verbs.update import TRIES

__all__ = ["action_handlers"]

_NEED_A_NODE = ("log", "exec", "attach", "portforward", "proxy")


def action_handlers(api: Api) -> Handlers:
    """For those of the kinds that are served."""
    handlers: dict[tuple[str, str, str], Handler] = {
        (kind.group, kind.plural, subresource): _needs_a_node(api)
        for kind in api.registry
        for subresource in _NEED_A_NODE
        if subresource in kind.subresources
    }
    handlers["", "pods", "eviction"] = eviction_handler(api)
    binding = api.registry.find("", "v1", "bindings")
    if binding is not None:
        handlers["", "pods", "binding"] = handlers["", "bindings", ""] = _binding(api, binding)
    return handlers


def _binding(api: Api, kind: Kind) -> Handler:
    async def handle(call: Call) -> Response:
        only_create(call)
        order = await read_object(api, call.but(kind=kind), call.write_options("CreateOptions").validation)
        errors = kind.strategy.validate(order)
        if errors:
            raise status.plain(500, "; ".join(str(error) for error in errors))
        pods = api.registry.find("", "v1", "pods")
        assert pods is not None
        shown = msgspec.structs.replace(pods, plural="pods/binding")
        target = call.but(kind=pods, name=call.name or order["metadata"].get("name", ""))
        uid = order["metadata"].get("uid")

        def change(pod: Object) -> None:
            if uid and uid != pod["metadata"]["uid"]:
                raise status.conflict(shown, target.name, f"the UID in the binding ({uid}) is not the pod's")
            try:
                bind(pod, order, now())
            except BindRefused as refused:
                raise status.conflict(shown, target.name, str(refused)) from None

        await _modify(api, target, change)
        return done(call)

    return handle


async def _modify(api: Api, call: Call, change: Callable[[Object], None]) -> None:
    for _ in range(TRIES):
        entry = current(api, call)
        obj = await api.run(call, len(entry.value), decode_served, call.kind, entry)
        change(obj)
        try:
            await api.store.replace(entry.key, entry.version, encoder(call.kind, obj))
            return
        except Changed:
            continue
    raise status.conflict(call.kind, call.name)


def _needs_a_node(api: Api) -> Handler:
    async def handle(call: Call) -> Response:
        current(api, call)
        what = f"{call.kind.plural}/{call.subresource.partition('/')[0]}"
        raise status.not_implemented(f"{what} needs a node, and there is none behind this server")

    return handle
