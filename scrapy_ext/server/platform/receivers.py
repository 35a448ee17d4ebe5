"""``/api/projects/<project>/webhooks`` and ``/api/projects/<project>/alerts``: receivers of the project's activity, and
of messages about its monitors. These paths are this package's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.fields import fields_of
from scrapy_ext.api.platform.alerts import AlertMessage, AlertTarget, NewTarget, target_of
from scrapy_ext.api.platform.changes import ChangeEvents
from scrapy_ext.api.platform.webhooks import Delivery, NewWebhook, Webhook, webhook_of
from scrapy_ext.server.http import json_bodies, schemas
from scrapy_ext.server.http.answers import found, json, not_found
from scrapy_ext.server.http.call import Call
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.outbox import OutboxStore

_MAX_BODY: Final = 64 * 1024
_PER_PAGE: Final = 100
_MAX_PER_PAGE: Final = 1000

ROUTES: Final = Routes()


class _Receivers(ABC):
    """Receivers of a kind, and their handlers."""

    #: Last part of the paths, and the part that is the number of a receiver.
    name: str
    part: str
    #: A receiver in sentences, and several.
    noun: str
    nouns: str
    #: A row of its outbox in sentences, and several.
    row: str
    rows: str
    #: Its part that answers do not have, and the meaning of the answer to a new one.
    secret: str
    answer: str
    #: Its address in sentences.
    address: str
    example: str
    new: type[msgspec.Struct]
    stored: type[msgspec.Struct]
    sent: type[msgspec.Struct]
    #: Events of the activity.
    created: str
    changed: str
    removed: str

    @abstractmethod
    def store(self, store: Store) -> OutboxStore[Any, Any, Any]:
        """Return the receivers of a store."""

    @abstractmethod
    async def added(self, call: Call, fields: dict[str, Any]) -> msgspec.Struct:
        """Store a receiver; raise :class:`ContractError`."""

    @abstractmethod
    async def tested(self, call: Call) -> msgspec.Struct | None:
        """Send a test to a receiver; return its row, None if there is no such receiver."""

    def place(self, call: Call) -> tuple[int, int]:
        return call.project, call.part_number(self.part)

    def missing(self, call: Call) -> str:
        return f"There is no {self.part} {call.part(self.part)[:60]}. Use an id of the list of them."

    # ── handlers ──

    async def list(self, call: Call) -> Response:
        return json(await self.store(call.store).listed(call.project))

    async def read(self, call: Call) -> Response:
        return json(found(await self.store(call.store).get(*self.place(call)), self.missing(call)))

    async def add(self, call: Call) -> Response:
        self.store(call.store)  # refuses limited keys before the body is read
        fields = await json_bodies.known_fields(call.request, fields_of(self.new), self.example, _MAX_BODY)
        added = await self.added(call, fields)
        call.wrote(1)
        return json(added, 201)

    async def disable(self, call: Call) -> Response:
        receivers = self.store(call.store)  # as above
        disabled = await json_bodies.flag_of(call.request, "disabled", _MAX_BODY)
        return json(found(await receivers.disable(*self.place(call), disabled), self.missing(call)))

    async def remove(self, call: Call) -> Response:
        if not await self.store(call.store).remove(*self.place(call)):
            raise not_found(self.missing(call))
        return Response(status_code=204)

    async def test(self, call: Call) -> Response:
        return json(found(await self.tested(call), self.missing(call)), 202)

    async def resend(self, call: Call) -> Response:
        """Send a row that was given up once more."""
        sent = await self.store(call.store).resend(*self.place(call), call.part_number("number"))
        return json(
            found(
                sent,
                f"There is no {self.row} {call.part('number')[:60]} that was given up. Use one of the list of them.",
            ),
            202,
        )

    async def list_rows(self, call: Call) -> Response:
        count, place = call.page_size(_PER_PAGE, _MAX_PER_PAGE, "Ask for fewer."), self.place(call)
        receivers = self.store(call.store)
        found(await receivers.get(*place), self.missing(call))
        return json(await receivers.rows(*place, count))


class _Webhooks(_Receivers):
    name, part = "webhooks", "webhook"
    noun, nouns, row, rows = "webhook", "webhooks", "delivery", "deliveries"
    secret, address = "secret", "a URL and the events that it receives"
    answer = "The webhook, with its secret, which is not shown again."
    example = '{"url": "https://hooks.example.com/jobs", "events": ["job:completed"]}'
    new, stored, sent = NewWebhook, Webhook, Delivery
    created, changed = ChangeEvents.WEBHOOK_CREATED, ChangeEvents.WEBHOOK_CHANGED
    removed = ChangeEvents.WEBHOOK_REMOVED

    def store(self, store: Store) -> OutboxStore[Any, Any, Webhook]:
        return store.webhooks

    async def added(self, call: Call, fields: dict[str, Any]) -> Webhook:
        return await call.store.webhooks.create(call.project, webhook_of(fields))

    async def tested(self, call: Call) -> Delivery | None:
        return await call.store.webhooks.test(*self.place(call))


class _Alerts(_Receivers):
    name, part = "alerts", "target"
    noun, nouns, row, rows = "target of alerts", "targets of alerts", "message", "messages"
    secret, address = "address", "an address of Apprise"
    answer = "The target, with its address masked."
    example = '{"name": "on-call", "url": "slack://TOKEN_A/TOKEN_B/TOKEN_C"}'
    new, stored, sent = NewTarget, AlertTarget, AlertMessage
    created, changed = ChangeEvents.TARGET_CREATED, ChangeEvents.TARGET_CHANGED
    removed = ChangeEvents.TARGET_REMOVED

    def store(self, store: Store) -> OutboxStore[Any, Any, AlertTarget]:
        return store.alerts

    async def added(self, call: Call, fields: dict[str, Any]) -> AlertTarget:
        new = target_of(fields)
        from scrapy_ext.server.monitors.sending import check_installed  # few servers send messages

        check_installed()
        return await call.store.alerts.add(call.project, new)

    async def tested(self, call: Call) -> AlertMessage | None:
        target = await call.store.alerts.get(*self.place(call))
        if target is None:
            return None
        return await call.store.alerts.test(*self.place(call), call.service(Messages).test(target))


def _declare(kind: _Receivers) -> None:
    every = f"/api/projects/{{project}}/{kind.name}"
    one = f"{every}/{{{kind.part}}}"
    noun, stored, add = kind.noun, kind.stored, ROUTES.add
    found = schemas.value(f"The {noun}, without its {kind.secret}.", stored)
    all_of = schemas.value(f"The {kind.nouns}, without {kind.secret}.", schemas.Many(stored))
    added = schemas.value(kind.answer, stored)
    rows = schemas.value(f"The {kind.rows}.", schemas.Many(kind.sent))
    new = schemas.Body(schemas.JSON, kind.new)
    change = schemas.Body(schemas.JSON, schemas.record({"disabled": {"type": "boolean"}}, "disabled", only=True))
    page = (schemas.page_size(_MAX_PER_PAGE),)
    removed = schemas.AnswerShape("It is removed.")
    tested = schemas.value(f"The {kind.row}, which is sent now.", kind.sent)
    disabled = f"Disable a {noun}, which removes its pending {kind.rows}, or enable it."
    add(f"GET {every}", f"Read the {kind.nouns} of a project.", all_of)(kind.list)
    add(f"POST {every}", f"Add a {noun}: {kind.address}.", added, status=201, body=new, event=kind.created)(kind.add)
    add(f"GET {one}", f"Read a {noun}.", found)(kind.read)
    add(f"PATCH {one}", disabled, found, body=change, event=kind.changed)(kind.disable)
    add(f"DELETE {one}", f"Remove a {noun}.", removed, status=204, event=kind.removed)(kind.remove)
    add(f"POST {one}/test", f"Send a test to a {noun}; the {kind.rows} have its result.", tested, status=202)(kind.test)
    again = f"Send a {kind.row} that was given up again, with the same ID; number is the last part of the ID."
    add(f"POST {one}/{kind.rows}/{{number}}/resend", again, tested, status=202)(kind.resend)
    recent = f"Read the recent and pending {kind.rows} to a {noun}, newest first."
    add(f"GET {one}/{kind.rows}", recent, rows, parameters=page)(kind.list_rows)


_declare(_Webhooks())
_declare(_Alerts())
