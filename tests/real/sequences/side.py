"""Side: one server under a sequence. It fills in the references of each step, sends it, and remembers what was answered."""

import asyncio
import json
import time
from typing import Any
from urllib.parse import quote, urlencode

from tests.real.sequences.families import View, view
from tests.real.sequences.steps import Memory, Step, namespaces
from tests.server.replay import Answer, Server, Watch

__all__ = ["Side"]

PATIENCE = 20.0
_COLLECTED = {"orphan", "foregroundDeletion"}


class Side:
    def __init__(self, server: Server, identity: str):
        self._server = server
        self.memory = Memory(identity)
        self.watches: list[Watch] = []
        self._family: list[str] = []

    async def open(self) -> None:
        """The namespaces, with what controllers put into each."""
        for name in self.memory.filled(list(namespaces())):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            answer = await self._server.json("POST", "/api/v1/namespaces", body)
            assert answer.code == 201, str(answer)
            for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                await self._until(f"/api/v1/namespaces/{name}/{path}", lambda answer: answer.code == 200)
            self.memory.start = (await self._server.json("GET", f"/api/v1/namespaces/{name}")).body["metadata"][
                "resourceVersion"
            ]

    async def close(self) -> None:
        for watch in self.watches:
            watch.close()
        patch = [("Content-Type", "application/merge-patch+json")]
        for path, obj in self.memory.objects.items():
            if obj["metadata"].get("finalizers") or path in self._family:
                await self._server.send("PATCH", path, patch, b'{"metadata":{"finalizers":null}}')
            if "/namespaces/" not in path:
                await self._server.json("DELETE", path, {"gracePeriodSeconds": 0})
        for name in self.memory.filled(list(namespaces())):
            await self._server.json("DELETE", f"/api/v1/namespaces/{name}")

    async def run(self, step: Step) -> Answer | None:
        """The answer; None where a watch was opened."""
        path, query = self.memory.filled(step.path), self.memory.filled(step.query)
        target = path + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        if step.watch:
            opened = await self._server.watch(target, [("Accept", "application/json")])
            if isinstance(opened, Answer):
                return opened
            self.watches.append(opened)
            return None
        body = self.memory.filled(step.body)
        data = None if body is None else json.dumps(body).encode()
        headers = [("Accept", "application/json")] + ([("Content-Type", step.type)] if data is not None else [])
        answer = await self._server.send(step.method, target, headers, data)
        self._remember(step, path, answer)
        if step.settle:
            await self._until(self.memory.filled(step.settle), _is_collected)
        if step.family:
            self._family = self.memory.filled(step.family)
        return answer

    async def family(self) -> dict[str, View]:
        """What there is of the last step's family, by path."""
        answers = await asyncio.gather(*(self._server.json("GET", path) for path in self._family))
        return {
            path: view(answer.body) for path, answer in zip(self._family, answers, strict=True) if answer.code == 200
        }

    def _remember(self, step: Step, path: str, answer: Answer) -> None:
        body = answer.body
        if answer.code >= 300 or not isinstance(body, dict):
            return
        meta = body.get("metadata") or {}
        if step.keep and meta.get("continue"):
            self.memory.keep(step.keep, meta["continue"])
        if "uid" in meta and "dryRun" not in step.query:
            self.memory.see(f"{path}/{meta['name']}" if step.method == "POST" else _without_subresource(path), body)

    async def _until(self, path: str, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds(answer := await self._server.json("GET", path)):
            assert time.monotonic() < deadline, f"{path} did not settle: {answer}"
            await asyncio.sleep(0.02)


def _is_collected(answer: Answer) -> bool:
    return answer.code == 404 or not _COLLECTED & set(answer.body["metadata"].get("finalizers", ()))


def _without_subresource(path: str) -> str:
    for subresource in ("/status", "/scale"):
        path = path.removesuffix(subresource)
    return path
