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
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.resolver import CachingThreadedResolver, dnscache
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.reactor import install_reactor

from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.crawl.session.session import Session
from tests.acceptance.parity.local import LocalSpider, public_class
from tests.acceptance.parity.recording import SETTINGS, Records, Signals
from tests.acceptance.parity.site import OTHER
from tests.acceptance.parity.wirings import WIRINGS


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
