"""Webhooks and their events, which are rows of an outbox (:mod:`outbox`).

Every change of a webhook first locks the project's counter of activity messages, as :mod:`webhook_queue` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from scrapy_ext.api.platform.webhooks import (
    MAX_WEBHOOKS,
    TEST_EVENT,
    WEBHOOK_DISABLED,
    WEBHOOK_GIVEN_UP,
    Delivery,
    NewWebhook,
    Webhook,
    new_secret,
)
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.outbox import OutboxStore, Receivers
from scrapy_ext.server.store.projects import advance, hold
from scrapy_ext.server.store.webhook_queue import EVENTS, ClaimedEvent, Event, about, add_rows

#: Time (ms) without an accepted event after which a webhook is disabled, and the same in days.
_DISABLE_DAYS: Final = 3
DISABLE: Final = _DISABLE_DAYS * 24 * 3600 * 1000
_HEALTHY: Final = """
    UPDATE {receivers} SET {healthy} WHERE project = $1 AND number = $2 AND failing_since IS NOT NULL"""

WEBHOOKS: Final = Receivers(
    EVENTS,
    NewWebhook,
    Webhook,
    noun="webhooks",
    most=MAX_WEBHOOKS,
    counter="webhook",
    lock="activity",
    hidden="secret",
)


async def _test(tx: Transaction, project: int, number: int, now: int) -> Delivery | None:
    place = await advance(tx, project, "activity")
    if await WEBHOOKS.get(tx, project, number) is None:
        return None
    message = about(number, TEST_EVENT, "A test.")
    await add_rows(tx, project, number, [Event(place, TEST_EVENT, message)], now)
    return await EVENTS.put_first(tx, project, number, place)


async def _accepted(tx: Transaction, sent: ClaimedEvent, outcome: str) -> None:
    """Record that an event was accepted."""
    await hold(tx, sent.project, "activity")
    if await EVENTS.accepted(tx, sent, outcome):
        await tx.execute(
            EVENTS.sql(_HEALTHY),
            sent.project,
            sent.receiver,
        )


async def _refused(tx: Transaction, now: int, sent: ClaimedEvent, outcome: str) -> None:
    """Record that an event was not accepted, with activity messages when it is given up, or its webhook is disabled."""
    where = (sent.project, sent.receiver)
    await hold(tx, sent.project, "activity")
    refused = await EVENTS.refused(tx, sent, outcome, now)
    webhook = await tx.fetchrow(
        "SELECT failing_since, given_up, disabled FROM webhooks WHERE project = $1 AND number = $2", *where
    )
    if refused is None or webhook is None:
        return
    failing_since, given_up, disabled = webhook
    since = now if failing_since is None else failing_since
    messages = []
    if refused.is_given_up and not refused.is_test and given_up == 0:
        why = f"The delivery {sent.id} ({sent.kind}) was given up after {sent.attempts} attempts: {outcome}."
        messages.append(about(sent.receiver, WEBHOOK_GIVEN_UP, why))
    if not refused.is_test:
        await tx.execute(
            """UPDATE webhooks SET failing_since = $3, given_up = given_up + $4 WHERE project = $1 AND number = $2""",
            *where,
            since,
            int(refused.is_given_up),
        )
    if not disabled and now - since >= DISABLE:
        await WEBHOOKS.disable(tx, *where, disabled=True)
        why = f"No delivery succeeded for {_DISABLE_DAYS} days. The webhook is disabled: {outcome}."
        messages.append(about(sent.receiver, WEBHOOK_DISABLED, why))
    if messages:
        await add_events(tx, sent.project, messages, now)


class WebhookStore(OutboxStore[ClaimedEvent, Delivery, Webhook]):
    """Webhooks by project and number."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock, EVENTS, WEBHOOKS, accepted=_accepted, refused=_refused)

    async def create(self, project: int, new: NewWebhook) -> Webhook:
        """Store a webhook with a new secret, which only the returned record has; raise :class:`ContractError`."""
        secret = new_secret()
        return replace(await self.add(project, new, secret=secret), secret=secret)

    async def test(self, project: int, number: int) -> Delivery | None:
        """Add a test, also for a disabled webhook; None when there is no such webhook."""
        added = await self._engine.write(_test, project, number, self._clock())
        self.changed.set()
        return added
