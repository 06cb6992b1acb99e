"""Resolver: resolves names, and refuses addresses that must not be connected to. It owns no task."""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from argosy.kube.endpoints import EndpointRules

__all__ = ["GuardedResolver"]


class GuardedResolver(AbstractResolver):
    """Called by aiohttp right before it connects. All addresses of a name must be allowed: any of them may be used."""

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
