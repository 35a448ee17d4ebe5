"""Periodic jobs (platform-api.md, Periodic jobs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.periodic import PeriodicJob
from scrapy_ext.client.platform.calls import JSON, ClientCall, delete, get
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path


class Meta(msgspec.Struct):
    """``suggested_hour`` (UTC) spreads the load."""

    suggested_hour: str | None = None


class PeriodicJobs(msgspec.Struct):
    """The answer to a listing; ``next`` and ``previous`` are None when there is no such page."""

    count: int
    results: list[PeriodicJob]
    next: str | None = None
    previous: str | None = None
    meta: Meta = msgspec.field(default_factory=Meta)


class Periodic:
    """Schedules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, project: int, *, count: int | None = None, offset: int | None = None) -> PeriodicJobs:
        """A page of the project's schedules."""
        call = get(Host.APP, _path(project), ("count", count), ("offset", offset), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(PeriodicJobs))

    async def get(self, project: int, id: int) -> PeriodicJob:
        """One schedule."""
        call = get(Host.APP, _path(project, id), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(PeriodicJob))

    async def create(self, project: int, fields: Mapping[str, Any]) -> PeriodicJob:
        """A new schedule with ``cron``, ``tasks``, ``addtags``, ``disabled``, ``description``. Sent once: a
        second try could make a second one."""
        call = _send("POST", _path(project), fields, repeatable=False)
        return await self._transport.read(call, lambda answer: answer.json(PeriodicJob))

    async def update(self, project: int, id: int, fields: Mapping[str, Any]) -> PeriodicJob:
        """Change fields of a schedule; the others keep their values."""
        call = _send("PATCH", _path(project, id), fields)
        return await self._transport.read(call, lambda answer: answer.json(PeriodicJob))

    async def delete(self, project: int, id: int) -> None:
        """Delete a schedule."""
        await self._transport.send(delete(Host.APP, _path(project, id)))


def _path(project: int, *id: int) -> str:
    return path("api", "projects", project, "periodicjobs", *id)


def _send(method: str, where: str, fields: Mapping[str, Any], *, repeatable: bool = True) -> ClientCall:
    return ClientCall(
        method=method,
        host=Host.APP,
        path=where,
        body=msgspec.json.encode(fields),
        content_type=JSON,
        accept=JSON,
        repeatable=repeatable,
    )
