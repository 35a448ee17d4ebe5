"""Receivers of a project's messages: webhooks, and the targets of alerts. The hosted platform does not have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from scrapy_ext.api.platform.alerts import AlertMessage, AlertTarget
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.webhooks import Delivery, Webhook
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post, send_json
from scrapy_ext.client.platform.resource import Resource
from scrapy_ext.client.platform.transport import Transport

ReceiverT = TypeVar("ReceiverT", bound=msgspec.Struct)
MessageT = TypeVar("MessageT", bound=msgspec.Struct)
_Many = list[ReceiverT]
_Messages = list[MessageT]


class ReceiverSort(msgspec.Struct, Generic[ReceiverT, MessageT], frozen=True):
    """A sort of receivers: the last parts of its paths, and its records."""

    name: str
    messages_name: str
    receiver: type[ReceiverT]
    message: type[MessageT]


WEBHOOKS: Final = ReceiverSort("webhooks", "deliveries", Webhook, Delivery)
ALERTS: Final = ReceiverSort("alerts", "messages", AlertTarget, AlertMessage)


class Receivers(Resource, Generic[ReceiverT, MessageT]):
    """Receivers of a sort, without the secrets in them."""

    def __init__(self, transport: Transport, sort: ReceiverSort[ReceiverT, MessageT]) -> None:
        super().__init__(transport)
        self._sort = sort

    async def list(self, project: int) -> _Many[ReceiverT]:
        """Return the receivers of a project."""
        call = get(Host.APP, self._path(project), accept=JSON)
        return await self._array(call, self._sort.receiver)

    async def create(self, project: int, fields: Mapping[str, Any]) -> ReceiverT:
        """Add a receiver. Only this answer has the secret of a webhook. Sent once: a second attempt could add another
        receiver."""
        call = send_json("POST", self._path(project), fields, repeatable=False)
        return await self._json(call, self._sort.receiver)

    async def disable(self, project: int, id: int, disabled: bool) -> ReceiverT:
        """Enable a receiver, or disable it and drop its pending messages."""
        call = send_json("PATCH", self._path(project, id), {"disabled": disabled})
        return await self._json(call, self._sort.receiver)

    async def delete(self, project: int, id: int) -> None:
        await self._transport.send(delete(Host.APP, self._path(project, id)))

    async def test(self, project: int, id: int) -> MessageT:
        """Send a trial message; its result is in :meth:`messages`."""
        call = post(Host.APP, self._path(project, id, "test"), None, accept=JSON, repeatable=False)
        return await self._json(call, self._sort.message)

    async def messages(self, project: int, id: int, *, count: int | None = None) -> _Messages[MessageT]:
        """Return recent and pending messages to a receiver, newest first."""
        call = get(Host.APP, self._path(project, id, self._sort.messages_name), ("count", count), accept=JSON)
        return await self._array(call, self._sort.message)

    async def resend(self, project: int, id: int, number: int) -> MessageT:
        """Send a message that was given up again; ``number`` is the last part of its ID. Its result is in
        :meth:`messages`."""
        path = self._path(project, id, self._sort.messages_name, number, "resend")
        return await self._json(post(Host.APP, path, None, accept=JSON, repeatable=False), self._sort.message)

    def _path(self, project: int, *rest: int | str) -> str:
        return path("api", "projects", project, self._sort.name, *rest)
