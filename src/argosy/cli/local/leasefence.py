"""The fence of elected controllers: their lease, asked right before each write to a member or to the control plane."""

from argosy.control.fence import FenceLost
from argosy.kube.lease import LeaderElector

__all__ = ["LeaseFence"]


class LeaseFence:
    def __init__(self, elector: LeaderElector):
        self._elector = elector

    def check(self) -> None:
        if not self._elector.held():
            raise FenceLost(f"the lease {self._elector.name} is not certainly ours any more")
