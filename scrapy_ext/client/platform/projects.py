"""Projects as their real clients use them: numbers, settings, spiders, comments; and activity messages
(platform-api.md, Activity). The contract documents only the latter, so that a platform may not have the other calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scrapy_ext.api.platform.keys import Host, JobKey
from scrapy_ext.api.platform.projects import Project
from scrapy_ext.client.platform.calls import JSON, get, path, post, send_json
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.resource import Resource


class ListedSpider(msgspec.Struct):
    """A spider of a project; ``id`` is its name."""

    id: str
    tags: list[str] = []


class ItemComment(msgspec.Struct):
    """A comment; ``created`` is UTC, without a zone."""

    text: str
    created: str = ""
    author: str = ""


class Projects(Resource):
    async def numbers(self) -> list[int]:
        """Return the projects that the key may read."""
        found = await self._app(get(Host.APP, "/api/scrapyd/listprojects.json", accept=JSON))
        return msgspec.convert(found.get("projects"), list[int])

    async def named(self) -> list[Project]:
        """Return the projects that the key may read, with their names. The hosted platform does not have this call."""
        return await self._json(get(Host.APP, "/api/projects", accept=JSON), list[Project])

    async def find(self, name: str) -> int | None:
        """Return the number of the project with a name; None when the key may read none. As above."""
        call = get(Host.APP, "/api/projects", ("name", name), accept=JSON)
        return next((project.id for project in await self._json(call, list[Project])), None)

    async def get(self, project: int) -> Project:
        """Return a project with its name. As above."""
        return await self._json(get(Host.APP, path("api", "projects", project), accept=JSON), Project)

    async def name(self, project: int, name: str | None) -> Project:
        """Name a project; None removes its name. As above."""
        return await self._json(send_json("PATCH", path("api", "projects", project), {"name": name}), Project)

    async def settings(self, project: int) -> dict[str, Any]:
        return await self._json(get(Host.STORAGE, path("projects", project, "settings"), accept=JSON), dict)

    async def update_settings(self, project: int, settings: Mapping[str, Any]) -> None:
        """Set settings; the others stay."""
        body = msgspec.json.encode(settings)
        await self._transport.send(post(Host.STORAGE, path("projects", project, "settings"), body, content_type=JSON))

    async def spiders(self, project: int) -> list[ListedSpider]:
        found = await self._app(get(Host.APP, "/api/spiders/list.json", ("project", project), accept=JSON))
        return msgspec.convert(found.get("spiders"), list[ListedSpider])

    async def spider_number(self, project: int, name: str) -> int | None:
        call = get(Host.STORAGE, path("ids", project, "spider", name), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(int | None))  # type: ignore[arg-type]

    async def commented(self, project: int) -> set[str]:
        """Return the keys of the jobs with comments."""
        call = get(Host.APP, path("api", "comments", project, "stats"), accept=JSON)
        return {*await self._json(call, dict[str, int])}

    async def comments(self, key: JobKey) -> dict[str, list[ItemComment]]:
        """Return the comments on the items of a job, by ``<item>`` and ``<item>/<field>``."""
        call = get(Host.APP, path("api", "comments", *key), accept=JSON)
        return await self._json(call, dict[str, list[ItemComment]])


Messages = list[dict[str, Any]]


class Activity(Resource):
    """Messages about events in projects."""

    async def list(self, project: int, *, count: int | None = None, meta: Sequence[str] = ()) -> Messages:
        """Return messages of a project, the newest first."""
        return await self._lines(get(Host.STORAGE, _activity(project), ("count", count), ("meta", meta)), dict)

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
        await self._transport.send(post(Host.STORAGE, _activity(project), encode([message]), repeatable=False))


def _activity(project: int) -> str:
    return path("activity", project) + "/"
