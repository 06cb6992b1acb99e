"""Remote plugins: sends a question to the webhook or the package's process it is for, and measures the time."""

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
        """The plugin's answer; every failure is a Reply."""
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
