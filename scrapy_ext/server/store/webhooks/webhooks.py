"""Webhooks and their deliveries.

Rules:

- A delivery is claimed by advancing its ``due`` time, so that one of several servers sends it. Without a result within
  :data:`CLAIM` it is sent again: at least once, with the same ID.
- Every change of a webhook first locks the project's counter of activity messages, as :mod:`outbox` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.webhooks import (
    MAX_WEBHOOKS,
    TEST_EVENT,
    WEBHOOK_DISABLED,
    WEBHOOK_GIVEN_UP,
    Delivery,
    Webhook,
)
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.activity.activity import add_events
from scrapy_ext.server.store.activity.outbox import Event, about, add_deliveries, delivery_id
from scrapy_ext.server.store.counters import advance, hold
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction
from scrapy_ext.server.store.engine.methods import EngineStore, Method, TimedMethod

_SECOND: Final = 1000
_HOUR: Final = 3600 * _SECOND
#: Time (ms) to send a claimed delivery.
CLAIM: Final = 60 * _SECOND
#: Wait (ms) between a failure and the next attempt: the first, which doubles, and the longest.
FIRST_WAIT: Final = 10 * _SECOND
LONGEST_WAIT: Final = _HOUR
#: Maximum wait (ms) of a delivery, unless the clock was set back.
_LATEST: Final = LONGEST_WAIT + CLAIM
#: Age (ms) at which a delivery is given up.
GIVE_UP: Final = 24 * _HOUR
#: Time (ms) without a successful delivery after which a webhook is disabled.
DISABLE: Final = 72 * _HOUR
#: Number of delivered and of given up deliveries that are kept.
KEPT: Final = 100
MAX_LISTED: Final = 1000

_WEBHOOK: Final = "number, url, events, created, disabled, failing_since"
_DELIVERY: Final = "number, event, created, state, attempts, due, outcome"
_names: Final = msgspec.json.Decoder(list[str]).decode


class Claimed(NamedTuple):
    project: int
    webhook: int
    number: int
    attempts: int
    body: bytes
    url: str
    secret: str

    @property
    def id(self) -> str:
        return delivery_id(self.project, self.webhook, self.number)


async def _add(tx: Transaction, now: int, project: int, url: str, events: list[str], *, secret: str) -> Webhook:
    """Store a webhook; raise :class:`ContractError` when the project has too many."""
    number = await advance(tx, project, "webhook")
    if len(await _list(tx, project)) >= MAX_WEBHOOKS:
        raise ContractError(
            [Violation("project", f"has {MAX_WEBHOOKS} webhooks, which is the limit", "Remove one of them.")]
        )
    await tx.execute(
        "INSERT INTO webhooks (project, number, url, events, secret, created) VALUES ($1, $2, $3, $4, $5, $6)",
        project,
        number,
        url,
        msgspec.json.encode(events).decode(),
        secret,
        now,
    )
    return Webhook(id=number, project=project, url=url, events=events, created=now, disabled=False, failing_since=None)


async def _list(tx: Transaction, project: int) -> list[Webhook]:
    """Return the webhooks of a project, oldest first."""
    rows = await tx.fetch(
        f"SELECT {_WEBHOOK} FROM webhooks WHERE project = $1 ORDER BY number",  # noqa: S608 - fixed text
        project,
    )
    return [_webhook(project, row) for row in rows]


async def _get(tx: Transaction, project: int, number: int) -> Webhook | None:
    row = await tx.fetchrow(
        f"SELECT {_WEBHOOK} FROM webhooks WHERE project = $1 AND number = $2",  # noqa: S608 - fixed text
        project,
        number,
    )
    return _webhook(project, row) if row else None


def _webhook(project: int, row: Row) -> Webhook:
    number, url, events, created, disabled, failing_since = row
    return Webhook(
        id=number,
        project=project,
        url=url,
        events=_names(events),
        created=created,
        disabled=bool(disabled),
        failing_since=failing_since,
    )


async def _remove(tx: Transaction, project: int, number: int) -> bool:
    """Delete a webhook and its deliveries; return whether there was one."""
    await hold(tx, project, "activity")
    await tx.execute("DELETE FROM webhook_deliveries WHERE project = $1 AND webhook = $2", project, number)
    return await tx.execute("DELETE FROM webhooks WHERE project = $1 AND number = $2", project, number) > 0


async def _disable(tx: Transaction, project: int, number: int, disabled: bool) -> Webhook | None:
    """Disable a webhook and delete its pending deliveries, or enable it again."""
    await hold(tx, project, "activity")
    await _set_disabled(tx, project, number, disabled)
    return await _get(tx, project, number)


async def _set_disabled(tx: Transaction, project: int, number: int, disabled: bool) -> None:
    await tx.execute(
        """UPDATE webhooks SET disabled = $3, failing_since = NULL, dropped = 0, given_up = 0
           WHERE project = $1 AND number = $2""",
        project,
        number,
        int(disabled),
    )
    if disabled:
        await tx.execute(
            "DELETE FROM webhook_deliveries WHERE project = $1 AND webhook = $2 AND due IS NOT NULL", project, number
        )


async def _test(tx: Transaction, project: int, number: int, now: int) -> Delivery | None:
    place = await advance(tx, project, "activity")
    if await _get(tx, project, number) is None:
        return None
    message = about(number, TEST_EVENT, "A test.")
    await add_deliveries(tx, project, number, [Event(place, TEST_EVENT, message)], now)
    # A test goes first, since a user waits for it.
    row = await tx.fetchrow(
        f"""UPDATE webhook_deliveries SET due = 0 WHERE project = $1 AND webhook = $2 AND number = $3
            RETURNING {_DELIVERY}""",  # noqa: S608 - fixed text
        project,
        number,
        place,
    )
    return _delivery(project, number, row) if row else None


async def _deliveries(tx: Transaction, project: int, number: int, count: int = MAX_LISTED) -> list[Delivery]:
    """Return past and pending deliveries of a webhook, newest first."""
    rows = await tx.fetch(
        f"""SELECT {_DELIVERY} FROM webhook_deliveries
            WHERE project = $1 AND webhook = $2 ORDER BY number DESC LIMIT $3""",  # noqa: S608 - fixed text
        project,
        number,
        count,
    )
    return [_delivery(project, number, row) for row in rows]


def _delivery(project: int, webhook: int, row: Row) -> Delivery:
    number, event, created, state, attempts, due, outcome = row
    return Delivery(
        id=delivery_id(project, webhook, number),
        event=event,
        created=created,
        state=state,
        attempts=attempts,
        due=due,
        outcome=outcome,
    )


async def _waiting(tx: Transaction, now: int) -> list[tuple[int, int]]:
    """Return project and number of the webhooks with due deliveries."""
    rows = await tx.fetch(
        """SELECT project, webhook FROM webhook_deliveries WHERE due <= $1 OR due > $2
           GROUP BY project, webhook ORDER BY min(due), project, webhook""",
        now,
        now + _LATEST,
    )
    return [(project, webhook) for project, webhook in rows]


async def _claim(tx: Transaction, project: int, webhook: int, now: int) -> Claimed | None:
    row = await tx.fetchrow(
        """UPDATE webhook_deliveries SET due = $4, attempts = attempts + 1
           WHERE project = $1 AND webhook = $2 AND number = (
               SELECT number FROM webhook_deliveries WHERE project = $1 AND webhook = $2 AND (due <= $3 OR due > $5)
               ORDER BY due, number LIMIT 1 FOR UPDATE SKIP LOCKED
           ) RETURNING number, attempts, body""",
        project,
        webhook,
        now,
        now + CLAIM,
        now + _LATEST,
    )
    where = await tx.fetchrow("SELECT url, secret FROM webhooks WHERE project = $1 AND number = $2", project, webhook)
    return Claimed(project, webhook, *row, *where) if row and where else None


async def _delivered(tx: Transaction, sent: Claimed, outcome: str) -> None:
    """Record that a delivery succeeded."""
    await hold(tx, sent.project, "activity")
    if await _settle(tx, sent, None, "delivered", outcome):
        await tx.execute(
            """UPDATE webhooks SET failing_since = NULL, dropped = 0, given_up = 0
               WHERE project = $1 AND number = $2 AND failing_since IS NOT NULL""",
            sent.project,
            sent.webhook,
        )


async def _failed(tx: Transaction, now: int, sent: Claimed, outcome: str) -> None:
    """Record that a delivery failed: it is retried later, or given up."""
    where = (sent.project, sent.webhook)
    await hold(tx, sent.project, "activity")
    row = await tx.fetchrow(
        """SELECT created, event FROM webhook_deliveries
           WHERE project = $1 AND webhook = $2 AND number = $3 AND due IS NOT NULL""",
        *where,
        sent.number,
    )
    webhook = await tx.fetchrow(
        "SELECT failing_since, given_up, disabled FROM webhooks WHERE project = $1 AND number = $2", *where
    )
    if row is None or webhook is None:
        return
    (created, event), (failing_since, given_up, disabled) = row, webhook
    since = now if failing_since is None else failing_since
    wait = min(FIRST_WAIT * 2 ** min(sent.attempts - 1, 30), LONGEST_WAIT)
    # A test is not retried, since a user waits for its result.
    is_given_up = event == TEST_EVENT or now + wait - created > GIVE_UP
    state, due = ("given up", None) if is_given_up else ("pending", now + wait)
    await _settle(tx, sent, due, state, outcome)
    messages = []
    if is_given_up and event != TEST_EVENT and given_up == 0:
        why = f"The delivery {sent.id} ({event}) was given up after {sent.attempts} attempts: {outcome}."
        messages.append(about(sent.webhook, WEBHOOK_GIVEN_UP, why))
    if event != TEST_EVENT:
        await tx.execute(
            """UPDATE webhooks SET failing_since = $3, given_up = given_up + $4 WHERE project = $1 AND number = $2""",
            *where,
            since,
            int(is_given_up),
        )
    if not disabled and now - since >= DISABLE:
        await _set_disabled(tx, *where, disabled=True)
        why = f"No delivery succeeded for {DISABLE // (24 * _HOUR)} days. The webhook is disabled: {outcome}."
        messages.append(about(sent.webhook, WEBHOOK_DISABLED, why))
    if messages:
        await add_events(tx, sent.project, messages, now)


async def _settle(tx: Transaction, sent: Claimed, due: int | None, state: str, outcome: str) -> bool:
    """Store the result of an attempt, and delete old deliveries; return false when it was settled already."""
    found = await tx.execute(
        """UPDATE webhook_deliveries SET due = $4, state = $5, outcome = $6
           WHERE project = $1 AND webhook = $2 AND number = $3 AND due IS NOT NULL""",
        sent.project,
        sent.webhook,
        sent.number,
        due,
        state,
        outcome,
    )
    if due is None:
        await tx.execute(
            """DELETE FROM webhook_deliveries WHERE project = $1 AND webhook = $2 AND state = $3 AND due IS NULL
               AND number <= (
                   SELECT number FROM webhook_deliveries
                   WHERE project = $1 AND webhook = $2 AND state = $3 AND due IS NULL
                   ORDER BY number DESC LIMIT 1 OFFSET $4
               )""",
            sent.project,
            sent.webhook,
            state,
            KEPT,
        )
    return found > 0


class WebhookStore(EngineStore):
    """Webhooks by project and number."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        #: Set when a delivery may be due.
        self.changed = asyncio.Event()

    add = TimedMethod("write", _add)
    listed = Method("read", _list)
    get = Method("read", _get)
    remove = Method("write", _remove)
    disable = Method("write", _disable)

    async def test(self, project: int, number: int) -> Delivery | None:
        """Add a test delivery, also for a disabled webhook; None when there is no such webhook."""
        delivery = await self._engine.write(_test, project, number, self._clock())
        self.changed.set()
        return delivery

    deliveries = Method("read", _deliveries)
    waiting = TimedMethod("read", _waiting)

    async def claim(self, project: int, number: int) -> Claimed | None:
        """Claim the delivery that has been due longest."""
        return await self._engine.write(_claim, project, number, self._clock())

    delivered = Method("write", _delivered)
    failed = TimedMethod("write", _failed)
