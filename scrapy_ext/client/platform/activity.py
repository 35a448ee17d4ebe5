"""Activity messages (platform-api.md, Activity)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.platform.calls import get, path, post
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.resource import Resource

Messages = list[dict[str, Any]]


class Activity(Resource):
    """Messages about events in projects."""

    async def list(self, project: int, *, count: int | None = None, meta: Sequence[str] = ()) -> Messages:
        """Return messages of a project, the newest first."""
        return await self._lines(get(Host.STORAGE, _path(project), ("count", count), ("meta", meta)), dict)

    async def of_projects(
        self,
        projects: Sequence[int],
        *,
        count: int | None = None,
        pcount: int | None = None,
        meta: Sequence[str] = ("_project",),
    ) -> Messages:
        """Return messages of several projects, the newest first: at most ``count``, and ``pcount`` per project."""
        parameters = (("p", projects), ("count", count), ("pcount", pcount), ("meta", meta))
        return await self._lines(get(Host.STORAGE, "/activity/projects/", *parameters), dict)

    async def post(self, project: int, message: Mapping[str, Any]) -> None:
        """Add a message. Sent once: a second attempt could add it twice."""
        await self._transport.send(post(Host.STORAGE, _path(project), encode([message]), repeatable=False))


def _path(project: int) -> str:
    return path("activity", project) + "/"
