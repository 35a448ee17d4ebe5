"""Activity messages (platform-api.md, Activity), and webhooks, which send them to a URL. The hosted platform does not
have webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.webhooks import Delivery, Webhook
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post, send_json
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.client.platform.resource import Resource

Messages = list[dict[str, Any]]
_Webhooks = list[Webhook]
_Deliveries = list[Delivery]


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


class Webhooks(Resource):
    """URLs that receive the activity of projects."""

    async def list(self, project: int) -> _Webhooks:
        """Return the webhooks of a project, without their secrets."""
        return await self._json(get(Host.APP, _webhooks(project), accept=JSON), _Webhooks)

    async def create(self, project: int, url: str, events: Sequence[str]) -> Webhook:
        """Create a webhook and return it with its secret, which no other call returns. Sent once: a second attempt
        could create another."""
        call = send_json("POST", _webhooks(project), {"url": url, "events": [*events]}, repeatable=False)
        return await self._json(call, Webhook)

    async def disable(self, project: int, id: int, disabled: bool) -> Webhook:
        """Enable a webhook, or disable it and drop its pending deliveries."""
        call = send_json("PATCH", _webhooks(project, id), {"disabled": disabled}, repeatable=False)
        return await self._json(call, Webhook)

    async def delete(self, project: int, id: int) -> None:
        await self._transport.send(delete(Host.APP, _webhooks(project, id)))

    async def test(self, project: int, id: int) -> Delivery:
        """Send a test; its result is in :meth:`deliveries`."""
        call = post(Host.APP, _webhooks(project, id, "test"), None, accept=JSON, repeatable=False)
        return await self._json(call, Delivery)

    async def deliveries(self, project: int, id: int, *, count: int | None = None) -> _Deliveries:
        """Return recent and pending deliveries, newest first."""
        return await self._json(
            get(Host.APP, _webhooks(project, id, "deliveries"), ("count", count), accept=JSON), _Deliveries
        )


def _activity(project: int) -> str:
    return path("activity", project) + "/"


def _webhooks(project: int, *rest: int | str) -> str:
    return path("api", "projects", project, "webhooks", *rest)
