"""Request records (platform-api.md, Requests)."""

from __future__ import annotations

from scrapy_ext.client.platform.records import JobRecords


class Requests(JobRecords):
    """The requests that jobs made."""

    resource = "requests"
