"""``/requests``: request records. Nulls are accepted and left out when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from scrapy_ext.api.platform.requests import RequestRecord
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.platform.records import RecordResource
from scrapy_ext.server.store.records import RecordStore


def requests(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, _faults, meta_first=True, drop_nulls=True)


def _faults(record: dict[str, Any], place: str) -> Iterator[Violation]:
    try:
        msgspec.convert(record, RequestRecord)
    except msgspec.ValidationError as error:
        yield Violation(place, f"is not a request record: {error}", "Send time, method, url, status, duration and rs.")
