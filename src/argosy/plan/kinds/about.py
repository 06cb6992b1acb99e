"""About: the workloads an object is about without being named by them, such as those of an autoscaler or a disruption budget."""

from typing import Any, NamedTuple

__all__ = ["About", "PodSelector", "Target"]


class Target(NamedTuple):
    """An object is about one other object, such as an autoscaler about a workload."""

    group: str
    kind: str
    name: str


class PodSelector(NamedTuple):
    """An object is about all workloads whose pods have these labels: a LabelSelector as it is stored."""

    selector: dict[str, Any]


About = Target | PodSelector
