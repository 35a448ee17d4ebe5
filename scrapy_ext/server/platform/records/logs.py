"""``/logs``: lines of jobs' logs."""

from __future__ import annotations

from scrapy_ext.server.platform.records import ingestion as intake
from scrapy_ext.server.platform.records.records import RecordResource, Traits
from scrapy_ext.server.store.records.records import RecordStore


def logs(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, Traits(intake.LOG, meta_first=True, msgpack=True, msgpack_keys=False))
