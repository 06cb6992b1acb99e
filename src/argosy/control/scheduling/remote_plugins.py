"""Remote plugins: a question goes to the webhook or to the process of the Python package it is for; its time is measured."""

from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.scheduling.webhooks import Webhooks
from argosy.control.telemetry.metrics import Metrics
from argosy.kube import clock
from argosy.plan.scheduling.framework import Reply
from argosy.plan.scheduling.package_plugins import PackagedQuestion, Question, failed

__all__ = ["RemotePlugins"]


class RemotePlugins:
    def __init__(self, webhooks: Webhooks, workers: PluginWorkers | None, metrics: Metrics | None = None):
        self._webhooks = webhooks
        self._workers = workers
        self._metrics = metrics

    async def answer(self, question: Question) -> Reply:
        """What the plugin says, whatever becomes of it: nothing is raised."""
        started = clock.monotonic()
        reply = await self._answer(question)
        if self._metrics is not None:
            result = "failed" if reply.error or reply.errors else "answered"
            self._metrics.plugin.labels(question.plugin, result).observe(clock.monotonic() - started)
        return reply

    async def _answer(self, question: Question) -> Reply:
        if not isinstance(question, PackagedQuestion):
            return await self._webhooks.answer(question)
        if self._workers is None:
            return failed(question, "is not installed here")
        return await self._workers.answer(question)
