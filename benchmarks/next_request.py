"""Time (µs) of ``next_request`` and ``enqueue_request`` with 10,000 hosts in the scheduler.

A crawl each of Scrapy's scheduler (``DownloaderAwarePriorityQueue``, its default) and of ``FrontierScheduler``, with a
clock around their methods. One page's callback yields requests to all the hosts; no answer comes until ``--gate``
seconds later, when they all wait in memory. The next ``--timed`` requests are timed; ``hosts`` is how many different
hosts they were for, which is as many when none was missing. The hosts' pages need no network; the platform is a server
on this machine.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rig.contenders import COMMON, Settings, scrapy_ext
from rig.crawls import Crawled, crawl
from rig.rounds import alternate, median, options, percentile, report
from rig.services import platform

#: Requests sent while the hosts are still being enqueued: those that fit into the downloader, and the first page.
_EARLY = COMMON["CONCURRENT_REQUESTS"] + 1


def main() -> None:
    given = options(
        __doc__,
        full={"hosts": 10_000, "each": 2, "timed": 10_000, "gate": 30.0, "rounds": 3},
        quick={"hosts": 10_000, "each": 1, "timed": 500, "gate": 10.0, "rounds": 1},
    )
    run = partial(crawl, "Hosts", hosts=given.hosts, each=given.each, limit=given.gate + 300)
    everything: Settings = {
        "DOWNLOAD_HANDLERS": {"http": "rig.instant.GatedHandler"},
        "BENCH_GATE_SECONDS": given.gate,
        "CLOSESPIDER_PAGECOUNT": given.timed + 2 * _EARLY,
    }
    with platform() as server:
        ours = {
            **scrapy_ext(server.port, server.key),
            "SCHEDULER": "rig.schedulers.TimedFrontierScheduler",
            "FRONTIER_PREFETCH": 4 * given.hosts * given.each,
        }
        runs = {
            "scrapy": partial(run, {**everything, "SCHEDULER": "rig.schedulers.TimedScheduler"}),
            "scrapy_ext": partial(run, {**everything, **ours}),
        }
        results = alternate(given.rounds, runs)
    measured = {name: _measured(found, given.timed) for name, found in results.items()}
    report(
        "next_request",
        rounds=given.rounds,
        **measured,
        ratio={name: _ratio(measured, name) for name in ("next_request", "enqueue_request")},
    )


def _measured(found: list[Crawled], timed: int) -> dict[str, Any]:
    dequeued = [crawled.observed["dequeued"][_EARLY : _EARLY + timed] for crawled in found]
    return {
        "hosts": min(len({host for _, host in taken}) for taken in dequeued),
        "next_request": _microseconds([[spent for spent, _ in taken] for taken in dequeued]),
        "enqueue_request": _microseconds([crawled.observed["enqueued"] for crawled in found]),
    }


def _microseconds(rounds: list[list[int]]) -> dict[str, float]:
    return {
        "median_us": round(median(median(times) for times in rounds) / 1000, 1),
        "p99_us": round(median(percentile(times, 0.99) for times in rounds) / 1000, 1),
    }


def _ratio(measured: dict[str, dict[str, Any]], name: str) -> dict[str, float]:
    ours, theirs = measured["scrapy_ext"][name], measured["scrapy"][name]
    return {value: round(ours[value] / theirs[value], 3) for value in ours}


if __name__ == "__main__":
    main()
