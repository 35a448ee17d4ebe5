"""Delivery rules, deliveries of finished jobs, and restores. The hosted platform does not have them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scrapy_ext.api.platform.deliveries import DeliveryList, DeliveryRule, JobDelivery, JobRestore, RestoreList
from scrapy_ext.api.platform.keys import Host, JobKey
from scrapy_ext.api.platform.rules import JobsPreview
from scrapy_ext.client.platform.calls import JSON, form, get
from scrapy_ext.client.platform.rules import Rules

_Deliveries = list[JobDelivery]


class Deliveries(Rules[DeliveryRule, JobsPreview]):
    """Rules by which finished jobs are delivered, the deliveries of jobs, and restores of archived jobs."""

    _name = "deliveries"
    _rule = DeliveryRule
    _rules = list[DeliveryRule]
    _preview = JobsPreview

    async def of_job(self, job: JobKey) -> _Deliveries:
        """Return the complete deliveries of a job, newest first."""
        call = get(Host.APP, "/api/jobs/deliveries.json", ("project", job.project), ("job", str(job)), accept=JSON)
        return await self._transport.read(call, lambda answer: msgspec.convert(answer.app(), DeliveryList).deliveries)

    async def restore(self, job: JobKey) -> JobRestore:
        """Start to bring back the records of an archived job."""
        call = form("/api/jobs/restore.json", ("project", job.project), ("job", str(job)), repeatable=False)
        return await self._transport.read(call, lambda answer: msgspec.convert(answer.app(), RestoreList).jobs[0])

    async def restore_state(self, job: JobKey) -> JobRestore:
        """Return whether the records of a job can be read."""
        return (await self.restore_states([job]))[0]

    async def restore_states(self, jobs: Sequence[JobKey]) -> list[JobRestore]:
        """Return whether the records of jobs of a project can be read; at most 100 a call."""
        named = ("job", [str(job) for job in jobs])
        call = get(Host.APP, "/api/jobs/restore.json", ("project", jobs[0].project), named, accept=JSON)
        return await self._transport.read(call, lambda answer: msgspec.convert(answer.app(), RestoreList).jobs)
