"""Fence: right before each write to a member, whether we still may. A leader that was stopped and wakes up writes nothing."""

from typing import Protocol

__all__ = ["Fence", "FenceLost", "Unfenced"]


class FenceLost(Exception):
    """Somebody else may be leading now; the write was not sent."""


class Fence(Protocol):
    def check(self) -> None:
        """Raise FenceLost unless our lease is certainly still ours."""
        ...


class Unfenced:
    """For a control plane that is alone by construction: its data folder is locked."""

    def check(self) -> None:
        return
