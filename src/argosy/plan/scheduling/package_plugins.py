"""Questions to plugins of Python packages, which run in a process of their own; and questions to any remote plugin."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling import webhook
from argosy.plan.scheduling.framework import Ask, Ranked, Remote, Reply
from argosy.plan.scheduling.unit import Unit

__all__ = ["PackagedQuestion", "Question", "failed", "question_of"]


class PackagedQuestion(NamedTuple):
    """Keeps its fleet: most parts of a snapshot are shared with the next ones."""

    remote: Remote
    unit: Unit
    fleet: Fleet
    ranked: Ranked

    @property
    def plugin(self) -> str:
        return self.remote.name

    def covers(self, other: Any) -> bool:
        """Whether an answer to this question also answers the other.

        The time, available resources and scores do not count: recent ones are good enough, and they change so often that no
        answer would ever be current. Everything else counts: such a plugin may read all of an object and of clusters.
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
    """A question that can be queued."""
    if ask.plugin.packaged:
        return PackagedQuestion(ask.plugin, ask.unit, ask.fleet, ask.ranked)
    return webhook.question_of(ask)


def failed(question: Question, why: str) -> Reply:
    """The reply if the question could not be asked."""
    if isinstance(question, PackagedQuestion):
        return Reply(error=f"plugin {question.plugin!r} {why}")
    return webhook.failed(question, why)
