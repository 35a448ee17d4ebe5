"""Sizes of the bodies that a page receives, where DevTools reports them later than Playwright reports their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from scrapy_ext.server.extraction.browser.capture import BodySizes


class Session:
    """A session of DevTools, or a page, whose events come when the test says."""

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[dict[str, Any]], None]] = {}

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners[event] = listener

    async def send(self, *_: object) -> None:
        pass

    def report(self, event: str, **fields: Any) -> None:
        self._listeners[f"Network.{event}"]({"requestId": "1", **fields})


async def test_a_size_is_that_of_the_whole_body_however_late_its_parts_are_reported() -> None:
    session: Any = Session()
    sizes = BodySizes(session)
    await sizes.start(session)
    assert await sizes.of("http://a.example/large") is None
    session.report("responseReceived", response={"url": "http://a.example/large#part"})
    size = asyncio.ensure_future(sizes.of("http://a.example/large"))
    for _ in range(2):
        session.report("dataReceived", dataLength=500)
        await asyncio.sleep(0)
        assert not size.done()
    session.report("loadingFinished")
    assert await size == 1000


async def test_a_body_that_fails_keeps_nobody_waiting() -> None:
    session: Any = Session()
    sizes = BodySizes(session)
    await sizes.start(session)
    session.report("responseReceived", response={"url": "http://a.example/"})
    session.report("loadingFailed")
    assert await sizes.of("http://a.example/") == 0
