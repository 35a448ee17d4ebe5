"""Requests per second and processor time (µs) of a request with the scheduler alone, without a network.

``--chains`` chains on as many hosts: each page, which comes at once, yields an item and the next request. ``scrapy`` is
the in-memory scheduler, ``scrapy_ext`` is ``FrontierScheduler`` on the package's server, with nothing else of the
package. Both have ``CONCURRENT_ITEMS = 8``. The processor time is that of the crawling process; ``added_us``
is that of ``scrapy_ext`` on top of ``scrapy`` in the same round.
"""

from __future__ import annotations

from functools import partial

from rig.contenders import Settings, platform_at
from rig.crawls import Crawled, crawl
from rig.rounds import alternate, median, options, report
from rig.services import platform


def main() -> None:
    given = options(
        __doc__,
        full={"requests": 20_000, "chains": 100, "rounds": 5},
        quick={"requests": 2_000, "chains": 100, "rounds": 1},
    )
    common: Settings = {"DOWNLOAD_HANDLERS": {"http": "rig.instant.InstantHandler"}, "CONCURRENT_ITEMS": 8}
    run = partial(crawl, "Chains", chains=given.chains, requests=given.requests, items=given.requests)
    with platform() as server:
        frontier = {"SCHEDULER": "scrapy_ext.scheduler.FrontierScheduler", **platform_at(server.port, server.key)}
        results = alternate(
            given.rounds, {"scrapy": partial(run, common), "scrapy_ext": partial(run, {**common, **frontier})}
        )
    costs = {name: [1e6 * crawled.cpu_seconds / crawled.items for crawled in found] for name, found in results.items()}
    rates = {name: median(map(_rate, found)) for name, found in results.items()}
    added = (ours - theirs for ours, theirs in zip(costs["scrapy_ext"], costs["scrapy"], strict=True))
    report(
        "scheduler_rate",
        requests=given.requests,
        rounds=given.rounds,
        requests_per_second={name: round(rate, 1) for name, rate in rates.items()},
        cpu_us={name: round(median(found), 1) for name, found in costs.items()},
        added_us=round(median(added), 1),
        ratio={
            "rate": round(rates["scrapy_ext"] / rates["scrapy"], 2),
            "cpu": round(median(costs["scrapy_ext"]) / median(costs["scrapy"]), 2),
        },
    )


def _rate(crawled: Crawled) -> float:
    return crawled.items / crawled.seconds


if __name__ == "__main__":
    main()
