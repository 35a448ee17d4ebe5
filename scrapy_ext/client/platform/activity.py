"""Activity messages (platform-api.md, Activity)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.platform.calls import ClientCall, get
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path

Messages = list[dict[str, Any]]


class Activity:
    """What happens in projects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, project: int, *, count: int | None = None, meta: Sequence[str] = ()) -> Messages:
        """Messages of a project, the newest first."""
        call = get(Host.STORAGE, path("activity", project) + "/", ("count", count), ("meta", meta))
        return await self._transport.read(call, lambda answer: answer.lines(dict))

    async def of_projects(
        self,
        projects: Sequence[int],
        *,
        count: int | None = None,
        pcount: int | None = None,
        meta: Sequence[str] = ("_project",),
    ) -> Messages:
        """Messages of several projects, the newest first: ``count`` in all, ``pcount`` a project, at most."""
        call = get(
            Host.STORAGE,
            "/activity/projects/",
            ("p", projects),
            ("count", count),
            ("pcount", pcount),
            ("meta", meta),
        )
        return await self._transport.read(call, lambda answer: answer.lines(dict))

    async def post(self, project: int, message: Mapping[str, Any]) -> None:
        """Add a message. Sent once: a second try could add it twice."""
        call = ClientCall(
            method="POST",
            host=Host.STORAGE,
            path=path("activity", project) + "/",
            body=encode([message]),
            repeatable=False,
        )
        await self._transport.send(call)
