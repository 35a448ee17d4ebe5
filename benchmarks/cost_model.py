"""Table of what a number of pages a month takes: processes, cores, memory, disk and network.

    python benchmarks/cost_model.py                                       # 10^6, 5*10^7 and 10^9 pages a month
    python benchmarks/cost_model.py --pages 2e7 --pace 1 --browser-share 0.1
    python benchmarks/cost_model.py --pages 2e7 --core-price 12 --gb-price 0.1 --json

The inputs are in ``costs.json``, each with the script that measured it (``cost_inputs.py``); :mod:`rig.costs` is the
model. Cores and memory are those of the busiest hours, with room. Prices are for a month, in any currency.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from rig.costs import Assumptions, Need, Objects, load, need, objects

_ROWS = (1e6, 5e7, 1e9)
_HELP = {
    "pace": "pages a second of one crawl",
    "pages_per_job": "pages of a crawl",
    "flush_interval": "seconds, the setting PLATFORM_FLUSH_INTERVAL of the crawls",
    "page_kb": "KB of a page as it is downloaded, compressed",
    "items_per_page": "items of a page",
    "item_bytes": "bytes of an item as JSON",
    "links_per_page": "links of a page that its callback follows",
    "parse_ms": "milliseconds of processor time of the spider's own code for a page",
    "service_share": "share of the pages whose body comes through the extraction service",
    "browser_share": "share of the pages that the service's browser loads",
    "extraction_share": "share of the pages with automatic extraction",
    "retention_days": "days for which records are kept",
    "peak": "rate of the busiest hours by the mean",
    "use": "share of cores and disk that may be used",
    "worker_units": "crawls that a worker of the platform runs at once, its --units",
    "core_price": "price of a core for a month",
    "gb_price": "price of a GB of disk for a month",
}


class _Line(NamedTuple):
    name: str
    text: Callable[[Need], str]


def main() -> None:
    given = _parse()
    chosen = Assumptions(**{field.name: getattr(given, field.name) for field in fields(Assumptions)})
    inputs = load()
    if given.inputs:
        print(inputs_table(inputs))
        return
    if given.objects:
        print(objects_table(given.pages, [objects(pages, inputs, given.engine, chosen) for pages in given.pages]))
        return
    found = [need(pages, inputs, given.engine, chosen) for pages in given.pages]
    print(json.dumps([asdict(each) for each in found]) if given.json else table(found, chosen))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=_listed, default=list(_ROWS), help="pages a month, with commas")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--quick", action="store_true", help="as without it: nothing is measured")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--inputs", action="store_true", help="print what a job, a commit and a page take instead")
    parser.add_argument("--objects", action="store_true", help="print writes of an object store instead")
    for field in fields(Assumptions):
        name = f"--{field.name.replace('_', '-')}"
        kind = int if isinstance(field.default, int) else float
        parser.add_argument(name, type=kind, default=field.default, help=f"{_HELP[field.name]}; {field.default}")
    return parser.parse_args()


def _listed(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


# ── the table ──


def table(found: Sequence[Need], given: Assumptions) -> str:
    """Return the table as text."""
    return _aligned([[line.name, *map(line.text, found)] for line in lines(given)])


def inputs_table(inputs: Mapping[str, Any]) -> str:
    """Return the measured parts as text."""
    rows = [["", "job", "commit", "page"]]

    def add(name: str, of: Mapping[str, float], unit: float = 1.0) -> None:
        rows.append([name, *(_number(of[part] * unit) for part in rows[0][1:])])

    add("crawling process, ms", inputs["crawl"]["cpu"], 1000)
    for engine, measured in inputs["engines"].items():
        add(f"server on {engine}, ms", measured["server_cpu"], 1000)
    add("postgresql, ms", inputs["engines"]["postgresql"]["postgresql_cpu"], 1000)
    for engine, measured in inputs["engines"].items():
        add(f"disk on {engine}, bytes", measured["disk"])
    add("log of postgresql, bytes", inputs["engines"]["postgresql"]["log"])
    add("transactions of postgresql", inputs["engines"]["postgresql"]["writes"])
    add("network, bytes", inputs["wire"])
    return _aligned(rows)


def objects_table(pages: Sequence[float], found: Sequence[Objects]) -> str:
    """Return the writes a month of an object store as text."""
    rows = [["pages a month", *map(_power, pages)]]
    for name, value in (
        ("an object for each write", lambda each: each.by_write),
        ("an object for each chunk", lambda each: each.by_chunk),
        ("chunks packed by job and kind", lambda each: each.packed),
        ("their size, GB", lambda each: each.packed_gb),
    ):
        rows.append([name, *(_number(value(each)) for each in found)])
    return _aligned(rows)


def _power(pages: float) -> str:
    return f"{pages:.0e}".replace("e+0", "e").replace("e+", "e")


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def lines(given: Assumptions) -> list[_Line]:
    """Return the lines of the table: what each is called, and its text for a number of pages."""
    found = [
        _Line("pages a month", lambda each: _power(each.pages)),
        _Line("pages a second, mean", lambda each: _number(each.pages_per_second)),
        _Line("crawls at once, in the busiest hours", lambda each: f"{each.crawls:,}"),
        _Line("cores of crawls", lambda each: _number(each.crawl_cores)),
        _Line("memory of crawls, GB", lambda each: _number(each.crawl_memory_gb)),
        _Line("cores of platform servers", lambda each: _number(each.server_cores)),
        _Line("server processes", lambda each: str(each.server_processes)),
        _Line("cores of PostgreSQL", lambda each: _number(each.postgresql_cores)),
        _Line("connections of PostgreSQL", lambda each: f"{each.connections:,}"),
        _Line("its transactions a second, busiest", lambda each: _number(each.transactions)),
        _Line("its log, MB a second, busiest", lambda each: _number(each.log_mb_a_second)),
        _Line("its log, GB a month", lambda each: _number(each.log_gb_a_month)),
        _Line("cores of the extraction service", lambda each: _number(each.extraction_cores)),
        _Line("disk, GB a month", lambda each: _number(each.disk_gb_a_month)),
        _Line(f"disk for {given.retention_days} days, GB", lambda each: _number(each.disk_gb_kept)),
        _Line("disk of frontiers, GB", lambda each: _number(each.frontier_gb)),
        _Line("network from sites, GB a month", lambda each: _number(each.network_gb_sites)),
        _Line("network to the platform, GB a month", lambda each: _number(each.network_gb_platform)),
    ]
    if given.core_price or given.gb_price:
        found.append(_Line("price a month", lambda each: _number(each.price)))
    return found


def _number(value: float) -> str:
    """Format with two digits that count."""
    if value == 0:
        return "0"
    if value < 0.01:
        return "< 0.01"
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{float(f'{value:.2g}'):g}"


if __name__ == "__main__":
    main()
