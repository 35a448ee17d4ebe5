"""Requests that wait for their turn when the spider closes: they are sent, or return to the queue that keeps them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ext.crawl.extraction.extraction import Extraction

#: Whether the crawl has a queue, is stopped from outside, has failed, and has several workers; whether all are sent.
ENDS = {
    "finished": (True, False, False, False, True),
    "stopped": (True, True, False, False, False),
    "stopped without a queue": (False, True, False, False, True),
    "failed, with one worker": (True, False, True, False, True),
    "failed, one worker of several": (True, False, True, True, False),
    "failed, one worker of several, without a queue": (False, False, True, True, True),
}


@pytest.mark.parametrize(("has_queue", "is_stopped", "has_failed", "is_shared", "are_sent"), ENDS.values(), ids=ENDS)
def test_requests_that_wait_for_their_turn(
    *, has_queue: bool, is_stopped: bool, has_failed: bool, is_shared: bool, are_sent: bool
) -> None:
    ended: list[bool] = []
    extraction: Any = SimpleNamespace(
        _session=SimpleNamespace(
            items=object() if has_queue else None,
            group=object() if is_shared else None,
            ending=SimpleNamespace(has_failed=has_failed),
        ),
        _crawler=SimpleNamespace(settings=Settings(), crawling=not is_stopped),
        _grace=SimpleNamespace(begin=lambda: None),
        limiter=SimpleNamespace(wind_up=lambda *, at_once: ended.append(at_once)),
    )
    Extraction.wind_up(extraction)
    assert ended == [not are_sent]
