"""The model of cost: what a number of pages a month takes, by measured inputs (``costs.json``).

A crawl causes costs of three sorts. It is begun and ended (a *job*); it sends what it has every second or two, however
little that is (a *commit*); and it has *pages*. So a crawl with a page every ten seconds costs servers and PostgreSQL
several times as much a page as one with ten pages a second: each of its pages is a commit. A commit begins half a
flush interval after the first result. Pages come at random, so that a crawl of ``pace`` pages a second has
``pace / (1 + pace * flush_interval / 2)`` commits a second.

The inputs are processor seconds, bytes on disk and bytes over the wire of each sort, of the crawling process, the
servers and PostgreSQL, bytes of its log and transactions that write, and what browser and extraction take for a page.

:func:`objects` is for a design that is not built (``docs/architecture/objects``): writes a month of an object store.
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
#: Bytes of the item, and links of the page, that were measured.
_MEASURED_ITEM, _MEASURED_LINKS = 1024, 20
_GB = 1e9
#: Connections of a server that runs no jobs, of a worker, and for administrators (``docs/howto/many-machines``).
SERVER_CONNECTIONS, WORKER_CONNECTIONS, _OTHER_CONNECTIONS = 15, 11, 10
#: Records of a chunk, and compressed bytes above which it takes no further ones (``store/records``).
CHUNK_RECORDS, CHUNK_BYTES = 1000, 128 * 1024
#: Bytes of log by those of an item in its chunk, as the item is staged: in Base64.
_STAGED = 4 / 3
#: Bytes of an object at most, and of a job's records of a kind below which they stay rows.
_OBJECT_BYTES, _LEAST_OBJECT = 16e6, 64e3


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
    #: Links of a page that its callback follows: most of what the crawling process does is done for each request.
    links_per_page: int = 20
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
    #: Crawls that a worker process of the platform runs at once (its ``--units``).
    worker_units: int = 64
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
    connections: int
    transactions: float
    log_mb_a_second: float
    log_gb_a_month: float
    extraction_cores: float
    disk_gb_a_month: float
    disk_gb_kept: float
    frontier_gb: float
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

    links = pages * (given.links_per_page - _MEASURED_LINKS) * inputs["link"]["crawl_cpu"]
    crawl = _share(inputs["crawl"]["cpu"]).of(*month) + extra["crawl_cpu"] + links + pages * given.parse_ms / 1000
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
    item = of_item[engine]["disk"] * given.item_bytes / _MEASURED_ITEM
    log = _share(measured["log"]).of(*month) + extra["disk"] * (_STAGED + _times_packed(pages / commits, item, given))
    server_processes = max(math.ceil(servers), 1)
    workers = math.ceil(crawls / given.worker_units)
    found = Need(
        pages=pages,
        pages_per_second=mean,
        crawls=crawls,
        crawl_cores=cores(crawl),
        crawl_memory_gb=crawls * inputs["crawl"]["memory"] / _GB,
        server_cores=servers,
        server_processes=server_processes,
        postgresql_cores=postgresql,
        connections=(
            server_processes * SERVER_CONNECTIONS + workers * WORKER_CONNECTIONS + _OTHER_CONNECTIONS
            if engine == "postgresql"
            else 0
        ),
        transactions=_share(measured["writes"]).of(*month) / MONTH_SECONDS * given.peak,
        log_mb_a_second=log / MONTH_SECONDS * given.peak / 1e6,
        log_gb_a_month=log / _GB,
        extraction_cores=cores(extraction),
        disk_gb_a_month=disk,
        disk_gb_kept=kept / given.use,
        frontier_gb=crawls * given.pages_per_job * inputs["frontier"][engine] / _GB / given.use,
        network_gb_sites=pages * given.page_kb * 1000 / _GB,
        network_gb_platform=(_share(inputs["wire"]).of(*month) + extra["wire"]) / _GB,
    )
    all_cores = found.crawl_cores + found.server_cores + found.postgresql_cores + found.extraction_cores
    price = all_cores * given.core_price + (found.disk_gb_kept + found.frontier_gb) * given.gb_price
    return Need(**{**{field.name: getattr(found, field.name) for field in fields(found)}, "price": price})


def _chunk_records(size: float) -> float:
    """Return the most records of a chunk, given the compressed bytes of one."""
    return min(CHUNK_RECORDS, max(CHUNK_BYTES / size, 1.0))


def _times_packed(pages: float, size: float, given: Assumptions) -> float:
    """Return how often an item is written in a chunk, given the pages of a commit and the compressed bytes of an item:
    a chunk of twice the length replaces two (``store/records/writes``)."""
    items = max(pages * given.items_per_page, 1.0)
    return 1 + max(math.log2(_chunk_records(size) / items), 0.0)


@dataclass(frozen=True)
class Objects:
    """Objects that are written in a month: one for each write of records, one for each full chunk and for the rest of a
    job, or the chunks of a job and kind packed, without those of a few bytes, which stay rows."""

    by_write: float
    by_chunk: float
    packed: float
    packed_gb: float


def objects(pages: float, inputs: Mapping[str, Any], engine: str, given: Assumptions) -> Objects:
    """Return how many objects so many pages a month would be."""
    jobs, commits = pages / given.pages_per_job, pages / (1 + given.pace * given.flush_interval / 2)
    of_item = inputs["item"][engine]["disk"] * given.item_bytes / _MEASURED_ITEM
    of_request = inputs["engines"][engine]["disk"]["page"] - inputs["item"][engine]["disk"]
    by_chunk = packed = packed_bytes = 0.0
    # Of a job: records and the bytes of each, of items and of request records. Its log is short.
    for records, size in ((given.pages_per_job * given.items_per_page, of_item), (given.pages_per_job, of_request)):
        by_chunk += math.ceil(records / _chunk_records(size))
        if records * size >= _LEAST_OBJECT:
            packed += math.ceil(records * size / _OBJECT_BYTES)
            packed_bytes += records * size
    return Objects(2 * commits, jobs * (by_chunk + 1), jobs * packed, jobs * packed_bytes / _GB)


def _share(of: Mapping[str, float]) -> Share:
    return Share(of["job"], of["commit"], of["page"])
