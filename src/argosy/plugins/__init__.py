"""The plugin API: everything that a scheduling plugin written in Python needs, and nothing else of Argosy.

A plugin is a value: a `Filter`, a `Score`, a `Select` or a `Replicas` with functions that answer for all clusters at once. A
package offers its plugins as entry points of the group `argosy.plugins`; profiles name them like any other. docs/plugins.md is
the guide.

Imports nothing at run time that reads a clock or a network: a plugin decides in a test as it does in the control plane.
"""

from argosy.api.clusters import FederatedCluster
from argosy.fleet.member import Member
from argosy.fleet.snapshot import CPU, GPU, MEMORY, Column, Fleet, Labelled, Mask, Rows
from argosy.plan.scheduling.framework import (
    MAX_SCORE,
    Always,
    Division,
    Filter,
    FrameworkError,
    Ranked,
    Reasons,
    Replicas,
    Score,
    Select,
    share_of_best,
)
from argosy.plan.scheduling.schedule import Decision
from argosy.plan.scheduling.unit import Affinity, ResourceRequest, Unit
from argosy.plugins.loading import GROUP, installed
from argosy.plugins.trying import cluster, try_out

#: Raised by a plugin that cannot decide; the message is for the user whose object waits.
PluginError = FrameworkError

__all__ = [
    "CPU",
    "GPU",
    "GROUP",
    "MAX_SCORE",
    "MEMORY",
    "Affinity",
    "Always",
    "Column",
    "Decision",
    "Division",
    "FederatedCluster",
    "Filter",
    "Fleet",
    "Labelled",
    "Mask",
    "Member",
    "PluginError",
    "Ranked",
    "Reasons",
    "Replicas",
    "ResourceRequest",
    "Rows",
    "Score",
    "Select",
    "Unit",
    "cluster",
    "installed",
    "share_of_best",
    "try_out",
]
