"""Rules of projects and of the server, of any sort, and what they lead to: results of monitors, deliveries of jobs, and
restores. The hosted platform does not have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic

import msgspec

from scrapy_ext.api.platform import deliveries, monitors
from scrapy_ext.api.platform.deliveries import (
    DeliveryList,
    DeliveryPreview,
    DeliveryRule,
    JobDelivery,
    JobRestore,
    RestoreList,
)
from scrapy_ext.api.platform.keys import Host, JobKey
from scrapy_ext.api.platform.monitors import Incident, Monitor, MonitorPreview, MonitorResult
from scrapy_ext.api.platform.rules import NextJob, PreviewT, RuleSort, RuleT
from scrapy_ext.client.platform.calls import JSON, delete, form, get, path, send_json
from scrapy_ext.client.platform.resource import Resource
from scrapy_ext.client.platform.transport import Transport

_Jobs = list[NextJob]
_Many = list[RuleT]


class Rules(Resource, Generic[RuleT, PreviewT]):
    """Rules of a sort. ``project`` None: those of the server."""

    def __init__(self, transport: Transport, sort: RuleSort[Any, RuleT, PreviewT]) -> None:
        super().__init__(transport)
        self._sort = sort

    async def list(self, project: int | None) -> _Many[RuleT]:
        """Return the rules that cover a project: those of the server, and its own."""
        return await self._array(get(Host.APP, self._path(project), accept=JSON), self._sort.rule)

    async def create(self, project: int | None, fields: Mapping[str, Any]) -> RuleT:
        """Add a rule. Sent once: a second attempt could add another."""
        return await self._json(send_json("POST", self._path(project), dict(fields), repeatable=False), self._sort.rule)

    async def preview(self, project: int | None, rule: int | Mapping[str, Any]) -> PreviewT:
        """Return the data that a rule, given by number or fields, would apply to now."""
        if isinstance(rule, int):
            return await self._json(
                get(Host.APP, self._path(project, rule, "preview"), accept=JSON), self._sort.preview
            )
        return await self._json(send_json("POST", self._path(project, "preview"), dict(rule)), self._sort.preview)

    async def next(self, project: int) -> _Jobs:
        """Return the jobs that the enabled rules apply to next."""
        return await self._json(get(Host.APP, self._path(project, "next"), accept=JSON), _Jobs)

    async def enable(self, project: int | None, id: int, enabled: bool) -> RuleT:
        """Enable a rule, or disable it."""
        return await self._json(send_json("PATCH", self._path(project, id), {"enabled": enabled}), self._sort.rule)

    async def delete(self, project: int | None, id: int) -> None:
        """Remove a rule; its effects stay."""
        await self._transport.send(delete(Host.APP, self._path(project, id)))

    def _path(self, project: int | None, *rest: int | str) -> str:
        return path("api", *(() if project is None else ("projects", project)), self._sort.name, *rest)


_Results = list[MonitorResult]
_Incidents = list[Incident]


class Monitors(Rules[Monitor, MonitorPreview]):
    """Rules about finished jobs and expected runs."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, monitors.SORT)

    async def results(
        self,
        project: int,
        *,
        job: str | None = None,
        monitor: int | None = None,
        of_server: bool = False,
        count: int | None = None,
    ) -> _Results:
        """Return the results of a job, of a monitor, or of all jobs of a project; the newest first."""
        parameters = (("job", job), ("monitor", monitor), ("of_server", of_server), ("count", count))
        return await self._json(get(Host.APP, self._path(project, "results"), *parameters, accept=JSON), _Results)

    async def incidents(self, project: int) -> _Incidents:
        """Return the monitors that fail for a spider now, oldest first."""
        return await self._json(get(Host.APP, self._path(project, "incidents"), accept=JSON), _Incidents)


_Deliveries = list[JobDelivery]


class Deliveries(Rules[DeliveryRule, DeliveryPreview]):
    """Rules by which finished jobs are delivered, the deliveries of jobs, and restores of archived jobs."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, deliveries.SORT)

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
