"""What may differ between a simulated and a stock member, and is therefore not compared. docs/simulation.md explains each.

Everything else that a view shows must be equal.
"""

import re
from typing import Any

#: By the name it has in the documentation.
DIFFERENCES = {
    "time": "when things happen, and times in objects",
    "texts": "messages of conditions, events and container states",
    "chance": "uids, resource versions, addresses, and names and labels that hold a hash or random letters",
    "repeated events": "how often events are told that last: see REPEATED",
    "kubelet events": "events told by kubelets, of which kwok has none",
    "machines": "which of several suitable nodes a pod gets",
}
#: Fields of a status that hold a time.
TIMES = {"startTime", "completionTime", "conditions", "lastScheduleTime", "lastSuccessfulTime"}
#: Labels whose values follow from a hash or a uid, which no two clusters share.
CHANCE = {
    "pod-template-hash",
    "controller-revision-hash",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "controller.kubernetes.io/hash",
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
}
#: The end of a name that the time decides: the Jobs of a CronJob are named by the minute.
MINUTE = re.compile(r"-[0-9]{8}$")
#: Events told anew as long as something lasts, or with each look at it; and the one that the StatefulSet controller tells once
#: more each time it deletes a pod that it has deleted already and not yet heard of.
REPEATED = (
    "FailedScheduling",
    "SuccessfulDelete of StatefulSet",
    "NoPods of PodDisruptionBudget",
    "CalculateExpectedPodCountFailed of PodDisruptionBudget",
    "ProvisioningFailed",
)

#: Events about a claim that waits for its pod, or a budget for its pods: whether they are told depends on which of the two is
#: seen first.
PASSING = ("WaitForFirstConsumer", "WaitForPodScheduled", "NoPods")


def is_told_by_kubelet(event: dict[str, Any]) -> bool:
    return component(event) == "kubelet"


def component(event: dict[str, Any]) -> str:
    """Who tells an event; older and newer events say it in different fields."""
    return event.get("reportingComponent") or (event.get("source") or {}).get("component") or ""
