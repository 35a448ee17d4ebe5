"""Resolver of aiohttp that returns only addresses that the guard has checked; apart, since a crawl loads no aiohttp."""

from __future__ import annotations

from aiohttp.abc import AbstractResolver, ResolveResult

from scrapy_ext.server.net.guard import Guard


class GuardedResolver(AbstractResolver):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """Return the checked addresses of a host."""
        return [
            ResolveResult(hostname=host, host=endpoint.address, port=endpoint.port, family=family, proto=0, flags=0)
            for endpoint in await self._guard.endpoints(host, port)
        ]

    async def close(self) -> None:
        """Do nothing: the guard belongs to the service."""
