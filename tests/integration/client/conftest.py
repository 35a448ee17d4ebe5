"""The played server, started for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.played_server import PlayedServer


@pytest.fixture
async def server() -> AsyncIterator[PlayedServer]:
    server = PlayedServer()
    await server.start()
    yield server
    await server.stop()
