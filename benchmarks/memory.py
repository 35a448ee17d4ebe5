"""Resident memory of the crawling process over a crawl of many requests.

Chains of pages on 1000 hosts, an item a page, so that as many requests wait at the end as at the beginning. The hosts'
pages need no network; the platform is a server on this machine. The memory is read 400 times, at regular request
counts; ``growth`` is the mean of the last quarter by that of the first. Scrapy's own dupefilter keeps every
fingerprint.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

from rig.contenders import Settings, scrapy_ext
from rig.crawls import Crawled, crawl
from rig.rounds import alternate, options, report
from rig.services import platform

_SAMPLES = 400


def main() -> None:
    given = options(
        __doc__,
        full={"requests": 1_000_000, "chains": 1000, "limit": 7200},
        quick={"requests": 4_000, "chains": 500, "limit": 24},
    )
    requests = given.requests // given.chains * given.chains
    run = partial(crawl, "Chains", requests=requests, chains=given.chains, items=requests, limit=given.limit)
    measuring: Settings = {
        "DOWNLOAD_HANDLERS": {"http": "rig.instant.InstantHandler"},
        "EXTENSIONS": {"rig.observers.MemorySampler": 0},
        "BENCH_MEMORY_EVERY": max(requests // _SAMPLES, 1),
    }
    with platform() as server:
        ours = {**measuring, **scrapy_ext(server.port, server.key)}
        results = alternate(1, {"scrapy": partial(run, measuring), "scrapy_ext": partial(run, ours)})
    found = {name: _memory(crawled) for name, (crawled,) in results.items()}
    growth = found["scrapy_ext"]["growth"] / found["scrapy"]["growth"]
    report("memory", requests=requests, hosts=given.chains, **found, ratio_of_growth=round(growth, 3))


def _memory(crawled: Crawled) -> dict[str, Any]:
    samples = crawled.observed["memory"]
    quarter = len(samples) // 4
    first, last = (statistics.mean(part) / 2**20 for part in (samples[:quarter], samples[-quarter:]))
    return {
        "requests_done": crawled.items,
        "requests_per_second": round(crawled.pages_per_second),
        "first_quarter_mib": round(first, 1),
        "last_quarter_mib": round(last, 1),
        "highest_mib": round(max(samples) / 2**20, 1),
        "growth": round(last / first, 3),
    }


if __name__ == "__main__":
    main()
