"""list: the objects of a selection at one version, whole or page by page.

All pages of a list show the state of the first one's version, as long as the history goes back to it. The cache holds every
acknowledged write, so the newest state always satisfies "at least this version".
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence

import msgspec

from argosy.kube.errors import ApiError
from argosy.kube.transport import Page
from argosy.server import status
from argosy.server.fielderrors import FieldError, forbidden, not_supported
from argosy.server.http.request import Call
from argosy.server.storage.base import Compacted
from argosy.server.strconv import parse_uint
from argosy.server.verbs.base import Api
from argosy.server.watchcache.entry import Entry, served
from argosy.server.watchcache.selection import Selection, check_selectors

__all__ = ["REQUIREMENT_EFFORT", "list_page", "matching", "parse_version", "select", "served_items"]

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
    "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
    "time the first chunk was returned and now may show up in the list."
)
#: Entries processed between two checks of the clock.
_SLICE = 2000
#: The cost of parsing a character of a selector, and of applying a requirement, in bytes of an object that is written.
_SELECTOR_EFFORT = 4
REQUIREMENT_EFFORT = 2
#: So many entries are processed in the time of writing one byte of an object.
_ENTRIES = 2


class _Token(msgspec.Struct):
    v: str = "meta.k8s.io/v1"
    #: -1 asks for the newest state: the list is then no longer consistent with its first page.
    rv: int = 0
    start: str = ""


async def list_page(api: Api, call: Call) -> Page:
    selection = await select(api, call)
    limit = max(0, call.integer("limit"))
    version, entries = await _state(api, call, selection)
    if selection.everything:
        chosen: Sequence[Entry] = entries[:limit] if limit else entries
        more = len(entries) - len(chosen)
    else:
        chosen, more = await matching(api, call, selection, entries, limit)
    items = await served_items(api, call, chosen)
    if not more:
        return Page(items, str(version))
    start = chosen[-1].key[len(selection.prefix) :] + "\0"
    # With selectors the rest was not checked, so its number is unknown; Kubernetes leaves it out as well.
    return Page(items, str(version), _encode_token(version, start), more if selection.everything else None)


async def _state(api: Api, call: Call, selection: Selection) -> tuple[int, Sequence[Entry]]:
    """The version the list shows, and all entries of the selection's prefix at that version that are still to be listed."""
    token = call.query.get("continue", "")
    table = api.store.table(call.kind.storage_key)
    if token:
        at, start = _decode_token(token)
        after = selection.prefix + start.removesuffix("\0")
        if at < 0:
            return api.store.version, table.after(table.select(selection), after)
        if at > api.store.version:
            raise status.version_too_large(at, api.store.version)
        try:
            return at, table.after(await api.store.entries_at(selection, at), after)
        except Compacted:
            raise status.expired(TOO_OLD, _encode_token(-1, start)) from None
    wanted = parse_version(call.query.get("resourceVersion", ""), _refused)
    if wanted > api.store.version:
        raise status.version_too_large(wanted, api.store.version)
    match = call.query.get("resourceVersionMatch", "")
    # A first page requested at a version has always meant exactly that version.
    exact = match == "Exact" or (not match and wanted > 0 and call.integer("limit") > 0)
    if not exact:
        return api.store.version, table.select(selection)
    try:
        return wanted, await api.store.entries_at(selection, wanted)
    except Compacted:
        raise status.expired(f"The resourceVersion for the provided list is too old: {wanted}") from None


async def select(api: Api, call: Call, *, watch: bool = False) -> Selection:
    """What the query selects. Raises what Kubernetes refuses of it."""
    labels, fields = call.query.get("labelSelector", ""), call.query.get("fieldSelector", "")
    size = (len(labels) + len(fields)) * _SELECTOR_EFFORT
    await api.run(call, size, check_list_options, call, watch=watch)
    return await api.run(call, size, Selection, call.kind, call.namespace, labels, fields, call.name)


async def matching(
    api: Api, call: Call, selection: Selection, entries: Sequence[Entry], limit: int = 0
) -> tuple[list[Entry], int]:
    """The first `limit` entries that match, and how many were not checked."""
    size = len(entries) * (1 + selection.requirements * REQUIREMENT_EFFORT)
    api.admit(call, size)
    return await api.run(call, size, _matching, selection, entries, limit)


def _matching(selection: Selection, entries: Sequence[Entry], limit: int) -> tuple[list[Entry], int]:
    chosen: list[Entry] = []
    for number, entry in enumerate(entries):
        if not selection.matches(entry):
            continue
        chosen.append(entry)
        if len(chosen) == limit:
            return chosen, len(entries) - number - 1
    return chosen, 0


async def served_items(api: Api, call: Call, entries: Sequence[Entry]) -> list[bytes]:
    """The objects in the version of the call: as stored, or each converted, which takes time."""
    kind = call.kind
    version, since = kind.api_version, kind.rules_since
    changed = 0
    for start in range(0, len(entries), _SLICE):
        some = entries[start : start + _SLICE]
        # The inlined `served_as_stored`, to save a call for each.
        changed += sum(len(e.value) for e in some if e.api_version != version or e.version < since)
        if len(some) == _SLICE:
            await asyncio.sleep(0)
    if not changed and len(entries) <= _SLICE:
        return [entry.value for entry in entries]
    if changed:
        await api.ready(call)
    size = len(entries) // _ENTRIES + changed
    api.admit(call, size)
    return await api.run(call, size, lambda: [served(kind, entry) for entry in entries])


def parse_version(text: str, refuse: Callable[[str], ApiError]) -> int:
    """The number in a resourceVersion parameter, 0 for none; `refuse` makes the error, which differs between verbs."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise refuse(f'resourceVersion: Invalid value: "{text}": {error}') from None


def _refused(why: str) -> ApiError:
    return status.bad_request(f"invalid resource version: {why}")


def check_list_options(call: Call, *, watch: bool) -> None:
    """The combinations of list parameters that Kubernetes refuses."""
    query = call.query
    call.integer("timeoutSeconds")
    call.integer("limit")
    check_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""))
    match, version, initial = (
        query.get("resourceVersionMatch", ""),
        query.get("resourceVersion", ""),
        query.get("sendInitialEvents", ""),
    )
    errors: list[FieldError] = []
    if watch and initial:
        if match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden("resourceVersionMatch", text))
    elif initial:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    elif match and watch:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(forbidden("resourceVersionMatch", text))
        if match != "NotOlderThan":
            errors.append(not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
    elif match:
        if not version:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(forbidden("resourceVersionMatch", text))
        if query.get("continue"):
            text = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", text))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden("resourceVersionMatch", text))
    if errors:
        raise status.invalid_kind("meta.k8s.io", "ListOptions", "", errors)
    if query.get("continue") and version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")


def _encode_token(version: int, start: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_Token(rv=version, start=start))).rstrip(b"=").decode()


def _decode_token(text: str) -> tuple[int, str]:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise status.bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if token.v != "meta.k8s.io/v1" or token.rv == 0 or not token.start:
        raise status.bad_request(
            "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion"
        )
    return token.rv, token.start
