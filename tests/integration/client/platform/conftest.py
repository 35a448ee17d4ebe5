"""A client of the played server that does not wait long between attempts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.retry import Backoff
from tests.support.played_server import PlayedServer

KEY = "0123456789abcdef0123456789abcdef"
SOON = Backoff(0.01, 0.02)


@pytest.fixture
async def client(server: PlayedServer) -> AsyncIterator[PlatformClient]:
    async with PlatformClient(PlatformUrls.single(server.url), KEY, timeout=60.0, backoff=SOON) as client:
        yield client
