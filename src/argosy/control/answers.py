"""Answers: who is asked about a decision, a webhook or the process of a Python package; how long it takes is measured."""

import time

from argosy.control.metrics import Metrics
from argosy.control.plugin_workers import PluginWorkers
from argosy.control.webhooks import Webhooks
from argosy.plan.framework import Reply
from argosy.plan.packaged import PackagedQuestion, Question, failed

__all__ = ["Answers"]


class Answers:
    def __init__(self, webhooks: Webhooks, workers: PluginWorkers | None, metrics: Metrics | None = None):
        self._webhooks = webhooks
        self._workers = workers
        self._metrics = metrics

    async def answer(self, question: Question) -> Reply:
        """What the plugin says, whatever becomes of it: nothing is raised."""
        started = time.perf_counter()
        reply = await self._answer(question)
        if self._metrics is not None:
            result = "failed" if reply.error or reply.errors else "answered"
            self._metrics.plugin.labels(question.plugin, result).observe(time.perf_counter() - started)
        return reply

    async def _answer(self, question: Question) -> Reply:
        if not isinstance(question, PackagedQuestion):
            return await self._webhooks.answer(question)
        if self._workers is None:
            return failed(question, "is not installed here")
        return await self._workers.answer(question)
