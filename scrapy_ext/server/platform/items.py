"""``/items``: any JSON objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy_ext.api.violations import Violation
from scrapy_ext.server.platform.records import RecordResource
from scrapy_ext.server.store.records import RecordStore


def items(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, _faults)


def _faults(_record: dict[str, Any], _place: str) -> Iterator[Violation]:
    yield from ()
