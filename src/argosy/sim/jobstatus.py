"""The status of a Job: which of its pods have ended and are counted, its result, and which indexes are done. Pure.

Pods carry a tracking finalizer. A pod that has ended is first recorded as uncounted, then its finalizer is removed, then it is
counted; so none is counted twice or missed, whatever happens in between. Succeeded pods of Indexed Jobs need no record: their
index is one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.conditions import is_true, set_condition
from argosy.sim.pods import TERMINAL, Pod

__all__ = ["conclude", "count", "failed", "finished", "note", "parsed", "ranges", "succeeded", "target"]

Object = dict[str, Any]
#: The condition that announces the end, and the final one.
_ENDS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
_OUTCOMES = ("succeeded", "failed")


def finished(status: Mapping[str, Any]) -> bool:
    return any(is_true(status.get("conditions"), kind) for kind in _ENDS.values())


def target(status: Mapping[str, Any]) -> str:
    """The announced end, SuccessCriteriaMet or FailureTarget; empty if there is none."""
    return next((kind for kind in _ENDS if is_true(status.get("conditions"), kind)), "")


def conclude(status: Object, now: str) -> tuple[str, str]:
    """Turn the announced end into the final condition, with its reason and message."""
    kind = target(status)
    condition = next(one for one in status["conditions"] if one["type"] == kind)
    told = condition["reason"], condition["message"]
    status["conditions"] = set_condition(status["conditions"], _ENDS[kind], "True", *told, now)
    if kind == "SuccessCriteriaMet":
        status["completionTime"] = now
    return told


def note(status: Object, pods: Iterable[Pod], indexes: Mapping[str, int]) -> list[Pod]:
    """Count pods that were recorded and released, record those that have ended since; returns the pods to release once this is
    stored.

    `indexes` has the index of each pod of an Indexed Job by uid.
    """
    tracked = {pod.uid: pod for pod in pods if pod.tracked}
    before: Object = status.get("uncountedTerminatedPods") or {}
    noted = {outcome: [uid for uid in before.get(outcome) or () if uid in tracked] for outcome in _OUTCOMES}
    for outcome in _OUTCOMES:
        _put(status, outcome, (status.get(outcome) or 0) + len(before.get(outcome) or ()) - len(noted[outcome]))
    done = set(parsed(status.get("completedIndexes", "")))
    ended = [pod for pod in tracked.values() if pod.phase in TERMINAL or pod.deleting]
    for pod in ended:
        outcome = "succeeded" if pod.phase == "Succeeded" else "failed"
        if outcome == "succeeded" and pod.uid in indexes:
            done.add(indexes[pod.uid])
        elif pod.uid not in noted[outcome]:
            noted[outcome].append(pod.uid)
    status["uncountedTerminatedPods"] = {outcome: uids for outcome, uids in noted.items() if uids}
    if done:
        status["completedIndexes"] = ranges(sorted(done))
        _put(status, "succeeded", len(done))
    return ended


def count(status: Object, pods: Iterable[Pod]) -> None:
    """How many are active, ready, and terminating."""
    found = list(pods)
    active = [pod for pod in found if pod.active]
    _put(status, "active", len(active))
    status["ready"] = sum(pod.ready for pod in active)
    status["terminating"] = sum(pod.deleting and pod.phase not in TERMINAL for pod in found)


def succeeded(status: Mapping[str, Any]) -> int:
    """Counted or only noted so far."""
    return _total(status, "succeeded")


def failed(status: Mapping[str, Any]) -> int:
    return _total(status, "failed")


def _total(status: Mapping[str, Any], outcome: str) -> int:
    return (status.get(outcome) or 0) + len((status.get("uncountedTerminatedPods") or {}).get(outcome) or ())


def _put(status: Object, field: str, amount: int) -> None:
    if amount:
        status[field] = amount
    else:
        status.pop(field, None)


def parsed(text: str) -> list[int]:
    """The numbers of a list such as "0,2-4"."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            found += range(int(first), int(last or first) + 1)
    return found


def ranges(indexes: list[int]) -> str:
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][-1] == index - 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(str(one) for one in part) for part in parts)
