"""Cause: why pods of a workload are not ready in a member, as one reason: that of most of them.

Stored with the collected fields, told by `argosy status`, by conditions and by one event. It must not change with every attempt
of a member, so texts that differ in numbers only count as the same (`steady`).
"""

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from argosy.api.federated import Cause
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.pods.troubles import Trouble, WorkloadRef
from argosy.kube import timestamps
from argosy.kube.conditions import find, is_true
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.rollout import status_of

__all__ = [
    "FAILED_CREATE",
    "cause_of",
    "counted",
    "lacks_pods",
    "refusal_text",
    "steady",
    "workload_of",
]

#: Kubernetes' reason for pods that could not be created: a quota, an admission webhook.
FAILED_CREATE: Final = "FailedCreate"
_JOB: Final = "Job"
_LONGEST: Final = 256
#: `Error creating: pods "web-x7k2p" is forbidden: exceeded quota …`: only what follows is the same for the next pod.
_WHICH_POD: Final = re.compile(
    r'^(Error creating: |[Cc]reate Pod \S+ in StatefulSet \S+ failed error: )?(pods? "[^"]*" )?'
)
_COUNTED: Final = re.compile(r"\S*\d\S*")


def workload_of(config: FederatedTypeConfig, key: str) -> WorkloadRef:
    """How pods name an object of this type as the workload they belong to."""
    return WorkloadRef(config.resource.group, config.kind, key)


def cause_of(
    copy: Json, config: FederatedTypeConfig, troubles: Iterable[Trouble], refusal: str, before: Cause | None
) -> Cause | None:
    """What keeps most of a copy's pods from being ready, None if nothing is known to.

    `refusal` is what the member said last about pods it did not create; a Deployment's own condition says that by itself.
    `before` is what was told last: it stays if there is nothing new.
    """
    wanted, existing = _pods_of(copy, config)
    reasons: dict[str, Counter[str]] = {}
    for trouble in troubles:
        reasons.setdefault(trouble.reason, Counter())[trouble.message] += 1
    failing = find(status_of(copy).get("conditions"), "ReplicaFailure") or {}
    if failing.get("status") == "True":
        refusal = str(failing.get("message") or FAILED_CREATE)
    elif existing >= wanted:
        refusal = ""  # it is over
    if refusal:
        reasons.setdefault(FAILED_CREATE, Counter())[refusal_text(refusal)] += max(1, wanted - existing)
    if not reasons:
        return None
    reason = min(reasons, key=lambda each: (-reasons[each].total(), each))
    messages = reasons[reason]
    message = min(messages, key=lambda each: (-messages[each], each))
    pods = messages.total()
    return steady(before, Cause(reason, message, pods, max(wanted, pods) if wanted and config.kind != _JOB else 0))


def counted(
    troubles: Iterable[Trouble], now: datetime.datetime, grace: float, before: Cause | None
) -> tuple[list[Trouble], float | None]:
    """The troubles that have lasted long enough to be told, and the seconds until the next one has. What was told stays told."""
    found, soon = [], None
    for trouble in troubles:
        since = timestamps.parse(trouble.since) if trouble.since else None
        told = before is not None and before.reason == trouble.reason
        left = grace - (now - since).total_seconds() if since is not None and not told else 0.0
        if left <= 0:
            found.append(trouble)
        else:
            soon = min(left, grace if soon is None else soon)
    return found, soon


def steady(before: Cause | None, now: Cause) -> Cause:
    """What to tell now: the former text if it says the same, but for numbers and names, or the same and more."""
    if before is None or before.reason != now.reason:
        return now
    same = _COUNTED.sub("", before.message) == _COUNTED.sub("", now.message)
    return (
        msgspec.structs.replace(now, message=before.message) if same or before.message.startswith(now.message) else now
    )


def refusal_text(message: str) -> str:
    """A refusal to create a pod, without the pod's name."""
    return _WHICH_POD.sub("", message, count=1).removeprefix("is forbidden: ")[:_LONGEST]


def lacks_pods(copy: Json, config: FederatedTypeConfig) -> bool:
    """Whether fewer pods exist than are to, in a kind that has no condition for why they are not created."""
    wanted, existing = _pods_of(copy, config)
    return existing < wanted


def _pods_of(copy: Json, config: FederatedTypeConfig) -> tuple[int, int]:
    """How many pods a copy is to have, and how many exist; 0 where its kind does not tell."""
    paths, status = config.spec.path_definition, status_of(copy)
    if config.kind == "DaemonSet":
        return _number(status, "desiredNumberScheduled"), _number(status, "currentNumberScheduled")
    if config.kind == _JOB:
        # Its parallelism is not collected. One that was started and has not ended has at least one pod.
        waits = any(is_true(status.get("conditions"), each) for each in ("Complete", "Failed", "Suspended"))
        return int(bool(status.get("startTime")) and not waits), _number(status, "active") + _number(
            status, "terminating"
        )
    wanted = _number(copy, paths.replicas_spec or "spec.replicas")
    return wanted, _number(copy, paths.replicas_status or "status.replicas")


def _number(obj: Json, path: str) -> int:
    return fields.number(obj, path) or 0
