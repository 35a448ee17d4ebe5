"""Extensions leave what is not theirs as it is."""

from __future__ import annotations

import gc
import logging

import pytest

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
