"""Processor time (ms) of each kind of automatic extraction for a page of 60 to 160 KB of HTML, in the process that
extracts.

The pages are the articles of a sample of WCXB (``--labelled``: the folder that ``quality`` reads; without it, nothing
is measured). Beside them: trafilatura and resiliparse, which return the text alone, on the same pages in turns. A
page's time is the median of its rounds; ``ms`` has the median and the 95th percentile of the pages. ``per_100_kb`` is
all time by all bytes, ``ratio`` that of ``article`` by each of the two. The garbage collector is set as in the
extraction processes of the server.
"""

from __future__ import annotations

import gc
import json
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from quality.data import resiliparse_text, timed, trafilatura_text
from rig.labelled_site import articles
from rig.rounds import alternate, median, options, percentile, report

from scrapy_ext.server.computing.worker import COLLECT_AFTER
from scrapy_ext.server.extraction.auto import KINDS, preload

_PEERS: dict[str, Callable[[str], object]] = {
    "trafilatura": partial(trafilatura_text, precise=True),
    "resiliparse": resiliparse_text,
}


def main() -> None:
    given = options(
        __doc__,
        full={"pages": 40, "rounds": 3, "labelled": ""},
        quick={"pages": 2, "rounds": 1, "labelled": ""},
    )
    if not given.labelled:
        print(json.dumps({"benchmark": "extraction_kinds", "measured": False, "give": "--labelled, a folder of pages"}))
        return
    logging.disable(logging.CRITICAL)
    preload()
    pages = articles(Path(given.labelled), given.pages)
    runs = {kind: partial(_of_kind, kind, pages) for kind in KINDS}
    runs |= {name: partial(_of_peer, text, pages) for name, text in _PEERS.items()}
    # What is loaded with the first page is no part of the others.
    alternate(1, {name: partial(run.func, run.args[0], pages[:1]) for name, run in runs.items()})
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    gc.collect()
    gc.freeze()
    rounds = alternate(given.rounds, runs)
    times = {name: [median(of_page) for of_page in zip(*found, strict=True)] for name, found in rounds.items()}
    size = sum(len(html.encode()) for html, _ in pages)
    report(
        "extraction_kinds",
        pages=len(pages),
        rounds=given.rounds,
        mean_kb=round(size / len(pages) / 1000),
        ms={
            name: {"median": round(1000 * median(each), 1), "p95": round(1000 * percentile(each, 0.95), 1)}
            for name, each in times.items()
        },
        per_100_kb={name: round(1000 * sum(each) / (size / 100_000), 1) for name, each in times.items()},
        ratio={name: round(sum(times["article"]) / sum(times[name]), 2) for name in _PEERS},
    )


def _of_kind(kind: str, pages: list[tuple[str, str]]) -> list[float]:
    return [timed(kind, html, url)[1] for html, url in pages]


def _of_peer(text: Callable[[str], object], pages: list[tuple[str, str]]) -> list[float]:
    return [_seconds(partial(text, html)) for html, _ in pages]


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
