"""Cost of a page through the extraction client: processor time, pages per second, memory.

``scrapy`` downloads the pages from a site, as shipped; ``scrapy_tuned`` too, with ``CONCURRENT_ITEMS = 8``, since
Scrapy starts as many tasks for each response; ``engine`` has that too, and the pages from memory, which is what
Scrapy's engine alone costs. ``scrapy_ext`` gets the same pages from an extraction service, with the add-on's defaults
for extraction alone; ``everything`` has its platform and frontier besides, on the package's server;
``scrapy_zyte_api`` is that project's client in transparent mode, at the same service. Site and service are one process
that answers at once (:mod:`rig.extraction`), and ``--at-once`` is ``CONCURRENT_REQUESTS`` and
``CONCURRENT_REQUESTS_PER_DOMAIN`` of every crawl.

Processor time is that of the crawling process, user and system, threads included. It and the rate are taken in the
middle of a crawl, without its start and end; the peak is the highest resident memory of the whole process. ``--kb`` is
the size of a page, ``--pages`` how many at 10 KB; there are fewer large ones. With https the certificate is made for
the run, and every process trusts it. ``ratio`` is ``scrapy_ext`` by the other.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rig.certificates import certificate, trusting
from rig.contenders import Settings, everything, extract_api, scrapy_zyte_api
from rig.crawls import Crawled, crawl
from rig.extraction import Extraction, extraction
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

_FIELDS: dict[str, Settings] = {"body": {}, "browser": {"browserHtml": True}}
#: Downloads from the site cost the same for all outputs.
_DIRECT = ["scrapy", "scrapy_tuned", "engine"]
_ROUTED = ["scrapy_ext", "everything", "scrapy_zyte_api"]
_CHAINS = 128


def main() -> None:
    axes: dict[str, Any] = {"schemes": ["http", "https"], "kb": [10, 100, 1000], "outputs": [*_FIELDS]}
    given = options(
        __doc__,
        full={**axes, "contenders": _DIRECT + _ROUTED, "at_once": 64, "pages": 3000, "rounds": 5},
        quick={
            **axes,
            "kb": [10],
            "outputs": ["body"],
            "contenders": ["scrapy", *_ROUTED],
            "at_once": 64,
            "pages": 200,
            "rounds": 1,
        },
    )
    found: dict[str, dict[str, Any]] = {}
    with platform() as server, certificate() as folder:
        for scheme in given.schemes:
            for kb in given.kb:
                with extraction(kb * 1000, folder if scheme == "https" else "") as at:
                    crawls = _crawls(given, kb, at, server, trusting(folder))
                    found.setdefault(scheme, {})[str(kb)] = _compared(alternate(given.rounds, crawls))
    report("extraction_cost", at_once=given.at_once, rounds=given.rounds, pages=given.pages, by_scheme_and_kb=found)


def _crawls(
    given: Namespace, kb: int, at: Extraction, server: Platform, trust: Mapping[str, str]
) -> dict[str, Callable[[], Crawled]]:
    """Return the name in the report: ``scrapy``, or ``scrapy_ext body`` for a contender with outputs."""
    pages = max(round(given.pages * 1.1 / (1 + kb / 100)), 100)
    run = partial(_crawl, site=at.site, size=kb * 1000, extra=trust)
    settings: dict[str, Settings] = {"scrapy": {}}
    if "scrapy_tuned" in given.contenders:
        settings["scrapy_tuned"] = {"CONCURRENT_ITEMS": 8}
        settings["engine"] = {**settings["scrapy_tuned"], **_from_memory(kb * 1000)}
    for output in given.outputs:
        fields = _FIELDS[output]
        settings[f"scrapy_ext {output}"] = extract_api(at.service, fields)
        settings[f"everything {output}"] = everything(server.port, server.key, at.service, fields)
        if "scrapy_zyte_api" in given.contenders:
            settings[f"scrapy_zyte_api {output}"] = scrapy_zyte_api(at.service, fields)
    common: Settings = {"CONCURRENT_REQUESTS": given.at_once, "CONCURRENT_REQUESTS_PER_DOMAIN": given.at_once}
    return {
        name: partial(run, {**common, **own}, pages=pages, before=max(pages // 5, 130))
        for name, own in settings.items()
        if name.split()[0] in given.contenders
    }


def _from_memory(size: int) -> Settings:
    handlers = dict.fromkeys(("http", "https"), "rig.instant.PageHandler")
    return {"DOWNLOAD_HANDLERS": handlers, "BENCH_PAGE_SIZE": size}


def _crawl(settings: Settings, *, pages: int, before: int, **arguments: Any) -> Crawled:
    every = before + pages + _CHAINS
    return crawl("SameSite", settings, items=every, pages=pages, before=before, chains=_CHAINS, **arguments)


def _compared(results: dict[str, list[Crawled]]) -> dict[str, Any]:
    measured = {
        "cpu_us": {name: median(map(_cpu_us, crawls)) for name, crawls in results.items()},
        "pages_per_second": {name: median(map(_rate, crawls)) for name, crawls in results.items()},
        "peak_mib": {
            name: median(crawled.peak_bytes / 2**20 for crawled in crawls) for name, crawls in results.items()
        },
    }
    return {
        what: {
            **{name: round(value, 1) for name, value in values.items()},
            "ratio": {name: _ratios(values, name) for name in values if name.startswith("scrapy_ext ")},
        }
        for what, values in measured.items()
    }


def _ratios(values: Mapping[str, float], ours: str) -> dict[str, float]:
    output = ours.split()[1]
    others = (name for name in values if name in _DIRECT or (name != ours and name.endswith(f" {output}")))
    return {name.split()[0]: round(values[ours] / values[name], 2) for name in others}


def _cpu_us(crawled: Crawled) -> float:
    begun, ended = (crawled.observed[mark]["cpu"] for mark in ("from", "to"))
    return 1e6 * float(ended - begun) / int(crawled.observed["measured_pages"])


def _rate(crawled: Crawled) -> float:
    begun, ended = (crawled.observed[mark]["time"] for mark in ("from", "to"))
    return int(crawled.observed["measured_pages"]) / float(ended - begun)


def _peak_mib(crawled: Crawled) -> float:
    return crawled.peak_bytes / 2**20


if __name__ == "__main__":
    main()
