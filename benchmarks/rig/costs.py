"""The model of cost: what a number of pages a month takes, by measured inputs (``costs.json``).

A crawl causes costs of three sorts. It is begun and ended (a *job*); it sends what it has every second or two, however
little that is (a *commit*); and it has *pages*. So a crawl with a page every ten seconds costs servers and PostgreSQL
several times as much a page as one with ten pages a second: each of its pages is a commit. A commit begins half a
flush interval after the first result. Pages come at random, so that a crawl of ``pace`` pages a second has
``pace / (1 + pace * flush_interval / 2)`` commits a second.

The inputs are processor seconds, bytes on disk and bytes over the wire of each sort, of the crawling process, the
servers and PostgreSQL, and what browser and extraction take for a page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

#: Measured inputs, with the scripts that they come from.
INPUTS = Path(__file__).parents[1] / "costs.json"
MONTH_SECONDS = 30 * 86_400
#: Bytes of the item that was measured.
_MEASURED_ITEM = 1024
_GB = 1e9


@dataclass(frozen=True)
class Share:
    """Costs of a job, a commit and a page in one unit: processor seconds, or bytes."""

    job: float
    commit: float
    page: float

    def of(self, jobs: float, commits: float, pages: float) -> float:
        return self.job * jobs + self.commit * commits + self.page * pages


@dataclass(frozen=True)
class Assumptions:
    """Properties of crawls and pages that a user knows better, and how much room to leave."""

    #: Pages a second of one crawl, and pages of a crawl.
    pace: float = 0.1
    pages_per_job: int = 10_000
    #: Seconds: the setting PLATFORM_FLUSH_INTERVAL.
    flush_interval: float = 2.0
    #: KB of a page as it is downloaded (compressed), items of a page, bytes of an item as JSON.
    page_kb: float = 30.0
    items_per_page: float = 1.0
    item_bytes: float = 1024.0
    #: Milliseconds of processor time that the spider's own code takes for a page.
    parse_ms: float = 10.0
    #: Shares of the pages that come through the extraction service: plain, by its browser, and with automatic
    #: extraction (which may be of either).
    service_share: float = 0.0
    browser_share: float = 0.0
    extraction_share: float = 0.0
    #: Days for which items, request records and logs are kept.
    retention_days: int = 30
    #: Rate in the busiest hours by that of the mean, and the share of a core and of a disk that may be used then.
    peak: float = 3.0
    use: float = 0.6
    #: Prices of a core and of a GB on disk, for a month.
    core_price: float = 0.0
    gb_price: float = 0.0


@dataclass(frozen=True)
class Need:
    """Result for a number of pages a month. Cores and memory are those of the peak with room; disk and network are of a
    month."""

    pages: float
    pages_per_second: float
    crawls: int
    crawl_cores: float
    crawl_memory_gb: float
    server_cores: float
    server_processes: int
    postgresql_cores: float
    extraction_cores: float
    disk_gb_a_month: float
    disk_gb_kept: float
    network_gb_sites: float
    network_gb_platform: float
    price: float = 0.0


def load(path: Path = INPUTS) -> dict[str, Any]:
    """Return the inputs of the file."""
    inputs: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return inputs


def need(pages: float, inputs: Mapping[str, Any], engine: str, given: Assumptions) -> Need:
    """Return what so many pages a month take, with the platform's data on ``engine``."""
    measured, of_item = inputs["engines"][engine], inputs["item"]
    mean = pages / MONTH_SECONDS
    jobs, commits = pages / given.pages_per_job, pages / (1 + given.pace * given.flush_interval / 2)
    month = (jobs, commits, pages)
    # Of items, the first of a page is in what was measured, with its own size.
    items = given.items_per_page * given.item_bytes / _MEASURED_ITEM - 1
    extra = {name: max(items, -1.0) * pages * value for name, value in of_item[engine].items()}

    def cores(seconds: float, idle: float = 0.0) -> float:
        return (seconds / MONTH_SECONDS * given.peak + idle) / given.use

    crawl = _share(inputs["crawl"]["cpu"]).of(*month) + extra["crawl_cpu"] + pages * given.parse_ms / 1000
    servers = cores(_share(measured["server_cpu"]).of(*month) + extra["server_cpu"], measured["idle_cores"])
    postgresql = cores(_share(measured["postgresql_cpu"]).of(*month) + extra["postgresql_cpu"])
    service = inputs["service"]
    extraction = pages * (
        given.service_share * service["body_cpu"]
        + given.browser_share * service["browser_cpu"]
        + given.extraction_share * service["extraction_cpu"]
    )
    disk = (_share(measured["disk"]).of(*month) + extra["disk"]) / _GB
    kept = disk * given.retention_days / 30
    crawls = math.ceil(mean * given.peak / given.pace)
    found = Need(
        pages=pages,
        pages_per_second=mean,
        crawls=crawls,
        crawl_cores=cores(crawl),
        crawl_memory_gb=crawls * inputs["crawl"]["memory"] / _GB,
        server_cores=servers,
        server_processes=max(math.ceil(servers), 1),
        postgresql_cores=postgresql,
        extraction_cores=cores(extraction),
        disk_gb_a_month=disk,
        disk_gb_kept=kept / given.use,
        network_gb_sites=pages * given.page_kb * 1000 / _GB,
        network_gb_platform=(_share(inputs["wire"]).of(*month) + extra["wire"]) / _GB,
    )
    all_cores = found.crawl_cores + found.server_cores + found.postgresql_cores + found.extraction_cores
    price = all_cores * given.core_price + found.disk_gb_kept * given.gb_price
    return Need(**{**{field.name: getattr(found, field.name) for field in fields(found)}, "price": price})


def _share(of: Mapping[str, float]) -> Share:
    return Share(of["job"], of["commit"], of["page"])
