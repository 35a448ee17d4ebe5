"""Export of a crawl's traces and stats to OpenTelemetry."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.telemetry.exporting import exporting
from scrapy_ext.telemetry.families import Family, Labels

#: Stats of single domains: a metric for each would be too many.
_OF_DOMAINS: Final = "extract_api/domains/"
#: Maximum number of exported stats. A project may name stats by what it finds.
_MOST: Final = 1000
_PREFIX: Final = "scrapy.stats."
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST: Final = 200


@contextlib.asynccontextmanager
async def exporting_crawl(crawler: Crawler, attributes: Mapping[str, str]) -> AsyncIterator[None]:
    """Export traces and stats within the block, if that is switched on. ``attributes`` are those of each stat."""
    if not names.OPENTELEMETRY_ENABLED.read(crawler.settings):
        yield
        return

    async def collect() -> list[Family]:
        return list(families(crawler.stats.get_stats(), dict(attributes)))

    async with exporting(str(crawler.settings["BOT_NAME"]), collect):
        yield


def families(stats: Mapping[str, Any], labels: Labels) -> Iterator[Family]:
    """Yield the numbers among the stats as gauges: some only grow, others do not."""
    number = 0
    for name, value in stats.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            continue
        if str(name).startswith(_OF_DOMAINS):
            continue
        number += 1
        if number > _MOST:
            return
        named = _NOT_IN_NAMES.sub("_", str(name).replace("/", "."))[:_LONGEST]
        yield Family(_PREFIX + named, "gauge", f"Stat {name}", [(labels, value)])
