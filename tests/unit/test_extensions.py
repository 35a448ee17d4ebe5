"""Extensions leave what is not theirs as it is."""

from __future__ import annotations

import gc
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import signals
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from scrapy_ext.extensions import SkippedRecords
from tests.support.crawlers import get_crawler

PAGES, ITEMS = (logging.getLogger(name) for name in ("scrapy.core.engine", "scrapy.core.scraper"))


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_a_crawl_that_was_never_run_takes_no_line_from_other_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    get_crawler(settings_dict={"ADDONS": {"scrapy_ext.Addon": 500}})
    gc.collect()
    assert logging.getLogger().handlers, "the extension that stores the log"
    other = Lines()
    logging.getLogger().addHandler(other)
    logging.getLogger("somewhere").warning("a line")
    assert other.lines == ["a line"]
    assert logging.getLogger().handlers == [other]


def log_at_info(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one handler, at INFO, under a root logger that takes all levels, as in a crawl."""
    handler = Lines()
    handler.setLevel(logging.INFO)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger(), "level", logging.NOTSET)


class Crawl:
    """One with the extension, which is open."""

    def __init__(self, level: str) -> None:
        self._crawler: Any = SimpleNamespace(settings=Settings({"LOG_LEVEL": level}), signals=SignalManager(self))
        self.extension = SkippedRecords.from_crawler(self._crawler)
        self._crawler.signals.send_catch_log(signals.spider_opened)

    def close(self) -> None:
        self._crawler.signals.send_catch_log(signals.spider_closed)


def makes_debug_records() -> bool:
    return PAGES.isEnabledFor(logging.DEBUG) and ITEMS.isEnabledFor(logging.DEBUG)


def test_records_of_pages_and_items_that_no_handler_takes_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    log_at_info(monkeypatch)
    assert makes_debug_records()
    crawl = Crawl("INFO")
    assert not PAGES.isEnabledFor(logging.DEBUG)
    assert not ITEMS.isEnabledFor(logging.DEBUG)
    assert PAGES.isEnabledFor(logging.INFO)
    assert logging.getLogger("scrapy.core.downloader").isEnabledFor(logging.DEBUG)
    crawl.close()
    assert makes_debug_records()


def test_they_are_made_for_a_handler_for_the_level_and_for_another_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    log_at_info(monkeypatch)
    mine = Lines()
    logging.getLogger("scrapy").addHandler(mine)
    try:
        crawl = Crawl("INFO")
        assert makes_debug_records(), "for a handler of one of the loggers above"
        crawl.close()
    finally:
        logging.getLogger("scrapy").removeHandler(mine)
    quiet = Crawl("INFO")
    loud = Crawl("DEBUG")
    assert makes_debug_records(), "the stat of log records counts them in one of the crawls"
    loud.close()
    assert not PAGES.isEnabledFor(logging.DEBUG)
    quiet.close()
    assert makes_debug_records()


def test_a_level_of_the_project_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    log_at_info(monkeypatch)
    monkeypatch.setattr(ITEMS, "level", logging.DEBUG)
    crawl = Crawl("WARNING")
    assert (PAGES.level, ITEMS.level) == (logging.INFO, logging.DEBUG)
    crawl.close()
    assert (PAGES.level, ITEMS.level) == (logging.NOTSET, logging.DEBUG)
