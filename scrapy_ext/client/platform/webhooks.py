"""Webhooks. The hosted platform does not have these calls."""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.webhooks import Delivery, Webhook
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post, send_json
from scrapy_ext.client.platform.resource import Resource

_Webhooks = list[Webhook]
_Deliveries = list[Delivery]


class Webhooks(Resource):
    """URLs that receive the activity of projects."""

    async def list(self, project: int) -> _Webhooks:
        """Return the webhooks of a project, without their secrets."""
        return await self._json(get(Host.APP, _path(project), accept=JSON), _Webhooks)

    async def create(self, project: int, url: str, events: Sequence[str]) -> Webhook:
        """Create a webhook and return it with its secret, which no other call returns. Sent once: a second attempt
        could create another."""
        call = send_json("POST", _path(project), {"url": url, "events": [*events]}, repeatable=False)
        return await self._json(call, Webhook)

    async def disable(self, project: int, id: int, disabled: bool) -> Webhook:
        """Enable a webhook, or disable it and drop its pending deliveries."""
        call = send_json("PATCH", _path(project, id), {"disabled": disabled}, repeatable=False)
        return await self._json(call, Webhook)

    async def delete(self, project: int, id: int) -> None:
        """Delete a webhook and its deliveries."""
        await self._transport.send(delete(Host.APP, _path(project, id)))

    async def test(self, project: int, id: int) -> Delivery:
        """Send a test; its result is in :meth:`deliveries`."""
        call = post(Host.APP, _path(project, id, "test"), None, accept=JSON, repeatable=False)
        return await self._json(call, Delivery)

    async def deliveries(self, project: int, id: int, *, count: int | None = None) -> _Deliveries:
        """Return recent and pending deliveries, newest first."""
        return await self._json(
            get(Host.APP, _path(project, id, "deliveries"), ("count", count), accept=JSON), _Deliveries
        )


def _path(project: int, *rest: int | str) -> str:
    return path("api", "projects", project, "webhooks", *rest)
