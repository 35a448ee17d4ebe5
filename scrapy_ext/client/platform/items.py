"""Items (platform-api.md, Items)."""

from __future__ import annotations

from scrapy_ext.client.platform.records import JobRecords


class Items(JobRecords):
    """The items of jobs."""

    resource = "items"
    content_range = True
