"""One crawl in a separate process, and its measurements.

:func:`crawl` runs it and returns what came of it. ``python -m rig.crawls SPIDER JSON`` is the process; what the
extensions in :mod:`rig.observers` found comes along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any

from rig.contenders import COMMON
from rig.processes import environment


class Crawled:
    """Result of a crawl.

    ``seconds`` is from its start until its process could end; ``cpu_seconds``, the processor time of its process from
    the opening of the spider, and ``start_cpu_seconds``, that until then; ``peak_bytes``, the most resident memory that
    the process ever had. ``ended`` is False when it was cut off at its limit.
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.stats: dict[str, Any] = result["stats"]
        self.seconds: float = result["seconds"]
        self.cpu_seconds: float = result["cpu_seconds"]
        self.start_cpu_seconds: float = result["start_cpu_seconds"]
        self.peak_bytes: int = result["peak_bytes"]
        self.ended: bool = result["ended"]
        self.concurrent_items: int = result["concurrent_items"]
        self.observed: dict[str, Any] = result["observed"]

    @property
    def items(self) -> int:
        return int(self.stats.get("item_scraped_count", 0))

    @property
    def pages_per_second(self) -> float:
        return int(self.stats.get("response_received_count", 0)) / self.seconds


def crawl(
    spider: str,
    settings: Mapping[str, Any],
    *,
    limit: float = 900,
    items: int | None = None,
    extra: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Crawled:
    """Crawl with a spider of :mod:`rig.spiders`; after ``limit`` seconds it is cut off. ``items`` are those that it
    must have when it ends; ``extra``, environment variables of its process."""
    with Crawling(spider, settings, limit=limit, extra=extra, **arguments) as crawling:
        crawled = crawling.wait()
    if items is not None and crawled.ended and crawled.items != items:
        raise SystemExit(f"{items} items were expected, and there are {crawled.items}:\n{crawling.log}")
    return crawled


class Crawling:
    """A crawl that is running, so that something else can happen meanwhile; :meth:`wait` for it."""

    def __init__(
        self,
        spider: str,
        settings: Mapping[str, Any],
        *,
        limit: float = 900,
        extra: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> None:
        job = {"settings": {**COMMON, **settings}, "arguments": arguments, "limit": limit}
        self._limit = limit
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end of the block
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rig.crawls", spider, json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment(extra),
        )
        self.log = ""

    def __enter__(self) -> Crawling:
        return self

    def wait_opened(self) -> None:
        """Wait until the spider is open."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def wait(self) -> Crawled:
        output, _ = self._process.communicate(timeout=self._limit + 60)
        self._log.seek(0)
        self.log = self._log.read()[-4000:]
        if self._process.returncode or not output.endswith("}\n"):
            raise SystemExit(f"the crawl failed:\n{self.log}")
        return Crawled(json.loads(output.splitlines()[-1]))

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._log.close()


# ── in the process of the crawl ──


def main(spider: str, settings: dict[str, Any], arguments: Mapping[str, Any], limit: float) -> None:
    from scrapy import signals
    from scrapy.crawler import CrawlerProcess

    from rig import observers, spiders

    process = CrawlerProcess(settings)
    crawler = process.create_crawler(getattr(spiders, spider))
    opened = {"cpu": time.process_time()}

    def spider_opened() -> None:
        opened["cpu"] = time.process_time()
        print("opened", flush=True)

    def tell(*, ended: bool) -> None:
        result = {
            "stats": crawler.stats.get_stats() if crawler.stats else {},
            "seconds": time.monotonic() - started,
            "cpu_seconds": time.process_time() - opened["cpu"],
            "start_cpu_seconds": opened["cpu"],
            "peak_bytes": observers.peak_bytes(),
            "ended": ended,
            "concurrent_items": crawler.settings.getint("CONCURRENT_ITEMS"),
            "observed": observers.OBSERVED,
        }
        print(json.dumps(result, default=str), flush=True)

    def cut_off() -> None:
        # In a thread, since the event loop may be blocked; and immediately, since closing may take long.
        tell(ended=False)
        os._exit(0)

    crawler.signals.connect(spider_opened, signal=signals.spider_opened, weak=False)
    process.crawl(crawler, **arguments)
    timer = threading.Timer(limit, cut_off)
    timer.daemon = True
    timer.start()
    started = time.monotonic()
    process.start()
    timer.cancel()
    tell(ended=True)


if __name__ == "__main__":
    main(sys.argv[1], **json.loads(sys.argv[2]))
