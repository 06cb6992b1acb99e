"""Lack: one thing that is missing until an object is as wanted, and what it is about."""

from enum import Enum
from typing import NamedTuple

__all__ = ["About", "Lack"]


class About(Enum):
    """What is missing; by that a condition knows whether it is concerned."""

    #: It is paused. That alone is nothing missing, and is told with what it keeps back.
    PAUSE = "pause"
    #: Federating, scheduling or overriding has yet to act.
    DECISION = "decision"
    #: The last decision is held although another was asked for.
    HOLD = "hold"
    #: Replicas are in no cluster.
    PLACEMENT = "placement"
    #: Something it needs does not exist.
    NEED = "need"
    #: A cluster is no member or not ready, or the state of the copy there is not known.
    CLUSTER = "cluster"
    #: A cluster has not answered just now. It may before that counts: its readiness follows later.
    SILENCE = "silence"
    #: What is wanted has not been sent to a cluster, a copy that is to go is there, or the cluster is leaving.
    PROPAGATION = "propagation"
    #: The member's controllers have not seen the newest change.
    OBSERVATION = "observation"
    #: The copy is not what its kind calls finished.
    COMPLETION = "completion"
    #: The object's own status does not show it yet, or cannot.
    REPORT = "report"


class Lack(NamedTuple):
    text: str
    about: About
    cluster: str = ""
