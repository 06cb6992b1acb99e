"""Timings of a simulated cluster: every delay in one value, so that tests and fast simulations scale them all."""

import msgspec

__all__ = ["Timings"]


class Timings(msgspec.Struct, frozen=True):
    """Seconds of simulated time; `speed` is how many of them pass in one real second."""

    #: From bound to Ready.
    start: float = 1.0
    #: From deletion until the containers have ended; never longer than the pod's grace period.
    stop: float = 0.5
    #: From a node's last report until the cluster calls it unreachable.
    node_grace: float = 10.0
    #: How long pods stay on a node with a NoExecute taint; None: as each pod's own toleration says (300 by default).
    eviction: float | None = None
    #: How long a container of a Job runs.
    job: float = 2.0
    speed: float = 1.0
    #: Real seconds to wait for the end of a burst of changes before a reconcile: one write instead of many.
    settle: float = 0.02

    def real(self, simulated: float) -> float:
        return simulated / self.speed
