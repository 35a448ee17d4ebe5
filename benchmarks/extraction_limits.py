"""Effects of an extraction service's limits on a crawl.

``neighbour``: the rate of a healthy site, in pages a second, alone and beside a site that is answered 429 for ever,
whose requests come first; both get their answers within 100 ms. ``delivery_seconds``: from a 429 or 503 with
``Retry-After: 1`` to the page, by the type of the limit. ``close_seconds``: from the last answer that was on its way
when ``CLOSESPIDER_TIMEOUT`` was over (or from that time, if none was) to the end of a crawl that gets nothing but 429.

``scrapy_ext`` has the add-on's defaults for extraction alone, ``everything`` its platform and frontier besides,
``scrapy_zyte_api`` is that project's client. A crawl is cut off after ``--limit`` seconds (scrapy-zyte-api:
``--zyte-limit``): its rate is that until then, and null stands for what did not happen within.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rig.contenders import Settings, everything, extract_api, scrapy_zyte_api
from rig.crawls import Crawled, crawl
from rig.limits import LIMITS, limiting
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

_COMMON: Settings = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "EXTENSIONS": {"rig.observers.Times": 0},
}
_ANSWER_SECONDS = 0.1
_SLOW_ANSWER_SECONDS = 0.5
_LIMITED_PAGES = 200
_CLOSE_AFTER = 3

Contenders = Mapping[str, tuple[Settings, float]]


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 1500, "rounds": 3, "limits": [*LIMITS], "times": 5, "limit": 120, "zyte_limit": 45},
        quick={"pages": 150, "rounds": 1, "limits": ["over-domain-limit"], "times": 1, "limit": 12, "zyte_limit": 5},
    )
    with platform() as server:
        report(
            "extraction_limits",
            pages=given.pages,
            rounds=given.rounds,
            neighbour=_neighbour(given, server),
            delivery_seconds=_delivery(given, server),
            close_seconds=_close(given, server),
        )


def _contenders(given: Namespace, server: Platform, service: str) -> Contenders:
    """Settings, and the seconds until a crawl is cut off."""
    return {
        "scrapy_ext": ({**_COMMON, **extract_api(service)}, given.limit),
        "everything": ({**_COMMON, **everything(server.port, server.key, service)}, given.limit),
        "scrapy_zyte_api": ({**_COMMON, **scrapy_zyte_api(service)}, given.zyte_limit),
    }


def _neighbour(given: Namespace, server: Platform) -> dict[str, Any]:
    runs: dict[str, Callable[[], Crawled]] = {}
    with limiting(_ANSWER_SECONDS) as (service, _):
        for name, (settings, limit) in _contenders(given, server, service).items():
            run = partial(crawl, "Neighbours", settings, limit=limit, healthy=given.pages, hosts=1)
            runs[f"{name} alone"] = partial(run, limited=0)
            runs[f"{name} beside"] = partial(run, limited=_LIMITED_PAGES)
        results = alternate(given.rounds, runs)
    rates = {name: median(_healthy_rate(crawled, given.pages) for crawled in found) for name, found in results.items()}
    return {
        name.split()[0]: {
            "alone": round(alone, 1),
            "beside": round(rates[name.replace("alone", "beside")], 1),
            # A quick crawl may be cut off before its first page.
            "ratio": round(rates[name.replace("alone", "beside")] / alone, 3) if alone else 0.0,
        }
        for name, alone in rates.items()
        if name.endswith("alone")
    }


def _healthy_rate(crawled: Crawled, pages: int) -> float:
    times, opened = crawled.observed["healthy"], crawled.observed["opened"]
    end = times[-1] if len(times) == pages else opened + crawled.seconds
    return len(times) / float(end - opened)


def _delivery(given: Namespace, server: Platform) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    for kind in given.limits:
        # One service per crawl, since it remembers the limited callers.
        for name in ("scrapy_ext", "everything", "scrapy_zyte_api"):
            with limiting(0) as (service, _):
                settings, limit = _contenders(given, server, service)[name]
                times = given.times if name != "scrapy_zyte_api" else 1
                crawled = crawl("Delivered", settings, limit=limit, kind=kind, times=times)
            seconds = crawled.observed["delivered"]
            summary = {"median": round(median(seconds), 2), "longest": round(max(seconds), 2)} if seconds else None
            found.setdefault(name, {})[kind] = summary
    return found


def _close(given: Namespace, server: Platform) -> dict[str, float | None]:
    found: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        with limiting(_SLOW_ANSWER_SECONDS) as (service, running):
            for name, (settings, limit) in _contenders(given, server, service).items():
                own = {**settings, "CLOSESPIDER_TIMEOUT": _CLOSE_AFTER}
                crawled = crawl("Neighbours", own, limit=limit, healthy=0, limited=_LIMITED_PAGES, hosts=8)
                times = found.setdefault(name, [])
                if crawled.ended:
                    asked = crawled.observed["opened"] + _CLOSE_AFTER
                    times.append(crawled.observed["closed"] - max(asked, float(running.ask("last"))))
    return {name: round(max(times), 2) if times else None for name, times in found.items()}


if __name__ == "__main__":
    main()
