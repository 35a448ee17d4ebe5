"""A receiver of webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.webhook_receiver import Receiver


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver
