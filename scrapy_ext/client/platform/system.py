"""The platform's clock (platform-api.md, Common conventions)."""

from __future__ import annotations

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.platform.calls import get
from scrapy_ext.client.platform.transport import Transport


class System:
    """The platform itself."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def timestamp(self) -> int:
        """Now, in milliseconds since the epoch, by the platform's clock."""
        call = get(Host.STORAGE, "/system/ts", accept="text/plain")
        return await self._transport.read(call, lambda answer: answer.json(int))
