"""Questions to plugins of Python packages, which run in a process of their own; and who is asked: such a plugin, or a webhook."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling import webhook
from argosy.plan.scheduling.framework import Ask, Ranked, Remote, Reply
from argosy.plan.scheduling.unit import Unit

__all__ = ["PackagedQuestion", "Question", "failed", "question_of"]


class PackagedQuestion(NamedTuple):
    """Keeps its fleet: a snapshot, most of which the next ones share."""

    remote: Remote
    unit: Unit
    fleet: Fleet
    ranked: Ranked

    @property
    def plugin(self) -> str:
        return self.remote.name

    def covers(self, other: Any) -> bool:
        """Whether an answer to this question is one to the other.

        The time, what is available, and scores do not count: those of a moment ago are as good, and while they change all the
        time nobody would ever be done. Everything else does: such a plugin may look at all there is of an object and of clusters.
        """
        return (
            isinstance(other, PackagedQuestion)
            and self.remote == other.remote
            and np.array_equal(self.ranked.rows, other.ranked.rows)
            and self.fleet.same_facts(other.fleet)
            and msgspec.structs.replace(self.unit, now=other.unit.now) == other.unit
        )


Question = PackagedQuestion | webhook.Question


def question_of(ask: Ask) -> Question:
    """The question that may wait for its answer."""
    if ask.plugin.packaged:
        return PackagedQuestion(ask.plugin, ask.unit, ask.fleet, ask.ranked)
    return webhook.question_of(ask)


def failed(question: Question, why: str) -> Reply:
    """The reply where nothing could be asked at all."""
    if isinstance(question, PackagedQuestion):
        return Reply(error=f"plugin {question.plugin!r} {why}")
    return webhook.failed(question, why)
