"""Pictures of results of the benchmarks. Each function writes one (SVG), and returns in words what it shows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rig import bars, curves, histograms, timeline

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
    """Return the name for readers."""
    return CONTENDERS.get(name, name)


def stores(result: Any) -> list[tuple[str, Any]]:
    """Return the stores of the server in a result of crawls, each with what was found by the round trip to it."""
    names = {"SQLite": "by_rtt_ms", "PostgreSQL": "postgresql_by_rtt_ms"}
    return [(store, result[name]) for store, name in names.items() if name in result]


def size(kb: str) -> str:
    """Return a size in KB for readers: ``100 KB``, ``1 MB``."""
    return f"{int(kb) // 1000} MB" if int(kb) >= 1000 else f"{kb} KB"


def crawl_rates(path: Path, result: Any) -> str:
    groups = {
        f"{store}, {rtt} ms to it and back": [_bar(name, rate) for name, rate in found["middle"].items()]
        for store, by_rtt in stores(result)
        for rtt, found in by_rtt.items()
    }
    return bars.draw(
        path, "A crawl of a local site, by the store of the server", "pages a second in the middle of a crawl", groups
    )


def page_cost(path: Path, result: Any) -> str:
    named = ("scrapy", "engine", "scrapy_ext body", "everything body", "scrapy_zyte_api body")
    groups = {}
    for kb, found in result["by_scheme_and_kb"]["http"].items():
        costs = {name: found["cpu_us"][name] / found["cpu_us"]["scrapy"] for name in named if name in found["cpu_us"]}
        groups[f"pages of {size(kb)}"] = [_bar(name.removesuffix(" body"), cost) for name, cost in costs.items()]
    title = "What a page costs the crawling process"
    return bars.draw(path, title, "processor time, by that of Scrapy, which downloads the pages itself", groups, ".2f")


def _bar(name: str, value: float) -> bars.Bar:
    """Return a contender's bar: blue and green are this package, grey is Scrapy, brown are others."""
    colours = {"scrapy_ext": "#0b6bcb", "everything": "#15803d", "scrapy": "#475569"}
    other = "#94a3b8" if name in ("scrapy_tuned", "engine") else "#b4540a"
    return bars.Bar(contender(name), value, colours.get(name, other))


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


def politeness(path: Path, result: Any) -> str:
    crawls = {"delay": "a delay", "random": "a random delay"}
    counts = {
        f"{name}, {workers} worker{'s' if workers != '1' else ''}": found["gaps"]
        for kind, name in crawls.items()
        for workers, found in reversed(result["crawls"][kind].items())
    }
    classes = len(next(iter(counts.values())))
    edges = [f"{place // 4}" if place % 4 == 0 else "" for place in range(classes)]
    title = "Distances of requests at the site; workers were killed meanwhile"
    return histograms.draw(
        path, title, "share of the distances, in quarters of the delay; the last: 3 and more", edges, counts
    )


def large_crawl(path: Path, result: Any) -> str:
    pairs = list(pairwise(result["points"]))
    rates = [(after[0], (after[1] - before[1]) / (after[0] - before[0])) for before, after in pairs]
    title = f"{result['pages']:,} pages by {result['workers']} workers; {result['killed']} were killed"
    return timeline.draw(path, title, "over the seconds since its start", [("pages a second", rates)])


def worker_growth(path: Path, result: Any) -> str:
    names = {1: "workers", 2: "requests that wait or are under way", 3: "pages a second"}
    panels = [(name, [(point[0], point[place]) for point in result["points"]]) for place, name in names.items()]
    title = f"A job with {result['bounds'].replace('..', ' to ')} workers"
    return timeline.draw(path, title, "values over the seconds since the first worker's report", panels)
