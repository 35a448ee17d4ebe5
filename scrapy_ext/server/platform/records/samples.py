"""``/samples``: measurements of running jobs, JSON arrays that begin with a time."""

from __future__ import annotations

from scrapy_ext.server.platform.records import ingestion as intake
from scrapy_ext.server.platform.records.records import RecordResource, Traits
from scrapy_ext.server.store.records.records import RecordStore


def samples(store: RecordStore) -> RecordResource:
    """The resource."""
    return RecordResource(store, Traits(intake.SAMPLE, msgpack=True, plain=True))
