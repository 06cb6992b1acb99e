"""Resolver: names become addresses, and those that are not to be connected to are none. It owns no task."""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from argosy.kube.endpoints import EndpointRules

__all__ = ["GuardedResolver"]


class GuardedResolver(AbstractResolver):
    """What aiohttp asks right before it connects. All addresses of a name must be allowed: which one is used is chance."""

    def __init__(self, rules: EndpointRules) -> None:
        self._rules = rules
        self._resolver = aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            if refusal := self._rules.address_refusal(host, each["host"]):
                raise OSError(None, f"{host}: {refusal}")
        return found

    async def close(self) -> None:
        await self._resolver.close()
