"""Run spiders in this process, one after another, and write down what happened.

``python -m tests.acceptance.parity.run PLAN``

The plan is a file with the wiring and, for each spider, its port and its folder. What happened is written beside it, by
spider.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.resolver import CachingThreadedResolver, dnscache
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.reactor import install_reactor

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.crawl.session.items import UnstorableItemError, item_to_json
from scrapy_ext.crawl.session.session import Session
from tests.acceptance.parity.local import LocalSpider, public_class
from tests.acceptance.parity.site import OTHER
from tests.acceptance.parity.wirings import WIRINGS

#: A crawl that hangs ends.
SETTINGS = {"TELNETCONSOLE_ENABLED": False, "CLOSESPIDER_TIMEOUT": 300, "LOG_LEVEL": "DEBUG"}


class Records(logging.Handler):
    """Handler that keeps log messages from warnings upwards."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().split("\n")[0]
        error = record.exc_info[0] if record.exc_info else None
        raised = f" [{public_class(error)}]" if error is not None else ""
        self.lines[f"{record.levelname} {record.name}: {message}{raised}"] += 1


class Signals:
    """Counter of the signals by name and subject."""

    def __init__(self, crawler: Crawler) -> None:
        self.counts: Counter[str] = Counter()
        self.items: list[Any] = []
        #: Those that the platform can hold, as it holds them.
        self.storable: list[Any] = []
        for name, details in _DETAILS.items():
            # A bound method would do, but the dispatcher hands each receiver only the arguments that it names.
            crawler.signals.connect(self._receiver(name, details), signal=getattr(signals, name), weak=False)
        crawler.signals.connect(self._scraped, signal=signals.item_scraped)

    def _receiver(self, name: str, details: str) -> Any:
        def receive(**sent: Any) -> None:
            self.counts[f"{name} {_DETAIL[details](sent)}".strip()] += 1

        return receive

    def _scraped(self, item: Any) -> None:
        self.items.append(canonical(item))
        with contextlib.suppress(UnstorableItemError):
            self.storable.append(json.loads(item_to_json(item)))


_DETAIL = {
    "": lambda sent: "",
    "request": lambda sent: f"{sent['request'].method} {sent['request'].url}",
    "response": lambda sent: f"{sent['response'].status} {sent['response'].url}",
    "failure": lambda sent: f"{sent['failure'].type.__name__} {sent['response'].url}",
    "item": lambda sent: type(sent["item"]).__name__,
    "reason": lambda sent: sent["reason"],
}
#: Signals that are counted, and what is said of each. Not those that come once in a while.
_DETAILS = {
    "spider_opened": "",
    "spider_closed": "reason",
    "spider_error": "failure",
    "request_scheduled": "request",
    "request_dropped": "request",
    "request_reached_downloader": "request",
    "request_left_downloader": "request",
    "response_received": "response",
    "response_downloaded": "response",
    "headers_received": "request",
    "robots_parsed": "",
    "item_scraped": "item",
    "item_dropped": "item",
    "item_error": "item",
    "feed_slot_closed": "",
    "feed_exporter_closed": "",
}


def canonical(item: Any) -> Any:
    """An item as JSON, with its class."""
    kind = {} if isinstance(item, dict) else {"class": type(item).__name__}
    return json.loads(json.dumps({**ItemAdapter(item).asdict(), **kind}, sort_keys=True, default=repr))


async def outcome(spider: type[LocalSpider], wiring: dict[str, Any], port: int, run: int) -> dict[str, Any]:
    """Record of one crawl."""
    records = Records()
    logging.getLogger().addHandler(records)
    runner = AsyncCrawlerRunner({**SETTINGS, **wiring})
    crawler = runner.create_crawler(spider)
    sent = Signals(crawler)
    raised = None
    try:
        await runner.crawl(crawler, site=f"http://localhost:{port}", run=run)
    except Exception as error:
        raised = public_class(type(error))
    finally:
        logging.getLogger().removeHandler(records)
    stats, notes = {}, None
    with contextlib.suppress(RuntimeError):  # A crawl that could not begin has no stats, or no spider.
        stats = crawler.stats.get_stats()
        notes = crawler.spider.notes
    return {
        "storable": sent.storable,
        "stored": await stored(crawler, wiring),
        "raised": raised,
        "reason": stats.get("finish_reason"),
        "items": sent.items,
        "notes": notes,
        "signals": sent.counts,
        "stats": {name: value for name, value in stats.items() if isinstance(value, int | float | str)},
        "log": records.lines,
        "settings": {
            name: crawler.settings.getint(name) for name in ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")
        },
    }


async def stored(crawler: Crawler, settings: dict[str, Any]) -> list[Any] | None:
    """The items that the platform has of a crawl; None where there is no platform."""
    job = Session.of(crawler).job_key
    if job is None:
        return None
    async with PlatformClient(PlatformUrls.single(settings["PLATFORM_URL"]), settings["PLATFORM_API_KEY"]) as client:
        return [item async for item in client.items.iter(job)]


async def run_all(plan: dict[str, Any]) -> None:
    from tests.acceptance.parity.spiders import SPIDERS

    for name, place in plan["spiders"].items():
        folder = Path(place["folder"])
        folder.mkdir(parents=True)
        os.chdir(folder)
        spider = SPIDERS[name]
        settings = {**plan["settings"], **WIRINGS[plan["wiring"]]}
        runs = []
        for run in range(spider.runs):
            dnscache[OTHER] = "127.0.0.1"
            runs.append(await outcome(spider, settings, place["port"], run))
        files = {
            str(path.relative_to(folder)): path.read_bytes().decode("latin-1")
            for path in sorted(folder.glob("out/**/*"))
            if path.is_file()
        }
        Path(f"{folder}.json").write_text(json.dumps({"runs": runs, "files": files}))


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    logging.getLogger().setLevel(logging.DEBUG)
    logging.getLogger().addHandler(logging.NullHandler())
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    # As Scrapy's own process does: it reads `dnscache`.
    from twisted.internet import reactor
    from twisted.internet.task import react

    CachingThreadedResolver(reactor, cache_size=100, timeout=60).install_on_reactor()
    react(deferred_f_from_coro_f(lambda _reactor: run_all(plan)))


if __name__ == "__main__":
    main()
