"""Evictions: delete a pod, if its disruption budget allows.

A budget is decreased before the pod is deleted, so that two concurrent evictions never use the same allowance; the disruption
controller recomputes it afterwards. Pods that do not run are deleted without a check.
"""

import msgspec

from argosy.kube import schema
from argosy.kube.conditions import find, is_true, set_condition
from argosy.kube.errors import ApiError
from argosy.kube.selectors import SelectorError, from_label_selector
from argosy.kube.timestamps import now
from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.app import Handler
from argosy.server.http.request import Call
from argosy.server.kinds import policy
from argosy.server.registry import Kind, Object
from argosy.server.storage.base import Changed
from argosy.server.subresources.shared import done, only_create
from argosy.server.verbs.base import Api, current, decode_served, read_object
from argosy.server.verbs.commit import encoder
from argosy.server.verbs.delete import DeleteOptions, remove
from argosy.server.verbs.update import TRIES
from argosy.server.watchcache.entry import Entry

__all__ = ["eviction_handler"]

_BUDGETS = "policy/poddisruptionbudgets"
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_ALLOWED = "DisruptionAllowed"
#: Evictions that no controller has confirmed yet; more than this mean that no controller runs.
_MAX_UNCONFIRMED = 2000


def eviction_handler(api: Api) -> Handler:
    """Handles create of pods/eviction."""
    kind = policy.eviction(schema.load())

    async def handle(call: Call) -> Response:
        only_create(call)
        options = await _options(api, call.but(kind=kind))
        counted = False
        for _ in range(TRIES):
            entry = current(api, call)
            pod = await api.run(call, len(entry.value), decode_served, call.kind, entry)
            if not counted and _is_guarded(entry, pod):
                await _count(api, pod, dry_run=bool(options.dry_run))
                counted = True
            marked = entry if options.dry_run else await _mark(api, call.kind, entry, pod, options)
            if marked is None:
                continue
            if await remove(api, call.but(subresource=""), marked, options) is not None:
                return done(call)
        raise status.conflict(call.kind, call.name)

    return handle


async def _options(api: Api, call: Call) -> DeleteOptions:
    eviction = await read_object(api, call, call.write_options("CreateOptions").validation)
    if eviction["metadata"].get("name") != call.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    try:
        options = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"decoding Eviction: {error}") from None
    return msgspec.structs.replace(options, dry_run=["All"]) if call.dry_run else options


def _is_guarded(entry: Entry, pod: Object) -> bool:
    """Whether a budget applies: pods that have ended, are terminating or never started disrupt nothing."""
    return not entry.deleting and (pod.get("status") or {}).get("phase") not in ("Pending", "Succeeded", "Failed")


async def _count(api: Api, pod: Object, *, dry_run: bool) -> None:
    """Take one disruption from the pod's budget, if it has one. Raises 429 if none is allowed."""
    kind = api.registry.find("policy", "v1", "poddisruptionbudgets")
    if kind is None:
        return
    for _ in range(TRIES):
        entries = _budgets(api, pod)
        if len(entries) > 1:
            raise status.plain(500, _SEVERAL)
        if not entries:
            return
        budget = decode_served(kind, entries[0])
        if _may_go_unready(pod, budget):
            return
        _spend(kind, budget, pod["metadata"]["name"])
        if dry_run:
            return
        try:
            await api.store.replace(entries[0].key, entries[0].version, encoder(kind, budget))
            return
        except Changed:
            continue
    raise status.conflict(kind, budget["metadata"]["name"])


def _budgets(api: Api, pod: Object) -> list[Entry]:
    labels = pod["metadata"].get("labels") or {}
    prefix = f"{_BUDGETS}/{pod['metadata']['namespace']}/"
    found = []
    for key, entry in api.store.table(_BUDGETS).entries.items():
        if not key.startswith(prefix):
            continue
        try:
            selector = from_label_selector((entry.decode().get("spec") or {}).get("selector"))
        except SelectorError:
            continue
        if selector.matches(labels):
            found.append(entry)
    return found


def _may_go_unready(pod: Object, budget: Object) -> bool:
    """A pod that is not ready does not count, so it may go if its budget is met without it (or allows it)."""
    if is_true((pod.get("status") or {}).get("conditions"), "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    told = budget.get("status") or {}
    desired = told.get("desiredHealthy") or 0
    return desired > 0 and (told.get("currentHealthy") or 0) >= desired


def _spend(kind: Kind, budget: Object, pod: str) -> None:
    name, told = budget["metadata"]["name"], budget.setdefault("status", {})
    if (told.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", seconds=10)
    allowed = told.get("disruptionsAllowed") or 0
    shown = msgspec.structs.replace(kind, plural="poddisruptionbudget")
    if allowed < 0:
        raise status.forbidden(shown, name, "pdb disruptions allowed is negative")
    if len(told.get("disruptedPods") or {}) > _MAX_UNCONFIRMED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status.forbidden(shown, name, why)
    if not allowed:
        raise _refused(_no_room(name, told), seconds=0)
    told["disruptionsAllowed"] = allowed - 1
    told["disruptedPods"] = {**(told.get("disruptedPods") or {}), pod: now()}
    if allowed == 1:
        told["conditions"] = set_condition(
            told.get("conditions"), _ALLOWED, "False", "InsufficientPods", "", now(), told.get("observedGeneration")
        )


def _no_room(name: str, told: Object) -> str:
    condition = find(told.get("conditions"), _ALLOWED) or {}
    message = (condition.get("message") or "") if condition.get("status") == "False" else ""
    current, desired = told.get("currentHealthy") or 0, told.get("desiredHealthy") or 0
    # The counts of a budget whose last computation failed are invalid.
    if message and condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if message:
        reason = condition.get("reason", "")
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refused(why: str, *, seconds: int) -> ApiError:
    return status.too_many_requests(_REFUSED, seconds, [{"reason": "DisruptionBudget", "message": why}])


async def _mark(api: Api, kind: Kind, entry: Entry, pod: Object, options: DeleteOptions) -> Entry | None:
    """Record the reason in the pod's status. None: it changed meanwhile."""
    wanted = options.preconditions
    if wanted is not None and (
        wanted.uid not in (None, entry.uid) or wanted.resource_version not in (None, str(entry.version))
    ):
        # The deletion will report the mismatch.
        return entry
    told = pod.setdefault("status", {})
    told["conditions"] = set_condition(
        told.get("conditions"), "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting", now()
    )
    kind.strategy.default(pod)
    try:
        record = await api.store.replace(entry.key, entry.version, encoder(kind, pod))
    except Changed:
        return None
    marked = Entry.of(record)
    if wanted is not None and wanted.resource_version is not None:
        wanted.resource_version = str(marked.version)
    return marked
