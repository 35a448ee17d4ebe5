"""The store and the clock of the stores' tests, and a receiver."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.server.store.conftest import change, clock, store, store_database, where
from tests.support.webhook_receiver import Receiver

__all__ = ["change", "clock", "store", "store_database", "where"]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver
