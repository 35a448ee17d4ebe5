"""Pages per second of a whole crawl of a local site, by the round trip to the crawl's storage.

``scrapy``: the in-memory scheduler, all defaults. ``scrapy_tuned``: the same, with ``CONCURRENT_ITEMS = 8``, since
Scrapy starts as many tasks for each response. ``scrapy_ext``: scheduler, items, request records and log on the
package's server. ``scrapy_redis``: scheduler, dupefilter and items on redis-server. The way to both servers takes the
given milliseconds there and back (:mod:`rig.latency`); 0 is the direct way. The site is always near. ``--stores`` are
the databases of the package's server: ``by_rtt_ms`` has the figures on SQLite, ``postgresql_by_rtt_ms`` those on
PostgreSQL, without scrapy-redis.

A crawl has fixed costs at its start and its end, which weigh less the longer it takes. So there are two rates:
``pages_per_second`` is that of the whole crawl, ``middle`` that between the first and the last tenth of its pages
(:mod:`rig.pace`); ``start_seconds`` are those until the first response, ``end_seconds`` those from the last one until
the process may end. ``ratio`` and ``middle_ratio`` are the rates of the package by those of the others. All contenders
of a store take turns, the package and scrapy-redis at each distance.

A crawl is cut off after ``--limit`` seconds (scrapy-redis: ``--redis-limit``), and its rates are those until then;
``cut_off`` names those.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.contenders import Settings, scrapy_ext, scrapy_redis
from rig.crawls import Crawled, crawl
from rig.latency import latency
from rig.pace import PHASES, Phases
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform, redis
from rig.site import site

from tests.support.postgresql import cluster

#: Name in the report of the figures on each store.
_STORES: Final = {"sqlite": "by_rtt_ms", "postgresql": "postgresql_by_rtt_ms"}
_ALWAYS: Final = {"rtt_ms": [0.0, 5.0, 50.0]}


def main() -> None:
    given = options(
        __doc__,
        full={**_ALWAYS, "stores": [*_STORES], "pages": 20_000, "rounds": 3, "limit": 300, "redis_limit": 40},
        quick={**_ALWAYS, "stores": ["sqlite"], "pages": 300, "rounds": 1, "limit": 8, "redis_limit": 4},
    )
    with site(given.pages) as address:
        found = {_STORES[store]: _on(store, given, address) for store in given.stores}
    report("crawl_rate", pages=given.pages, rounds=given.rounds, **found)


def _on(store: str, given: Namespace, address: str) -> dict[str, Any]:
    with ExitStack() as stack:
        database = stack.enter_context(cluster()).database() if store == "postgresql" else None
        server = stack.enter_context(platform(database=database))
        redis_port = stack.enter_context(redis()) if store == "sqlite" else None
        contenders: dict[tuple[str, str], Settings] = {
            ("scrapy", ""): {},
            ("scrapy_tuned", ""): {"CONCURRENT_ITEMS": 8},
        }
        for rtt in given.rtt_ms:
            far = stack.enter_context(_far_away(server, redis_port, rtt / 1000))
            contenders |= {(name, f"{rtt:g}"): settings for name, settings in far.items()}
        crawls = _measured(given, address, contenders)
    return {
        f"{rtt:g}": _compared({name: found for (name, at), found in crawls.items() if at in ("", f"{rtt:g}")})
        for rtt in given.rtt_ms
    }


#: Contenders: names, each with its milliseconds of latency.
_Name = tuple[str, str]


def _measured(
    given: Namespace, address: str, contenders: Mapping[_Name, Settings]
) -> dict[_Name, list[tuple[Crawled, Phases]]]:
    limits = {name: given.redis_limit if name[0] == "scrapy_redis" else given.limit for name in contenders}
    run = partial(crawl, "SitePages", site=address, items=given.pages)
    runs = {" ".join(name): partial(run, {**own, **PHASES}, limit=limits[name]) for name, own in contenders.items()}
    crawls = alternate(given.rounds, runs)
    return {name: [(crawled, Phases.of(crawled)) for crawled in crawls[" ".join(name)]] for name in contenders}


@contextmanager
def _far_away(server: Platform, redis_port: int | None, seconds: float) -> Generator[dict[str, Settings]]:
    """Return the contenders with a server, at this distance. Without a port there is no scrapy-redis."""
    with ExitStack() as stack:

        def at(port: int) -> int:
            return stack.enter_context(latency(port, seconds)).port if seconds else port

        theirs = {} if redis_port is None else {"scrapy_redis": scrapy_redis(at(redis_port))}
        yield {"scrapy_ext": scrapy_ext(at(server.port), server.key), **theirs}


def _compared(results: Mapping[str, list[tuple[Crawled, Phases]]]) -> dict[str, Any]:
    rates = {name: median(crawled.pages_per_second for crawled, _ in found) for name, found in results.items()}
    middle = {name: median(phases.middle for _, phases in found) for name, found in results.items()}
    return {
        "pages_per_second": {name: round(rate, 1) for name, rate in rates.items()},
        "ratio": _ratios(rates),
        "middle": {name: round(rate, 1) for name, rate in middle.items()},
        "middle_ratio": _ratios(middle),
        "start_seconds": {name: _seconds(phases.start for _, phases in found) for name, found in results.items()},
        "end_seconds": {name: _seconds(phases.end for _, phases in found) for name, found in results.items()},
        "cut_off": [name for name, found in results.items() if not all(crawled.ended for crawled, _ in found)],
    }


def _ratios(rates: Mapping[str, float]) -> dict[str, float]:
    return {name: round(rates["scrapy_ext"] / rate, 2) for name, rate in rates.items() if name != "scrapy_ext"}


def _seconds(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 2) if known else None


if __name__ == "__main__":
    main()
