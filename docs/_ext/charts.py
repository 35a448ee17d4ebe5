"""Pictures of results of the benchmarks. Each function writes one (SVG), and returns in words what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rig import bars, curves

#: Names of contenders for readers; others are shown as the scripts name them.
CONTENDERS: Final = {
    "scrapy": "Scrapy",
    "scrapy_tuned": "Scrapy, 8 concurrent items",
    "engine": "Scrapy's engine alone",
    "scrapy_ext": "scrapy-ext",
    "everything": "scrapy-ext, everything on",
    "scrapy_redis": "scrapy-redis",
    "scrapy_zyte_api": "scrapy-zyte-api",
}


def contender(name: str) -> str:
    """Return the name for readers; ``scrapy_ext_postgresql`` is ``scrapy-ext, postgresql``."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    base, _, rest = name.rpartition("_")
    return f"{contender(base)}, {rest.replace('postgresql', 'PostgreSQL')}" if base in CONTENDERS else name


def stores(result: Any) -> list[tuple[str, Any]]:
    """Return the stores of the server in a result of crawls, each with what was found by the round trip to it."""
    names = {"SQLite": "by_rtt_ms", "PostgreSQL": "postgresql_by_rtt_ms"}
    return [(store, result[name]) for store, name in names.items() if name in result]


def crawl_rates(path: Path, result: Any) -> str:
    groups = {
        f"{store}, {rtt} ms to it and back": {contender(name): rate for name, rate in found["pages_per_second"].items()}
        for store, by_rtt in stores(result)
        for rtt, found in by_rtt.items()
    }
    return bars.draw(path, "A crawl of a local site, by the store of the server", "pages a second", groups)


def page_cost(path: Path, result: Any) -> str:
    named = ("scrapy", "engine", "scrapy_ext body", "everything body", "scrapy_zyte_api body")
    groups = {}
    for kb, found in result["by_scheme_and_kb"]["http"].items():
        costs = {name: found["cpu_us"][name] / found["cpu_us"]["scrapy"] for name in named if name in found["cpu_us"]}
        groups[f"pages of {kb} KB"] = {contender(name.removesuffix(" body")): cost for name, cost in costs.items()}
    title = "What a page costs the crawling process"
    return bars.draw(path, title, "processor time, by that of Scrapy, which downloads the pages itself", groups, ".2f")


def frontier(path: Path, on_sqlite: Any, on_postgresql: Any) -> str:
    lines = {"add_cpu_us": "added, SQLite", "small_add_cpu_us": "to small slots", "read_cpu_us": "read and deleted"}
    drawn = [curves.Line(name, [(at["known"], at[key]) for at in on_sqlite["sizes"]]) for key, name in lines.items()]
    both = [(at["known"], at["add_cpu_us"] + at["add_database_us"]) for at in on_postgresql["sizes"]]
    return curves.draw(
        path,
        "What a request in a frontier costs, by how many fingerprints it knows",
        "microseconds of processor time, of the server and of PostgreSQL together",
        [*drawn, curves.Line("added, PostgreSQL", both)],
    )
