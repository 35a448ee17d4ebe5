"""Schedules of jobs (platform-api.md, Periodic jobs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.client.platform.calls import JSON, delete, get, path, send_json
from scrapy_ext.client.platform.resource import Resource


class Meta(msgspec.Struct):
    """``suggested_hour`` (UTC) spreads the load."""

    suggested_hour: str | None = None


class PeriodicJobs(msgspec.Struct):
    """A page of schedules; ``next`` and ``previous`` are None when there is no such page."""

    count: int
    results: list[PeriodicJob]
    next: str | None = None
    previous: str | None = None
    meta: Meta = msgspec.field(default_factory=Meta)


class Periodic(Resource):
    """Schedules of projects."""

    async def list(self, project: int, *, count: int | None = None, offset: int | None = None) -> PeriodicJobs:
        """Return a page of the project's schedules."""
        call = get(Host.APP, _schedules(project), ("count", count), ("offset", offset), accept=JSON)
        return await self._json(call, PeriodicJobs)

    async def get(self, project: int, id: int) -> PeriodicJob:
        return await self._json(get(Host.APP, _schedules(project, id), accept=JSON), PeriodicJob)

    async def create(self, project: int, fields: Mapping[str, Any]) -> PeriodicJob:
        """Create a schedule with ``cron``, ``tasks``, ``addtags``, ``disabled``, ``description``. Sent once: a second
        attempt could create a second one."""
        return await self._json(send_json("POST", _schedules(project), fields, repeatable=False), PeriodicJob)

    async def update(self, project: int, id: int, fields: Mapping[str, Any]) -> PeriodicJob:
        """Change fields of a schedule; the others keep their values."""
        return await self._json(send_json("PATCH", _schedules(project, id), fields), PeriodicJob)

    async def delete(self, project: int, id: int) -> None:
        await self._transport.send(delete(Host.APP, _schedules(project, id)))


def _schedules(project: int, *id: int) -> str:
    return path("api", "projects", project, "periodicjobs", *id)
