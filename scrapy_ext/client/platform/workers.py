"""Workers of a job with several: their reports, and the list of them. The hosted platform does not have these calls."""

from __future__ import annotations

import msgspec

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.workers import Report, ReportAnswer, WorkerRow
from scrapy_ext.client.platform.calls import JSON, get, path, post
from scrapy_ext.client.platform.resource import Resource


class Workers(Resource):
    async def report(self, project: int, report: Report) -> ReportAnswer:
        """Report as a worker, or join. Sent once: the caller repeats it, with the same number, or sends a later one.

        Raises :class:`~scrapy_ext.client.platform.errors.NotFound` from a platform without this call and for a job
        without a group, and :class:`~scrapy_ext.client.platform.errors.AttemptOver`.
        """
        body = msgspec.json.encode(report)
        call = post(Host.JOBQ, path("jobq", project, "report"), body, content_type=JSON, accept=JSON, attempts=1)
        return await self._json(call, ReportAnswer)

    async def list(self, project: int, key: JobKey) -> list[WorkerRow]:
        """Return the workers of a job by their numbers; none for a job without a group."""
        return await self._lines(get(Host.JOBQ, path("jobq", project, "workers"), ("job", str(key))), WorkerRow)
