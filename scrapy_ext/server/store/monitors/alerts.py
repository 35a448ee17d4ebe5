"""Targets of alerts, and messages to them, which are rows of an outbox (:mod:`outbox`).

Rules:

- The message about a spider is composed in one transaction with the marks of its incidents, so that each change is in
  one message to each target.
- The URL of a target is a secret: nothing but :meth:`AlertStore.claim` returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from scrapy_ext.api.platform.alerts import (
    DEFAULT_REMINDER,
    DEFAULT_WINDOW,
    GIVEN_UP_EVENT,
    MAX_TARGETS,
    REMINDER_SETTING,
    TEST,
    WINDOW_SETTING,
    AlertEvent,
    AlertMessage,
    AlertTarget,
    NewTarget,
    masked,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store import verdicts
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Engine, Row, Transaction
from scrapy_ext.server.store.fencing import Lease, check_lease
from scrapy_ext.server.store.incidents import OpenIncident, Subject, announce, of_spider
from scrapy_ext.server.store.outbox import Claimed, Outbox, OutboxStore, Receivers, Tables
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.verdicts import JobVerdict

_SECOND: Final = 1000
_HOUR: Final = 3600 * _SECOND
#: Messages of a target that wait at most.
MAX_PENDING: Final = 200
_LONGEST_OUTCOME: Final = 500
#: Time (ms) to send a claimed message.
CLAIM: Final = 120_000
#: Jobs of a message whose verdicts it may have.
_JUDGED: Final = 20
#: Columns of a message after its number.
_COLUMNS: Final = ("kind", "title", "created", "state", "attempts", "due", "outcome")


class ClaimedMessage(Claimed, frozen=True):
    """A message to be sent, with the URL of its target."""

    title: str
    body: str
    url: str


def _shown(project: int, target: int, row: Row) -> AlertMessage:
    number, *rest = row
    return AlertMessage(id=number, project=project, target=target, **dict(zip(_COLUMNS, rest, strict=True)))


MESSAGES: Final = Outbox(
    Tables(
        rows="alert_messages",
        receivers="alert_targets",
        receiver="target",
        kind="kind",
        content="title, body",
        address="url",
        shown=", ".join(("number", *_COLUMNS)),
        healthy="failing_since = NULL",
    ),
    ClaimedMessage,
    _shown,
    sent="sent",
    test=TEST,
    claim=CLAIM,
)
TARGETS: Final = Receivers(
    MESSAGES,
    NewTarget,
    AlertTarget,
    noun="targets of alerts",
    most=MAX_TARGETS,
    counter="alert target",
    shown=lambda target: replace(target, url=masked(target.url)),
)


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
    #: Verdicts on the last jobs of the incidents that are new or last, by the key of the job.
    verdicts: Mapping[str, JobVerdict] = {}


#: Returns the text of a message; ``now`` is the time (ms).
Compose = Callable[[GroupNews, int], Composed]


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
        await _verdicts_of(tx, [each.job for each in lasting if each.job is not None]),
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


async def _verdicts_of(tx: Transaction, jobs: Sequence[str]) -> dict[str, JobVerdict]:
    """Return the verdicts on the jobs that are not deleted."""
    found = {}
    for job in list(dict.fromkeys(jobs))[:_JUDGED]:
        if (verdict := await verdicts.of_job(tx, JobKey.parse(job))) is not None:
            found[job] = verdict
    return found


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


def _number(value: object, default: float) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


async def _put(tx: Transaction, project: int, text: Composed, now: int) -> None:
    targets = await tx.fetch(
        "SELECT number FROM alert_targets WHERE project = $1 AND disabled = 0 ORDER BY number FOR SHARE", project
    )
    for (target,) in targets:
        if await MESSAGES.room(tx, project, target, MAX_PENDING):
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
    if await TARGETS.get(tx, project, number) is None:
        return None
    return await MESSAGES.put_first(tx, project, number, await _insert(tx, project, number, text, now))


# ── sending ──


async def _accepted(tx: Transaction, message: ClaimedMessage, outcome: str) -> None:
    """Record that a message was accepted."""
    if await MESSAGES.accepted(tx, message, outcome):
        await _note(tx, message, None, outcome)


async def _refused(tx: Transaction, now: int, message: ClaimedMessage, outcome: str) -> None:
    """Record that a message was not accepted, with an activity message when it is given up."""
    target = await tx.fetchrow(
        "SELECT name, failing_since FROM alert_targets WHERE project = $1 AND number = $2 FOR UPDATE",
        message.project,
        message.receiver,
    )
    refused = await MESSAGES.refused(tx, message, outcome, now)
    if target is None or refused is None:
        return
    name, since = target
    await _note(tx, message, now if since is None else since, outcome)
    if refused.is_given_up and not refused.is_test:
        why = f"{message.title!r} was not accepted in {message.attempts} attempts: {outcome}"
        event = AlertEvent(
            event=GIVEN_UP_EVENT, user=f"alerts to {name}", target=message.receiver, message=why[:_LONGEST_OUTCOME]
        )
        await add_events(tx, message.project, [msgspec.json.encode(event)], now)


async def _note(tx: Transaction, message: ClaimedMessage, failing_since: int | None, outcome: str) -> None:
    await tx.execute(
        "UPDATE alert_targets SET failing_since = $3, outcome = $4 WHERE project = $1 AND number = $2",
        message.project,
        message.receiver,
        failing_since,
        outcome[:_LONGEST_OUTCOME],
    )


class AlertStore(OutboxStore[ClaimedMessage, AlertMessage, AlertTarget]):
    """Targets of alerts, and messages to them."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock, MESSAGES, TARGETS, accepted=_accepted, refused=_refused)

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


async def _compose(tx: Transaction, lease: Lease, subject: Subject, text: Compose, now: int) -> bool:
    await check_lease(tx, lease)
    return await _compose_due(tx, subject, text, now)
