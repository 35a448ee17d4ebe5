"""``/logs``: lines of jobs' logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from scrapy_ext.api.platform.logs import LogRecord
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.platform.records import RecordResource
from scrapy_ext.server.store.records import RecordStore


def logs(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, _faults, meta_first=True)


def _faults(record: dict[str, Any], place: str) -> Iterator[Violation]:
    try:
        msgspec.convert(record, LogRecord)
    except msgspec.ValidationError as error:
        yield Violation(place, f"is not a log record: {error}", "Send time (ms), level and message.")
