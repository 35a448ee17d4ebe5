"""Messages to the targets of alerts.

Rules:

- The message about a spider is composed in one transaction with the marks of its incidents, so that each change is in
  one message to each target.
- A message is claimed by advancing its ``due`` time, so that one of several servers sends it. Without a result within
  :data:`CLAIM` it is sent again: at least once.
- The URL of a target is a secret: nothing but :meth:`AlertStore.claim` returns it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.alerts import (
    DEFAULT_REMINDER,
    DEFAULT_WINDOW,
    GIVEN_UP_EVENT,
    REMINDER_SETTING,
    TEST,
    WINDOW_SETTING,
    AlertEvent,
    AlertMessage,
)
from scrapy_ext.server.store.activity.activity import add_events
from scrapy_ext.server.store.counters import advance
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction
from scrapy_ext.server.store.engine.methods import EngineStore, Method, TimedMethod
from scrapy_ext.server.store.leases import Lease, check_lease
from scrapy_ext.server.store.monitors.incidents import OpenIncident, Subject, announce, of_spider
from scrapy_ext.server.store.monitors.targets import (
    add_target,
    disable_target,
    get_target,
    list_targets,
    remove_target,
)

_SECOND: Final = 1000
_HOUR: Final = 3600 * _SECOND
#: Time (ms) to send a claimed message.
CLAIM: Final = 120 * _SECOND
#: Wait (ms) between a failure and the next attempt: the first, which doubles, and the longest.
FIRST_WAIT: Final = 10 * _SECOND
LONGEST_WAIT: Final = _HOUR
#: Age (ms) at which a message is given up.
GIVE_UP: Final = 24 * _HOUR
#: Messages of a target that wait, and past ones that are kept.
MAX_PENDING: Final = 200
KEPT: Final = 100
_LATEST: Final = LONGEST_WAIT + CLAIM
_LONGEST_OUTCOME: Final = 500

_MESSAGE: Final = "target, number, kind, title, created, state, attempts, due, outcome"


class Composed(NamedTuple):
    """The text of a message; ``kind``: alert, reminder or recovery."""

    kind: str
    title: str
    body: str


class GroupNews(NamedTuple):
    """Incidents of a spider: those that are new, those that are over, and those that last."""

    subject: Subject
    new: list[OpenIncident]
    over: list[OpenIncident]
    lasting: list[OpenIncident]
    #: The project's name, if it has one.
    project_name: str | None = None


#: Returns the text of a message; ``now`` is the time (ms).
Compose = Callable[[GroupNews, int], Composed]


class ClaimedMessage(NamedTuple):
    project: int
    target: int
    number: int
    kind: str
    title: str
    body: str
    created: int
    attempts: int
    url: str


# ── composing ──


async def due_groups(tx: Transaction, now: int) -> list[Subject]:
    """Return project and spider of the messages that are due."""
    rows = await tx.fetch(
        "SELECT project, spider FROM alert_groups WHERE due <= $1 ORDER BY due, project, spider LIMIT 100", now
    )
    return [Subject(*row) for row in rows]


async def _compose_due(tx: Transaction, subject: Subject, text: Compose, now: int) -> bool:
    """Compose the message about a spider that is due, for each target; return whether there was anything to report."""
    row = await tx.fetchrow(
        "SELECT due FROM alert_groups WHERE project = $1 AND spider = $2 AND due <= $3 FOR UPDATE", *subject, now
    )
    if row is None:
        return False
    incidents = await of_spider(tx, subject)
    lasting = [each for each in incidents if each.over is None]
    news = GroupNews(
        subject,
        [each for each in lasting if not each.announced],
        [each for each in incidents if each.over is not None],
        [each for each in lasting if each.announced],
        await _name_of(tx, subject.project),
    )
    if incidents:
        await _put(tx, subject.project, text(news, now), now)
        await announce(tx, subject, [*news.new, *news.over])
    if lasting:
        _, reminder = await times(tx, subject.project)
        await tx.execute(
            "UPDATE alert_groups SET due = $3 WHERE project = $1 AND spider = $2", *subject, now + reminder
        )
    else:
        await tx.execute("DELETE FROM alert_groups WHERE project = $1 AND spider = $2", *subject)
    return bool(incidents)


async def _name_of(tx: Transaction, project: int) -> str | None:
    row = await tx.fetchrow("SELECT name FROM project_names WHERE project = $1", project)
    return row[0] if row else None


async def times(tx: Transaction, project: int) -> tuple[int, int]:
    """Return the window of a project's messages, and the time until its reminders, in milliseconds."""
    rows = await tx.fetch(
        "SELECT name, value FROM project_settings WHERE project = $1 AND name IN ($2, $3)",
        project,
        WINDOW_SETTING,
        REMINDER_SETTING,
    )
    found: Mapping[str, Any] = {name: msgspec.json.decode(value) for name, value in rows}
    window, reminder = found.get(WINDOW_SETTING), found.get(REMINDER_SETTING)
    return (
        round(_number(window, DEFAULT_WINDOW) * _SECOND),
        max(round(_number(reminder, DEFAULT_REMINDER) * _HOUR), _SECOND),
    )


