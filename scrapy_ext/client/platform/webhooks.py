"""Webhooks, which are this package's own: platforms of others may have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.webhooks import Delivery, Webhook
from scrapy_ext.client.platform.calls import JSON, ClientCall, delete, get
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path

_Webhooks = list[Webhook]
_Deliveries = list[Delivery]


class Webhooks:
    """Who is told of the activity of projects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, project: int) -> _Webhooks:
        """The webhooks of a project, without their secrets."""
        call = get(Host.APP, _path(project), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(_Webhooks))

    async def create(self, project: int, url: str, events: Sequence[str]) -> Webhook:
        """A new webhook, with its secret, which is not shown again. Sent once: a second try could make another."""
        call = _send("POST", _path(project), {"url": url, "events": [*events]})
        return await self._transport.read(call, lambda answer: answer.json(Webhook))

    async def disable(self, project: int, id: int, disabled: bool) -> Webhook:
        """Disable a webhook, which forgets what it was to be told, or enable it."""
        call = _send("PATCH", _path(project, id), {"disabled": disabled})
        return await self._transport.read(call, lambda answer: answer.json(Webhook))

    async def delete(self, project: int, id: int) -> None:
        """Remove a webhook."""
        await self._transport.send(delete(Host.APP, _path(project, id)))

    async def test(self, project: int, id: int) -> Delivery:
        """Send a test; what comes of it is in :meth:`deliveries`."""
        call = _send("POST", _path(project, id, "test"), None)
        return await self._transport.read(call, lambda answer: answer.json(Delivery))

    async def deliveries(self, project: int, id: int, *, count: int | None = None) -> _Deliveries:
        """What was sent lately and what is to be sent, newest first."""
        call = get(Host.APP, _path(project, id, "deliveries"), ("count", count), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(_Deliveries))


def _path(project: int, *rest: int | str) -> str:
    return path("api", "projects", project, "webhooks", *rest)


def _send(method: str, where: str, fields: dict[str, Any] | None) -> ClientCall:
    return ClientCall(
        method=method,
        host=Host.APP,
        path=where,
        body=None if fields is None else msgspec.json.encode(fields),
        content_type=JSON,
        accept=JSON,
        repeatable=False,
    )
