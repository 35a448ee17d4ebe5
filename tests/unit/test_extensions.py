"""Extensions leave what is not theirs as it is."""

from __future__ import annotations

import asyncio
import gc
import logging
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from twisted.python.failure import Failure

from scrapy_ext.api.platform.records import MAX_MESSAGE, shortened
from scrapy_ext.extensions import ErrorSnapshots, LogUploader
from tests.support.crawlers import get_crawler


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


def test_a_long_line_is_stored_with_a_mark_of_what_is_left_out() -> None:
    assert shortened("x" * MAX_MESSAGE) == "x" * MAX_MESSAGE
    stored = shortened("x" * 20_000_000)
    assert len(stored) <= MAX_MESSAGE
    kept = stored.index("…")
    assert stored.endswith(f"x… ({20_000_000 - kept} more characters of this line are left out)")


def test_an_error_of_start_which_has_no_page_is_no_error_of_the_snapshots() -> None:
    extension: Any = ErrorSnapshots.from_crawler(get_crawler(settings_dict={"EXTRACT_API_SNAPSHOTS_ON_ERROR": True}))
    extension._queue = SimpleNamespace(has_room=True)
    extension._spider_error(Failure(ValueError("no login")), None)


def test_passwords_are_masked_in_stored_log_lines_and_their_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    crawler = get_crawler(settings_dict={"SHOP_PASSWORD": "heron-4712"})
    handler: Any = LogUploader(crawler)._handler
    try:
        raise ValueError("no ftp://ann:wren@files.example/a.csv")
    except ValueError:
        logging.getLogger("shop").exception("logged in with %s", "heron-4712")
    (line,) = handler._early
    assert "wren" not in line.message
    assert "heron" not in line.message
    assert "ftp://files.example/a.csv" in line.message


async def test_log_lines_of_a_worker_of_a_group_begin_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    handler: Any = LogUploader(get_crawler())._handler
    stored: list[bytes] = []
    logging.getLogger("shop").warning("before the job is open")
    handler.open(SimpleNamespace(add=stored.append, failed=None), "[3] ")
    logging.getLogger("shop").warning("x" * MAX_MESSAGE)
    await asyncio.sleep(0)
    early, late = (msgspec.json.decode(line)["message"] for line in stored)
    assert early == "[3] before the job is open"
    assert late.startswith("[3] xxx")
    assert len(late) <= MAX_MESSAGE
