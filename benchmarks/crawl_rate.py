"""Pages per second of a whole crawl of a local site, by the round trip to the crawl's storage.

``scrapy``: the in-memory scheduler, all defaults. ``scrapy_tuned``: the same, with ``CONCURRENT_ITEMS`` as the add-on
sets it. ``scrapy_ext``: scheduler, items, request records and log on the package's server. ``scrapy_redis``: scheduler,
dupefilter and items on redis-server. The way to both servers takes the given milliseconds there and back
(:mod:`rig.latency`); 0 is the direct way. The site is always near.

A crawl is cut off after ``--limit`` seconds (scrapy-redis: ``--redis-limit``), and its rate is that until then;
``cut_off`` names those.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rig.contenders import Settings, scrapy_ext, scrapy_redis
from rig.crawls import Crawled, crawl
from rig.latency import latency
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform, redis
from rig.site import site


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 20_000, "rounds": 3, "rtt_ms": [0.0, 5.0, 50.0], "limit": 300, "redis_limit": 40},
        quick={"pages": 300, "rounds": 1, "rtt_ms": [0.0, 5.0, 50.0], "limit": 8, "redis_limit": 4},
    )
    by_latency: dict[str, dict[str, Any]] = {}
    with platform() as server, redis() as redis_port, site(given.pages) as address:
        run = partial(crawl, "SitePages", site=address, items=given.pages)
        tuned = {"CONCURRENT_ITEMS": _items_of_the_add_on(scrapy_ext(server.port, server.key))}
        for rtt in given.rtt_ms:
            with _far_away(server, redis_port, rtt / 1000) as (ours, theirs):
                contenders: dict[str, Settings] = {
                    "scrapy": {},
                    "scrapy_tuned": tuned,
                    "scrapy_ext": ours,
                    "scrapy_redis": theirs,
                }
                limits = dict.fromkeys(contenders, given.limit) | {"scrapy_redis": given.redis_limit}
                runs = {name: partial(run, own, limit=limits[name]) for name, own in contenders.items()}
                by_latency[f"{rtt:g}"] = _compared(alternate(given.rounds, runs))
    report(
        "crawl_rate",
        pages=given.pages,
        rounds=given.rounds,
        concurrent_items_of_the_add_on=tuned["CONCURRENT_ITEMS"],
        by_rtt_ms=by_latency,
    )


def _items_of_the_add_on(settings: Settings) -> int:
    """Return the settings of a crawl with the add-on. The call also warms up what every crawl reads."""
    with site(1) as address:
        return crawl("SitePages", settings, site=address, items=1).concurrent_items


@contextmanager
def _far_away(server: Platform, redis_port: int, seconds: float) -> Generator[tuple[Settings, Settings]]:
    if not seconds:
        yield scrapy_ext(server.port, server.key), scrapy_redis(redis_port)
        return
    with latency(server.port, seconds) as ours, latency(redis_port, seconds) as theirs:
        yield scrapy_ext(ours.port, server.key), scrapy_redis(theirs.port)


def _compared(results: dict[str, list[Crawled]]) -> dict[str, Any]:
    rates = {name: median(crawled.pages_per_second for crawled in found) for name, found in results.items()}
    return {
        "pages_per_second": {name: round(rate, 1) for name, rate in rates.items()},
        "ratio": {name: round(rates["scrapy_ext"] / rate, 2) for name, rate in rates.items() if name != "scrapy_ext"},
        "cut_off": [name for name, found in results.items() if not all(crawled.ended for crawled in found)],
    }


if __name__ == "__main__":
    main()
