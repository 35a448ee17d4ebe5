"""Processor time (ms) of ``article`` for a page of 60 to 160 KB of HTML, in the process that extracts.

The pages are the articles of a sample of WCXB (``--labelled``: the folder that ``quality`` reads; without it, nothing
is measured). Beside it: trafilatura, which returns their text alone, on the same pages in turns. A page's time is the
median of its rounds; ``ms`` has the median and the 95th percentile of the pages. ``per_100_kb`` is all time by all
bytes.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from quality.data import page, timed, trafilatura_text, type_of, wcxb_labels
from rig.rounds import alternate, median, options, percentile, report

from scrapy_ext.server.extraction.auto import preload

_SIZES = range(60_000, 160_000)


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 40, "rounds": 3, "labelled": ""},
        quick={"pages": 3, "rounds": 1, "labelled": ""},
    )
    if not given.labelled:
        print(json.dumps({"benchmark": "article_cost", "measured": False, "give": "--labelled, a folder of pages"}))
        return
    logging.disable(logging.CRITICAL)
    preload()
    folder = Path(given.labelled, "labelled") if Path(given.labelled, "labelled").is_dir() else Path(given.labelled)
    folder = folder / "wcxb-dev"
    articles = {name: label["url"] for name, label in wcxb_labels(folder).items() if type_of(label) == "article"}
    read = ((page(folder, name), url) for name, url in sorted(articles.items()))
    pages = [(html, url) for html, url in read if len(html) in _SIZES][: given.pages]

    def article() -> list[float]:
        return [timed("article", html, url)[1] for html, url in pages]

    def trafilatura() -> list[float]:
        return [_seconds(html) for html, _ in pages]

    alternate(1, {"article": lambda: timed("article", *pages[0]), "trafilatura": lambda: _seconds(pages[0][0])})
    rounds = alternate(given.rounds, {"article": article, "trafilatura": trafilatura})
    times = {name: [median(of_page) for of_page in zip(*found, strict=True)] for name, found in rounds.items()}
    size = sum(len(html.encode()) for html, _ in pages)
    report(
        "article_cost",
        pages=len(pages),
        rounds=given.rounds,
        mean_kb=round(size / len(pages) / 1000),
        ms={
            name: {"median": round(1000 * median(each), 1), "p95": round(1000 * percentile(each, 0.95), 1)}
            for name, each in times.items()
        },
        per_100_kb={name: round(1000 * sum(each) / (size / 100_000), 1) for name, each in times.items()},
        ratio=round(sum(times["article"]) / sum(times["trafilatura"]), 2),
    )


def _seconds(html: str) -> float:
    """Return the processor time of trafilatura."""
    start = time.process_time()
    trafilatura_text(html, precise=True)
    return time.process_time() - start


if __name__ == "__main__":
    main()
