"""The tasks that keep the share of a worker: which errors they survive, and which end the worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.crawl.commit.journal import Fenced
from scrapy_ext.crawl.commit.leases import Leases
from tests.support.eventually import eventually_async


class Life:
    """A liveness whose renewals raise ``errors`` in turn."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = [*errors]
        self.renewed = self.begun = 0

    async def renew(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.renewed += 1

    def soon(self, workers: int) -> float:
        return 0.01 * workers

    async def pause(self) -> None:
        await asyncio.sleep(0)

    def begin(self) -> None:
        self.begun += 1
        raise PlatformError("no balance in this test")


@pytest.mark.parametrize("error", [Fenced("commits-a"), ZeroDivisionError("unexpected")])
async def test_an_error_after_which_the_share_is_unknown_ends_the_worker(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[Exception] = []
    unused: Any = None
    life: Any = Life(error)
    leases = Leases(unused, 4, life, on_change=unused, on_lost=lost.append)
    leases.start()
    await eventually_async(lambda: lost, what="the worker is lost")
    assert lost == [error]
    assert ("Traceback" in caplog.text) == isinstance(error, ZeroDivisionError)
    await leases.close()


async def test_a_platform_that_is_away_is_tried_again() -> None:
    lost: list[Exception] = []
    unused: Any = None
    life: Any = Life(PlatformError("away"))
    leases = Leases(unused, 4, life, on_change=unused, on_lost=lost.append)
    leases.start()
    await eventually_async(lambda: life.renewed, what="a renewal")
    assert lost == []
    await leases.close()


async def test_the_assignment_is_read_again_before_the_next_heartbeat() -> None:
    unused: Any = None
    life: Any = Life()
    life.pause = asyncio.Event().wait  # a heartbeat that never comes
    leases = Leases(unused, 4, life, on_change=unused, on_lost=unused)
    leases.start()
    await eventually_async(lambda: life.begun > 2, what="a third read")
    assert life.renewed == 1
    await leases.close()
