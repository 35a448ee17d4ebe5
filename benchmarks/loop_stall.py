"""Longest stall of the event loop in milliseconds, measured by a ticker of 1 ms in the crawl.

``burst``: a callback yields 10,000 requests (plain Scrapy, the add-on, scrapy-redis; servers on this machine), from
its first line until some seconds after its last.

``outage``: a crawl of a site while its server cannot be reached, from the beginning of that until some seconds after
its end. ``hold``: nothing gets through any more; ``refuse``: connections break, and new ones are refused. scrapy-redis
has a shorter outage (``--redis-outage``), since it stalls as long as that lasts. Plain Scrapy crawls beside them as if
there were one, for what its own stalls are. The crawls are slow enough to leave the processor idle most of the time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from rig.contenders import Settings, scrapy_ext, scrapy_redis
from rig.crawls import Crawled, Crawling, crawl
from rig.latency import Latency, latency
from rig.rounds import alternate, median, options, report
from rig.services import platform, redis
from rig.site import site

_TICKER = {"EXTENSIONS": {"rig.observers.LoopTicker": 0}}
_MODES = ("hold", "refuse")
_UNHURRIED = {"DOWNLOAD_DELAY": 0.05, "RANDOMIZE_DOWNLOAD_DELAY": False, "CONCURRENT_REQUESTS": 4}
#: More pages than can be crawled during the measurement.
_ENDLESS = 10_000_000


def main() -> None:
    given = options(
        __doc__,
        full={"requests": 10_000, "outage": 30.0, "redis_outage": 5.0, "around": 6.0, "rounds": 3},
        quick={"requests": 10_000, "outage": 3.0, "redis_outage": 2.0, "around": 1.5, "rounds": 1},
    )
    with platform() as server, redis() as redis_port:
        burst = partial(crawl, "Burst", count=given.requests, settle=2, limit=120)
        contenders = {"scrapy": {}, "scrapy_ext": scrapy_ext(server.port, server.key)}
        contenders["scrapy_redis"] = scrapy_redis(redis_port)
        handler = {"DOWNLOAD_HANDLERS": {"http": "rig.instant.InstantHandler"}, **_TICKER}
        bursts = alternate(given.rounds, {name: partial(burst, {**own, **handler}) for name, own in contenders.items()})
        with latency(server.port, 0) as ours, latency(redis_port, 0) as theirs, site(_ENDLESS) as address:
            run = partial(_longest_stall, address, given.around)
            settings = scrapy_ext(ours.port, server.key)
            runs = {f"scrapy_ext {mode}": partial(run, settings, _Outage(ours, mode, given.outage)) for mode in _MODES}
            paused = _Outage(theirs, "hold", given.redis_outage)
            runs["scrapy_redis hold"] = partial(run, scrapy_redis(theirs.port), paused)
            runs["scrapy"] = partial(run, {}, _Outage(None, "", given.redis_outage))
            outages = alternate(given.rounds, runs)
    longest = {name: 1000 * median(map(_in_burst, crawls)) for name, crawls in bursts.items()}
    stalls = {name: 1000 * median(found) for name, found in outages.items()}
    report(
        "loop_stall",
        rounds=given.rounds,
        burst={"requests": given.requests, **_compared(longest, "scrapy_ext")},
        outage={
            "seconds": {"scrapy_ext": given.outage, "scrapy_redis": given.redis_outage},
            **_compared(stalls, "scrapy_ext hold"),
        },
    )


def _in_burst(crawled: Crawled) -> float:
    begun = crawled.observed["burst_from"]
    return max((length for ended, length in crawled.observed["stalls"] if ended > begun), default=0.0)


@dataclass(frozen=True)
class _Outage:
    """Run the crawl; ``way`` is None without a connection to interrupt."""

    way: Latency | None
    mode: str
    seconds: float


def _longest_stall(address: str, around: float, settings: Settings, outage: _Outage) -> float:
    """Return the longest stall of a crawl through an outage, in seconds."""
    limit = outage.seconds + 3 * around
    with Crawling("SitePages", {**settings, **_TICKER, **_UNHURRIED}, site=address, limit=limit) as crawling:
        crawling.wait_opened()
        time.sleep(around)
        begun = time.monotonic()
        if outage.way is not None:
            outage.way.become(outage.mode)
        time.sleep(outage.seconds)
        if outage.way is not None:
            outage.way.become("pass")
        ended = time.monotonic() + around
        crawled = crawling.wait()
    if crawled.ended:
        raise SystemExit(f"the crawl ended before it was cut off:\n{crawling.log}")
    stalls = [length for at, length in crawled.observed["stalls"] if begun < at <= ended]
    return max(stalls, default=0.0)


def _compared(stalls: dict[str, float], ours: str) -> dict[str, Any]:
    others = {name: length for name, length in stalls.items() if not name.startswith("scrapy_ext")}
    return {
        "longest_stall_ms": {name: round(length, 1) for name, length in stalls.items()},
        "ratio": {name: round(stalls[ours] / max(length, 0.1), 3) for name, length in others.items()},
    }


if __name__ == "__main__":
    main()
