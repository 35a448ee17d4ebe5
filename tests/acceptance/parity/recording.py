"""Records of one crawl: its log, its signals and its items."""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter
from typing import Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ext.crawl.session.items import UnstorableItemError, item_to_json
from tests.acceptance.parity.local import public_class

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
            self.storable.append(json.loads(item_to_json(item, replaced=[])))


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
