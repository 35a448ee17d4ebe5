"""Incidents: monitors that fail for a spider, and the messages about them.

An incident belongs to a monitor, a spider and its arguments. It begins with the first failure, and is over with the
next run with the same arguments that passes. A monitor *fails for a spider* while one of its incidents lasts. Only when
that begins or ends is a message due: after the window of the project, so that many failures make one message. Another
one follows each time that the reminder is due, until the last incident of the spider is over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.monitors import RECOVERED_EVENT, Incident, MonitorEvent
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Incidents of a monitor and a spider that are followed by arguments; further arguments are one incident.
MAX_ARGUMENTS: Final = 100
_OTHERS: Final = "others"
#: Milliseconds after which an incident without another run is followed no longer.
FORGOTTEN: Final = 14 * 24 * 3600 * 1000
MAX_LISTED: Final = 500
_LONGEST: Final = 1000
_INCIDENT: Final = "of_server, rule, arguments, name, since, last, jobs, job, sentence, over, announced"


class Subject(NamedTuple):
    """Project and spider (or script) of incidents, and of the messages about them."""

    project: int
    spider: str


class Rule(NamedTuple):
    """The monitor of an incident."""

    of_server: bool
    id: int
    name: str


class Failure(NamedTuple):
    """A failure of a monitor. ``key``: the arguments, as :func:`arguments_key` returns them."""

    rule: Rule
    key: str
    job: str | None
    sentence: str
    #: Time (ms) from which on it counts: of a missing run, when it was due.
    since: int


class OpenIncident(NamedTuple):
    """A row of an incident."""

    rule: Rule
    key: str
    since: int
    last: int
    jobs: int
    job: str | None
    sentence: str
    over: int | None
    announced: bool


def arguments_key(args: Mapping[str, Any], command: str = "") -> str:
    """Return a short text for the arguments of a job, of its spider or its script; empty without any."""
    given = (args, command) if command else args
    return hashlib.sha256(msgspec.json.encode(given, order="sorted")).hexdigest()[:16] if given else ""


async def fail(tx: Transaction, subject: Subject, failure: Failure, now: int) -> bool:
    """Record a failure; return true when a message about it is due."""
    of_rule = [each for each in await of_spider(tx, subject) if _is_same(each.rule, failure.rule)]
    lasting = [each for each in of_rule if each.over is None]
    over = [each for each in of_rule if each.over is not None]
    keys = {each.key: each for each in lasting}
    key = failure.key if failure.key in keys or len(lasting) < MAX_ARGUMENTS else _OTHERS
    # A recovery that no message has reported yet did not happen for whoever reads the messages.
    before = keys.get(key) or (over[0] if over else None)
    for each in over:
        await _remove(tx, subject, each)
    announced = before.announced if before else bool(lasting) and all(each.announced for each in lasting)
    await tx.execute(
        """INSERT INTO monitor_incidents
               (project, spider, of_server, rule, arguments, name, since, last, jobs, job, sentence, announced)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
           ON CONFLICT (project, spider, of_server, rule, arguments) DO UPDATE
           SET name = excluded.name, since = excluded.since, last = excluded.last, jobs = excluded.jobs,
               job = excluded.job, sentence = excluded.sentence, over = NULL, announced = excluded.announced""",
        *(*subject, int(failure.rule.of_server), failure.rule.id, key, failure.rule.name),
        before.since if before else failure.since,
        now,
        before.jobs + 1 if before else 1,
        failure.job,
        failure.sentence[:_LONGEST],
        int(announced),
    )
    return not announced


async def recover(tx: Transaction, subject: Subject, rule: Rule, key: str, now: int) -> MonitorEvent | None:
    """Record that a monitor passes; return the activity message when it fails for the spider no longer."""
    lasting = [each for each in await of_spider(tx, subject) if each.over is None and _is_same(each.rule, rule)]
    ended = [each for each in lasting if each.key in (key, _OTHERS)]
    if not ended:
        return None
    rest = [each for each in lasting if each not in ended]
    since = min(each.since for each in lasting)
    for each in ended[1:] if not rest else ended:
        await _remove(tx, subject, each)
    if rest:
        await _since(tx, subject, rest[0], since)
        return None
    await tx.execute(
        """UPDATE monitor_incidents SET over = $6, since = $7
           WHERE project = $1 AND spider = $2 AND of_server = $3 AND rule = $4 AND arguments = $5""",
        *(*subject, int(rule.of_server), rule.id, ended[0].key),
        now,
        since,
    )
    return MonitorEvent(
        event=RECOVERED_EVENT,
        user=rule.name,
        message=f"{rule.name} of {subject.spider} passes again",
        spider=subject.spider,
        since=since,
    )


async def of_spider(tx: Transaction, subject: Subject) -> list[OpenIncident]:
    """Return the incidents of a spider, those that no message has announced as over included; oldest first."""
    rows = await tx.fetch(
        f"""SELECT {_INCIDENT} FROM monitor_incidents WHERE project = $1 AND spider = $2
            ORDER BY since, of_server, rule, arguments""",
        *subject,
    )
    return [_open(row) for row in rows]


async def listed(tx: Transaction, project: int) -> list[Incident]:
    """Return the lasting incidents of a project, oldest first."""
    rows = await tx.fetch(
        f"""SELECT rule, of_server, name, spider, since, last, jobs, job, sentence FROM monitor_incidents
            WHERE project = $1 AND over IS NULL ORDER BY since, spider, of_server, rule LIMIT {MAX_LISTED}""",
        project,
    )
    return [
        Incident(
            monitor=rule,
            of_server=bool(of_server),
            name=name,
            spider=spider,
            since=since,
            last=last,
            jobs=jobs,
            job=job,
            sentence=sentence,
        )
        for rule, of_server, name, spider, since, last, jobs, job, sentence in rows
    ]


async def announce(tx: Transaction, subject: Subject, some: Iterable[OpenIncident]) -> None:
    """Record that a message has these incidents; those that are over are removed."""
    for each in some:
        if each.over is not None:
            await _remove(tx, subject, each)
        else:
            await tx.execute(
                """UPDATE monitor_incidents SET announced = 1 WHERE project = $1 AND spider = $2 AND of_server = $3
                   AND rule = $4 AND arguments = $5""",
                *_place(subject, each),
            )


async def drop_rule(tx: Transaction, project: int | None, rule: int) -> list[Subject]:
    """Remove the incidents of a monitor that was disabled or removed; return the spiders that had some."""
    where, arguments = (
        ("of_server = 1", [rule]) if project is None else ("of_server = 0 AND project = $2", [rule, project])
    )
    rows = await tx.fetch(
        f"DELETE FROM monitor_incidents WHERE rule = $1 AND {where} RETURNING project, spider", *arguments
    )
    if project is not None:
        await tx.execute("DELETE FROM monitor_expected WHERE project = $1 AND rule = $2", project, rule)
    return [Subject(*row) for row in rows]


async def schedule_message(tx: Transaction, subject: Subject, due: int) -> None:
    """Have a message about a spider composed at a time (ms), or earlier if that is planned."""
    await tx.execute(
        """INSERT INTO alert_groups (project, spider, due) VALUES ($1, $2, $3)
           ON CONFLICT (project, spider) DO UPDATE
           SET due = CASE WHEN excluded.due < alert_groups.due THEN excluded.due ELSE alert_groups.due END""",
        *subject,
        due,
    )


def _is_same(one: Rule, other: Rule) -> bool:
    return (one.of_server, one.id) == (other.of_server, other.id)


def _open(row: Row) -> OpenIncident:
    of_server, rule, arguments, name, since, last, jobs, job, sentence, over, announced = row
    named = Rule(bool(of_server), rule, name)
    return OpenIncident(named, arguments, since, last, jobs, job, sentence, over, bool(announced))


def _place(subject: Subject, each: OpenIncident) -> Sequence[Any]:
    return (*subject, int(each.rule.of_server), each.rule.id, each.key)


async def _remove(tx: Transaction, subject: Subject, each: OpenIncident) -> None:
    await tx.execute(
        """DELETE FROM monitor_incidents WHERE project = $1 AND spider = $2 AND of_server = $3 AND rule = $4
           AND arguments = $5""",
        *_place(subject, each),
    )


async def _since(tx: Transaction, subject: Subject, each: OpenIncident, since: int) -> None:
    await tx.execute(
        """UPDATE monitor_incidents SET since = $6 WHERE project = $1 AND spider = $2 AND of_server = $3 AND rule = $4
           AND arguments = $5""",
        *_place(subject, each),
        since,
    )
