"""``/items``: any JSON objects."""

from __future__ import annotations

from scrapy_ext.server.platform.records import ingestion as intake
from scrapy_ext.server.platform.records.records import RecordResource, Traits
from scrapy_ext.server.store.records.records import RecordStore


def items(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, Traits(intake.ITEM, msgpack=True))
