"""Pages per second by ``CONCURRENT_ITEMS``, of plain Scrapy and of the add-on.

Two loads: pages with one item and 20 links (``links``), and pages with 300 items each of which a pipeline keeps waiting
for 10 ms (``slow_items``), where a low value costs most.
"""

from __future__ import annotations

from functools import partial

from rig.contenders import Settings, scrapy_ext
from rig.crawls import Crawled, crawl
from rig.rounds import alternate, median, options, report
from rig.services import platform
from rig.site import site

_SLOW = {"ITEM_PIPELINES": {"rig.pipelines.SlowPipeline": 300}}


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 2000, "slow_pages": 32, "rounds": 3, "values": [1, 2, 4, 8, 16, 32, 100]},
        quick={"pages": 200, "slow_pages": 4, "rounds": 1, "values": [1, 8, 100]},
    )
    values = [int(value) for value in given.values]
    with platform() as server, site(given.pages) as pages, site(given.slow_pages) as slow_pages:
        contenders = {"scrapy": {}, "scrapy_ext": scrapy_ext(server.port, server.key)}
        of_links = partial(crawl, "SitePages", site=pages, items=given.pages)
        of_items = partial(crawl, "SitePages", site=slow_pages, page_items=300, items=300 * given.slow_pages)
        runs = {}
        for name, settings in contenders.items():
            for value in values:
                set_to: Settings = {**settings, "CONCURRENT_ITEMS": value}
                runs[f"links {name} {value}"] = partial(of_links, set_to)
                runs[f"slow_items {name} {value}"] = partial(of_items, {**set_to, **_SLOW})
        results = alternate(given.rounds, runs)
    report(
        "concurrent_items",
        pages=given.pages,
        slow_pages=given.slow_pages,
        rounds=given.rounds,
        pages_per_second={
            load: {name: {value: _rate(results[f"{load} {name} {value}"]) for value in values} for name in contenders}
            for load in ("links", "slow_items")
        },
    )


def _rate(crawls: list[Crawled]) -> float:
    return round(median(crawled.pages_per_second for crawled in crawls), 1)


if __name__ == "__main__":
    main()
