"""Events for webhooks, added to their outbox with their activity message, so that neither exists alone.

Writers lock the project's counter of activity messages; every change of a webhook takes that lock first, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.webhooks import (
    MAX_MESSAGE_BYTES,
    TEST_EVENT,
    WEBHOOK_EVENTS,
    WEBHOOK_FULL,
    Delivery,
    DeliveryBody,
    WebhookEvent,
    wants,
)
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.outbox import Claimed, Outbox, Tables

#: Maximum pending events of a webhook. Further events are dropped.
MAX_PENDING: Final = 10_000
#: Time (ms) to send a claimed event.
CLAIM: Final = 60_000


class Event(NamedTuple):
    """A named activity message: number, name and JSON."""

    number: int
    name: str
    message: bytes


class ClaimedEvent(Claimed, frozen=True):
    """An event to be sent, with the URL and the secret of its webhook."""

    body: bytes
    url: str
    secret: str

    @property
    def id(self) -> str:
        return event_id(self.project, self.receiver, self.number)


class _Named(msgspec.Struct):
    event: str


_name: Final = msgspec.json.Decoder(_Named).decode
_names: Final = msgspec.json.Decoder(list[str]).decode


#: Columns of an event after its number.
_COLUMNS: Final = ("event", "created", "state", "attempts", "due", "outcome")


def _shown(project: int, webhook: int, row: Row) -> Delivery:
    number, *rest = row
    return Delivery(id=event_id(project, webhook, number), **dict(zip(_COLUMNS, rest, strict=True)))


EVENTS: Final = Outbox(
    Tables(
        rows="webhook_deliveries",
        receivers="webhooks",
        receiver="webhook",
        kind="event",
        content="body",
        address="url, secret",
        shown=", ".join(("number", *_COLUMNS)),
        healthy="failing_since = NULL, dropped = 0, given_up = 0",
    ),
    ClaimedEvent,
    _shown,
    sent="delivered",
    test=TEST_EVENT,
    claim=CLAIM,
)


async def enqueue(tx: Transaction, project: int, first: int, messages: Sequence[bytes], now: int) -> list[bytes]:
    """Enqueue messages with numbers from ``first`` for the webhooks that want them; return activity messages about
    webhooks whose queue is full."""
    webhooks = await tx.fetch(
        "SELECT number, events, dropped FROM webhooks WHERE project = $1 AND disabled = 0 ORDER BY number", project
    )
    if not webhooks:
        return []
    named = [each for place, message in enumerate(messages) if (each := _event(first + place, message)) is not None]
    messages_about = []
    for number, wanted, dropped in webhooks:
        names = _names(wanted)
        chosen = [each for each in named if wants(names, each.name)]
        kept = chosen[: await EVENTS.room(tx, project, number, MAX_PENDING)] if chosen else []
        await add_rows(tx, project, number, kept, now)
        if len(kept) < len(chosen):
            await tx.execute(
                "UPDATE webhooks SET dropped = dropped + $3 WHERE project = $1 AND number = $2",
                project,
                number,
                len(chosen) - len(kept),
            )
            if dropped == 0:
                why = f"{MAX_PENDING} deliveries are pending. New events are dropped."
                messages_about.append(about(number, WEBHOOK_FULL, why))
    return messages_about


def about(webhook: int, event: str, message: str) -> bytes:
    return msgspec.json.encode(WebhookEvent(event, f"webhook {webhook}", webhook, message))


async def add_rows(tx: Transaction, project: int, webhook: int, events: Sequence[Event], now: int) -> None:
    rows = []
    for number, name, message in events:
        body = DeliveryBody(event_id(project, webhook, number), name, project, now, msgspec.Raw(message))
        rows.append((project, webhook, number, name, msgspec.json.encode(body), now))
    if rows:
        await tx.execute_many(
            """INSERT INTO webhook_deliveries (project, webhook, number, event, body, created, due)
               VALUES ($1, $2, $3, $4, $5, $6, $6)""",
            rows,
        )


def event_id(project: int, webhook: int, number: int) -> str:
    """Return the ID of an event, the same at each attempt."""
    return f"{project}-{webhook}-{number}"


def _event(number: int, message: bytes) -> Event | None:
    if len(message) > MAX_MESSAGE_BYTES:
        return None
    try:
        name = _name(message).event
    # Clients may post any object.
    except msgspec.MsgspecError:
        return None
    # Sending events about webhooks could fail and cause further events, without end.
    return None if len(name) > 255 or name.startswith(WEBHOOK_EVENTS) or "\0" in name else Event(number, name, message)
