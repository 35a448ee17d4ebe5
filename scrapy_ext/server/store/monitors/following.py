"""Changes that results and runs have in common: incidents, the messages about them, the activity, and the queue.

Locks are taken in this order: monitors, the job, the row of the queue, incidents, and the activity last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from scrapy_ext.api.platform.monitors import FAILED, MISSED_EVENT, Monitor, MonitorEvent
from scrapy_ext.server.store import incidents
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.incidents import Rule, Subject
from scrapy_ext.server.store.monitor_queue import Queued
from scrapy_ext.server.store.monitors import alerts
from scrapy_ext.server.store.rules.rows import MONITOR

#: Bytes of an activity message with all results; webhooks would not deliver much longer ones.
_LARGE: Final = 48 * 1024
#: Condition on a row of the queue.
ROW: Final = "project = $1 AND kind = $2 AND subject = $3 AND part = $4 AND ts = $5"


def rule_name(monitor: Monitor) -> Rule:
    """Return a monitor as incidents name it."""
    return Rule(monitor.project is None, monitor.id, monitor.label)


async def is_enabled(tx: Transaction, monitor: Monitor) -> bool:
    """Lock a monitor; return true when it is still enabled."""
    present = await MONITOR.find(tx, monitor.project, monitor.id, hold=True)
    return present is not None and present.enabled


async def report(tx: Transaction, project: int, events: Sequence[MonitorEvent], now: int) -> None:
    """Add the activity messages of an operation, last in it."""
    if events:
        await add_events(tx, project, [_encoded(event) for event in events], now)


def _encoded(event: MonitorEvent) -> bytes:
    """Return a message as JSON; one that webhooks would not deliver without the checks."""
    encoded = msgspec.json.encode(event)
    if len(encoded) <= _LARGE:
        return encoded
    short = [msgspec.structs.replace(each, checks=[]) for each in event.monitors]
    return msgspec.json.encode(msgspec.structs.replace(event, monitors=short))


async def recovered(tx: Transaction, subject: Subject, monitor: Monitor, key: str, now: int) -> list[MonitorEvent]:
    """End the incidents of a monitor that passes; return messages for the activity."""
    event = await incidents.recover(tx, subject, rule_name(monitor), key, now)
    if event is None:
        return []
    await announce(tx, subject, now)
    return [event]


async def announce(tx: Transaction, subject: Subject, now: int) -> None:
    """Have a message about a spider composed after the window of the project."""
    window, _ = await alerts.times(tx, subject.project)
    await incidents.schedule_message(tx, subject, now + window)


def missed(subject: Subject, monitor: Monitor, sentence: str, job: str | None = None) -> MonitorEvent:
    """Return the activity message about a run that did not happen."""
    message = f"{subject.spider}: {sentence}"
    return MonitorEvent(
        event=MISSED_EVENT, user=monitor.label, message=message, spider=subject.spider, outcome=FAILED, job=job
    )


async def take(tx: Transaction, row: Queued) -> bool:
    """Remove a row of the queue; return false when it is there no longer, or is about another end of the job.

    The caller has locked the job: whoever changes its state does so first, too.
    """
    return await tx.execute(f"DELETE FROM monitor_queue WHERE {ROW}", *row[:5]) > 0


async def of_project(tx: Transaction, project: int) -> list[Monitor]:
    """Return the enabled monitors of the server and of a project."""
    found = [*await MONITOR.listed(tx, None), *await MONITOR.listed(tx, project)]
    return [each for each in found if each.enabled]
