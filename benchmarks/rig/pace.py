"""Phases of a crawl: its start until the first response, the middle, and its end from the last response on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler

from rig.crawls import Crawled
from rig.observers import OBSERVED
from scrapy_ext.compatibility.python import Self

#: Settings with which :meth:`Phases.of` knows the phases of a crawl.
PHASES: Final = {"EXTENSIONS": {"rig.pace.ResponseTimes": 0}}
#: Share of the responses that the middle leaves out at each end.
_ENDS: Final = 0.1


class ResponseTimes:
    """Records monotonic times: ``running``, of the start of the event loop, and ``responses``, of each response."""

    def __init__(self, crawler: Crawler) -> None:
        from twisted.internet import reactor

        self._responses: list[float] = []
        OBSERVED["responses"] = self._responses
        reactor.callWhenRunning(self._running)
        crawler.signals.connect(self._received, signal=signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _running(self) -> None:
        OBSERVED["running"] = time.monotonic()

    def _received(self) -> None:
        self._responses.append(time.monotonic())


@dataclass(frozen=True)
class Phases:
    """``start`` and ``end`` in seconds, ``middle`` in responses a second. Of a crawl that was cut off, ``end`` is None,
    and ``middle`` its whole rate: what it had until then may be a few bursts."""

    start: float
    middle: float
    end: float | None

    @classmethod
    def of(cls, crawled: Crawled) -> Phases:
        responses: list[float] = crawled.observed["responses"]
        start = responses[0] - crawled.observed["running"]
        if not crawled.ended:
            return cls(start, crawled.pages_per_second, None)
        first = int(_ENDS * len(responses))
        last = len(responses) - 1 - first
        if last <= first:
            raise SystemExit(f"{len(responses)} responses are too few for a rate: raise --pages")
        middle = (last - first) / (responses[last] - responses[first])
        return cls(start, middle, crawled.seconds - start - (responses[-1] - responses[0]))
