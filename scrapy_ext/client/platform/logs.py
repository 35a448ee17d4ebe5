"""Log records (platform-api.md names their path, Comments and logs)."""

from __future__ import annotations

from scrapy_ext.client.platform.records import JobRecords


class Logs(JobRecords):
    """The logs of jobs."""

    resource = "logs"
