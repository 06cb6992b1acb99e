"""Kinds: what a package needs to describe a kind of its own in Python, and nothing else of Argosy. docs/kinds.md is the guide.

An entry point of the group `argosy.kinds` is a `Kind`, or a rule as data. Functions get values and return values, without a clock
or a network: the same is asked again by `argosy status`.
"""

from argosy.api.typeconfigs import PathDefinition
from argosy.kube.podreferences import Reference, named, pod_references, values_at
from argosy.plan.kinds.generic import merge
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import (
    Member,
    addresses,
    agreed,
    earliest,
    latest,
    listed_by_cluster,
    merged,
    reported,
    revisions,
    sums,
    worst,
)
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.packages import GROUP
from argosy.plan.kinds.rollout import missing_replicas, unobserved

__all__ = [
    "GROUP",
    "Aggregation",
    "Kind",
    "Member",
    "Observation",
    "PathDefinition",
    "Reference",
    "addresses",
    "agreed",
    "earliest",
    "latest",
    "listed_by_cluster",
    "merge",
    "merged",
    "missing_replicas",
    "named",
    "pod_references",
    "reported",
    "revisions",
    "sums",
    "unobserved",
    "values_at",
    "worst",
]