def _number(value: Any, default: float) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


async def _put(tx: Transaction, project: int, text: Composed, now: int) -> None:
    targets = await tx.fetch(
        "SELECT number FROM alert_targets WHERE project = $1 AND disabled = 0 ORDER BY number FOR SHARE", project
    )
    for (target,) in targets:
        waiting = await tx.fetchrow(
            "SELECT count(*) FROM alert_messages WHERE project = $1 AND target = $2 AND due IS NOT NULL",
            project,
            target,
        )
        if waiting is not None and waiting[0] < MAX_PENDING:
            await _insert(tx, project, target, text, now)


async def _insert(tx: Transaction, project: int, target: int, text: Composed, now: int) -> int:
    number = await advance(tx, project, "alert message")
    await tx.execute(
        """INSERT INTO alert_messages (project, target, number, kind, title, body, created, due)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $7)""",
        *(project, target, number, *text, now),
    )
    return number


async def _test(tx: Transaction, project: int, number: int, text: Composed, now: int) -> AlertMessage | None:
    """Add a trial message, also for a disabled target; None when there is no such target."""
    if await get_target(tx, project, number) is None:
        return None
    message = await _insert(tx, project, number, text, now)
    row = await tx.fetchrow(
        f"""UPDATE alert_messages SET due = 0 WHERE project = $1 AND target = $2 AND number = $3
            RETURNING {_MESSAGE}""",  # noqa: S608 - fixed text
        project,
        number,
        message,
    )
    return _message(project, row) if row else None


# ── sending ──


async def list_messages(tx: Transaction, project: int, target: int, count: int) -> list[AlertMessage]:
    """Return past and pending messages to a target, newest first."""
    rows = await tx.fetch(
        f"""SELECT {_MESSAGE} FROM alert_messages WHERE project = $1 AND target = $2
            ORDER BY number DESC LIMIT $3""",  # noqa: S608 - fixed text
        project,
        target,
        count,
    )
    return [_message(project, row) for row in rows]


def _message(project: int, row: Row) -> AlertMessage:
    target, number, kind, title, created, state, attempts, due, outcome = row
    return AlertMessage(
        id=number,
        project=project,
        target=target,
        kind=kind,
        title=title,
        created=created,
        state=state,
        attempts=attempts,
        due=due,
        outcome=outcome,
    )


async def _waiting(tx: Transaction, now: int) -> list[tuple[int, int]]:
    """Return project and number of the targets with due messages."""
    rows = await tx.fetch(
        """SELECT project, target FROM alert_messages WHERE due <= $1 OR due > $2
           GROUP BY project, target ORDER BY min(due), project, target""",
        now,
        now + _LATEST,
    )
    return [(project, target) for project, target in rows]


async def _claim(tx: Transaction, project: int, target: int, now: int) -> ClaimedMessage | None:
    """Claim the message that has been due longest."""
    row = await tx.fetchrow(
        """UPDATE alert_messages SET due = $4, attempts = attempts + 1
           WHERE project = $1 AND target = $2 AND number = (
               SELECT number FROM alert_messages WHERE project = $1 AND target = $2 AND (due <= $3 OR due > $5)
               ORDER BY due, number LIMIT 1 FOR UPDATE SKIP LOCKED
           ) RETURNING number, kind, title, body, created, attempts""",
        project,
        target,
        now,
        now + CLAIM,
        now + _LATEST,
    )
    where = await tx.fetchrow("SELECT url FROM alert_targets WHERE project = $1 AND number = $2", project, target)
    return ClaimedMessage(project, target, *row, *where) if row and where else None


