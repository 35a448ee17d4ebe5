"""Metrics of the extraction service for ``/metrics``, and the number of requests by tag.

Tags (``tags`` in extraction-api.md) are free text: a crawl may put a new value on every request. So at most
:data:`PAIRS` pairs of tag and value are kept. When there are more, the less frequent half is dropped, and its pairs
start again at zero.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.computing.fair_semaphore import FairSemaphore
from scrapy_ext.server.extraction.request_limits import DomainLimits
from scrapy_ext.server.metrics import DURATIONS, counter, gauge, histograms
from scrapy_ext.telemetry.families import Family

#: Pairs of tag and value that are kept.
PAIRS: Final = 2000
#: Tags of one request that are counted, and characters of each tag and value.
COUNTED: Final = 50
LONGEST: Final = 100


class TagCount(NamedTuple):
    """The requests with a tag of this value, and how many of them failed."""

    tag: str
    value: str | None
    requests: int
    failed: int


class Tags:
    def __init__(self) -> None:
        self._counts: dict[tuple[str, str | None], list[int]] = {}

    def count(self, tags: Mapping[str, str | None] | None, *, failed: bool) -> None:
        if not tags:
            return
        for tag, value in list(tags.items())[:COUNTED]:
            pair = (tag[:LONGEST], value if value is None else value[:LONGEST])
            numbers = self._counts.get(pair)
            if numbers is None:
                numbers = self._counts[pair] = [0, 0]
            numbers[0] += 1
            numbers[1] += failed
        if len(self._counts) > PAIRS:
            kept = sorted(self._counts.items(), key=lambda item: -item[1][0])[: PAIRS // 2]
            self._counts = dict(kept)

    def most(self, number: int) -> list[TagCount]:
        """Return the most frequent pairs."""
        counts = (TagCount(tag, value, *numbers) for (tag, value), numbers in self._counts.items())
        return sorted(counts, key=lambda count: (-count.requests, count.tag, count.value or ""))[:number]

    def __len__(self) -> int:
        return len(self._counts)


#: Reasons of replacing a browser.
RETIREMENTS: Final = ("pages", "age", "memory", "hang")
#: The status of a request whose caller disconnected.
LEFT: Final = 0
#: Pairs of tag and value in ``/metrics``, the most frequent ones.
TAGS_SHOWN: Final = 100


class _Series(NamedTuple):
    """Requests of one kind with one result: their numbers by class of duration, and the sum of their durations."""

    numbers: list[int]
    seconds: list[float]


class End(NamedTuple):
    """Requests with one result: fetched ``by`` browser or HTTP, with a ``kind`` of extraction ("none": without), ended
    with a ``status`` (0: the caller disconnected). ``seconds`` is the sum of their durations.
    """

    by: str
    kind: str
    status: int
    requests: int
    seconds: float


class BrowserFigures(NamedTuple):
    """Figures of the browser's pages; those of one that no page has needed yet are zero."""

    waiting: int = 0
    inside: int = 0
    #: Contexts.
    opened: int = 0
    closed: int = 0
    launches: int = 0
    #: Pages that were lost with their browser, and with their own process.
    crashes: int = 0
    page_crashes: int = 0
    #: Bytes.
    memory: int = 0
    #: By reason.
    retirements: Mapping[str, int] = {}


class ExtractionMetrics:
    """Counters of requests by kind and result, by key, and by tag."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, int], _Series] = {}
        #: By the name of the key.
        self._callers: dict[str, int] = {}
        self.tags = Tags()

    def count(self, request: ExtractRequest, caller: Caller, status: int, seconds: float) -> None:
        """Count a request that keeps to the contract, with its time from the check to the answer."""
        kind = request.extract_type or ("markdown" if request.markdown else "none")
        key = ("browser" if request.wants_browser else "http", kind, status)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series([0] * (len(DURATIONS) + 1), [0.0])
        series.numbers[bisect_left(DURATIONS, seconds)] += 1
        series.seconds[0] += seconds
        self._callers[caller.name] = self._callers.get(caller.name, 0) + 1
        self.tags.count(request.tags, failed=status != 200)

    def ends(self) -> list[End]:
        """Return the requests of each kind and result, the most frequent first."""
        found = [End(*key, sum(each.numbers), each.seconds[0]) for key, each in self._series.items()]
        return sorted(found, key=lambda end: (-end.requests, end[:3]))

    def callers(self) -> list[tuple[str, int]]:
        """Return the number of requests of each key."""
        return sorted(self._callers.items(), key=lambda pair: (-pair[1], pair[0]))

    def families(self, requests: FairSemaphore, domains: DomainLimits, browser: BrowserFigures) -> Iterator[Family]:
        """Yield the counters, with those of the domains and the browser."""
        yield from histograms(
            "extraction_duration_seconds",
            "From a checked request to its answer.",
            DURATIONS,
            (
                ({"by": by, "kind": kind, "status": str(status) if status else "broken"}, each.numbers, each.seconds[0])
                for (by, kind, status), each in sorted(self._series.items())
            ),
        )
        yield from counter(
            "extraction_requests_by_key_total",
            "Requests of each key that kept to the contract.",
            (({"key": name}, number) for name, number in sorted(self._callers.items())),
        )
        yield from counter(
            "extraction_tagged_requests_total",
            "Requests with a tag of this value: the most frequent pairs.",
            (({"tag": each.tag, "value": each.value or ""}, each.requests) for each in self.tags.most(TAGS_SHOWN)),
        )
        yield from gauge(
            "extraction_requests_under_way", "Extraction requests that are being processed.", requests.inside
        )
        yield from gauge("extraction_requests_waiting", "Requests that wait for their domain.", domains.waiting)
        yield from _of_browser(browser)


def _of_browser(browser: BrowserFigures) -> Iterator[Family]:
    yield from gauge("browser_pages_waiting", "Requests that wait for a free page.", browser.waiting)
    yield from gauge("browser_pages_open", "Pages that are being loaded or read.", browser.inside)
    yield from counter("browser_contexts_opened_total", "Contexts, one for each page.", [({}, browser.opened)])
    yield from counter("browser_contexts_closed_total", "Contexts that were closed.", [({}, browser.closed)])
    yield from counter("browser_launches_total", "Starts of Chromium.", [({}, browser.launches)])
    lost = (("browser", browser.crashes), ("page", browser.page_crashes))
    yield from counter(
        "browser_crashes_total",
        "Pages that were lost with their browser, or with their own process.",
        (({"of": name}, number) for name, number in lost),
    )
    yield from counter(
        "browser_retirements_total",
        "Browsers that were replaced, by reason.",
        (({"reason": reason}, browser.retirements.get(reason, 0)) for reason in RETIREMENTS),
    )
    yield from gauge(
        "browser_memory_bytes", "Memory of the browser's processes when a page was last open.", browser.memory
    )
