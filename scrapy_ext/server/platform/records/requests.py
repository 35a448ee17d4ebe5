"""``/requests``: request records. Nulls are accepted and left out when they are read."""

from __future__ import annotations

from scrapy_ext.server.platform.records import ingestion as intake
from scrapy_ext.server.platform.records.records import RecordResource, Traits
from scrapy_ext.server.store.records.records import RecordStore


def requests(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, Traits(intake.REQUEST, meta_first=True, drop_nulls=True))