async def _sent(tx: Transaction, message: ClaimedMessage, outcome: str) -> None:
    """Record that a message was accepted."""
    if await _settle(tx, message, None, "sent", outcome):
        await _note(tx, message, None, outcome)


async def _failed(tx: Transaction, now: int, message: ClaimedMessage, outcome: str) -> None:
    """Record that a message was not accepted: it is sent again later, or given up."""
    target = await tx.fetchrow(
        "SELECT name, failing_since FROM alert_targets WHERE project = $1 AND number = $2 FOR UPDATE",
        message.project,
        message.target,
    )
    if target is None:
        return
    wait = min(FIRST_WAIT * 2 ** min(message.attempts - 1, 30), LONGEST_WAIT)
    # A test is not repeated, since a user waits for its result.
    is_given_up = message.kind == TEST or now + wait - message.created > GIVE_UP
    if not await _settle(
        tx, message, None if is_given_up else now + wait, "given up" if is_given_up else "pending", outcome
    ):
        return
    name, since = target
    await _note(tx, message, now if since is None else since, outcome)
    if is_given_up and message.kind != TEST:
        why = f"{message.title!r} was not accepted in {message.attempts} attempts: {outcome}"
        event = AlertEvent(
            event=GIVEN_UP_EVENT, user=f"alerts to {name}", target=message.target, message=why[:_LONGEST_OUTCOME]
        )
        await add_events(tx, message.project, [msgspec.json.encode(event)], now)


async def _note(tx: Transaction, message: ClaimedMessage, failing_since: int | None, outcome: str) -> None:
    await tx.execute(
        "UPDATE alert_targets SET failing_since = $3, outcome = $4 WHERE project = $1 AND number = $2",
        message.project,
        message.target,
        failing_since,
        outcome[:_LONGEST_OUTCOME],
    )


async def _settle(tx: Transaction, message: ClaimedMessage, due: int | None, state: str, outcome: str) -> bool:
    """Store the result of an attempt, and delete old messages; return false when it was settled already."""
    where: Sequence[Any] = (message.project, message.target)
    found = await tx.execute(
        """UPDATE alert_messages SET due = $4, state = $5, outcome = $6
           WHERE project = $1 AND target = $2 AND number = $3 AND due IS NOT NULL""",
        *where,
        message.number,
        due,
        state,
        outcome[:_LONGEST_OUTCOME],
    )
    if due is None:
        await tx.execute(
            """DELETE FROM alert_messages WHERE project = $1 AND target = $2 AND state = $3 AND due IS NULL
               AND number <= (
                   SELECT number FROM alert_messages
                   WHERE project = $1 AND target = $2 AND state = $3 AND due IS NULL
                   ORDER BY number DESC LIMIT 1 OFFSET $4
               )""",
            *where,
            state,
            KEPT,
        )
    return found > 0


class AlertStore(EngineStore):
    """Targets of alerts, and messages to them."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock)
        #: Set when a message may be due.
        self.changed = asyncio.Event()
        #: Messages that this process has sent, and attempts that failed.
        self.sent_count = 0
        self.failures = 0

    add = TimedMethod("write", add_target)
    listed = Method("read", list_targets)
    get = Method("read", get_target)
    disable = Method("write", disable_target)
    remove = Method("write", remove_target)
    messages = Method("read", list_messages)
    waiting = TimedMethod("read", _waiting)

    async def compose(self, lease: Lease, subject: Subject, text: Compose) -> bool:
        """Compose the message about a spider that is due; return whether there was anything to report."""
        composed = await self._engine.write(_compose, lease, subject, text, self._clock())
        self.changed.set()
        return composed

    async def test(self, project: int, number: int, text: Composed) -> AlertMessage | None:
        """Add a trial message; None when there is no such target."""
        message = await self._engine.write(_test, project, number, text, self._clock())
        self.changed.set()
        return message

    async def claim(self, project: int, target: int) -> ClaimedMessage | None:
        return await self._engine.write(_claim, project, target, self._clock())

    async def delivered(self, message: ClaimedMessage, outcome: str) -> None:
        await self._engine.write(_sent, message, outcome)
        self.sent_count += 1

    async def failed(self, message: ClaimedMessage, outcome: str) -> None:
        await self._engine.write(_failed, self._clock(), message, outcome)
        self.failures += 1


async def _compose(tx: Transaction, lease: Lease, subject: Subject, text: Compose, now: int) -> bool:
    await check_lease(tx, lease)
    return await _compose_due(tx, subject, text, now)
