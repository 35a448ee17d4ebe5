"""Processor time (µs) of an item of 1 KB, besides the engine's own.

Pages without a network yield items by the hundred, so that there is little but items. The processor time is that of
the crawling process, threads included; the engine's own is that of the crawl without a pipeline in the same round.
Compared: the package's pipeline alone, which streams (``streaming``); the add-on, whose frontier stores each item once
(``exact``: with scheduler, request records and log); Scrapy's JSON lines feed, the writer of the ``scrapinghub`` client
pointed at the package's server, and the pipeline of scrapy-redis. ``ratio`` is the exact one by the others. All have
``CONCURRENT_ITEMS = 8``, since Scrapy's default costs the engine more than any storage.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rig.contenders import Settings, platform_at, scrapy_ext, scrapy_redis
from rig.crawls import Crawled, crawl
from rig.rounds import alternate, median, options, report
from rig.services import platform, redis

_PER_PAGE = 100


def main() -> None:
    given = options(__doc__, full={"items": 50_000, "rounds": 5}, quick={"items": 5_000, "rounds": 2})
    pages = given.items // _PER_PAGE
    run = partial(crawl, "Items", pages=pages, page_items=_PER_PAGE, items=pages * _PER_PAGE)
    with platform() as server, redis() as redis_port, tempfile.TemporaryDirectory() as folder:
        at_server = platform_at(server.port, server.key)
        redis_items = {name: scrapy_redis(redis_port)[name] for name in ("ITEM_PIPELINES", "REDIS_URL")}
        contenders: dict[str, Settings] = {
            "engine": {},
            "exact": scrapy_ext(server.port, server.key),
            "streaming": {**at_server, "ITEM_PIPELINES": {"scrapy_ext.pipelines.ItemStoragePipeline": 1000}},
            "scrapy_json_lines": {"FEEDS": {str(Path(folder, "items.jl")): {"format": "jsonlines", "overwrite": True}}},
            "scrapy_redis": redis_items,
        }
        if find_spec("scrapinghub"):
            pipeline = {"rig.pipelines.ScrapinghubPipeline": 1000}
            contenders["scrapinghub"] = {**at_server, "ITEM_PIPELINES": pipeline}
        common: Settings = {"CONCURRENT_ITEMS": 8}
        runs: dict[str, Callable[[], Crawled]] = {
            name: partial(run, {**common, **settings}) for name, settings in contenders.items()
        }
        results = alternate(given.rounds, runs)
    costs = {name: [1e6 * crawled.cpu_seconds / crawled.items for crawled in found] for name, found in results.items()}
    own = costs.pop("engine")
    added = {name: median(cost - base for cost, base in zip(found, own, strict=True)) for name, found in costs.items()}
    report(
        "item_cost",
        items=pages * _PER_PAGE,
        rounds=given.rounds,
        engine_us=round(median(own), 1),
        added_us={name: round(cost, 1) for name, cost in added.items()},
        ratio={name: round(added["exact"] / cost, 2) for name, cost in added.items() if name != "exact"},
    )


if __name__ == "__main__":
    main()
