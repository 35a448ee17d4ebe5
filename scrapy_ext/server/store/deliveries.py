"""Deliveries of finished jobs to other storage: the jobs to deliver, deliveries under way, and those that are complete.

Invariants:

- A delivery under way has a row in ``delivery_attempts`` and a folder that no other delivery uses. Its rows in
  ``deliveries`` are added in one transaction, after its last object was written. Without these rows, the folder does
  not count, whatever it has in it.
- That transaction holds the lease of deliveries, and compares the revision of the records with the one that was read.
  So a delivery has the records of exactly that revision, and is the only one of its rule with this revision.
- A row of ``deliveries`` is in one activity message, which is written later, in one transaction with a mark on the row.
- :func:`find_archive` returns a delivery of the present revision only: what it names may be removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.deliveries import (
    DELIVERED_EVENT,
    JOB,
    MANIFEST,
    DeliveryEvent,
    DeliveryRule,
    JobDelivery,
    NewDeliveryRule,
    data_in_words,
    limits_in_words,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.rules import rule_in_words
from scrapy_ext.server.store.activity import add_events
from scrapy_ext.server.store.engine.interface import Engine, Method, Transaction
from scrapy_ext.server.store.fencing import Lease, LeaseLostError, check_lease, extend_lease
from scrapy_ext.server.store.records.progress import find_layout
from scrapy_ext.server.store.removals import RECORD_KINDS
from scrapy_ext.server.store.rules.rows import DELIVERY, delivered_by
from scrapy_ext.server.store.rules.rules import RuleStore
from scrapy_ext.server.store.rules.selection import Wanted, match_of

_DELIVERY: Final = "spider, job, kind, rule, of_server, folder, object, records, size, sha256, finished"
#: Deliveries that one activity message is about.
_REPORTED: Final = 50


class ChangedError(Exception):
    """The job or its records were changed or removed during a delivery."""


class RuleOverError(Exception):
    """The rule was disabled or removed."""


class Totals(NamedTuple):
    """Totals of a job's records of one kind: ``bytes`` as in stats; ``revision``: number of changes."""

    records: int
    bytes: int
    revision: int


class NewDelivery(NamedTuple):
    """A delivery that begins: the job's spider, end (ms) and metadata, and totals of those kinds that have records."""

    key: JobKey
    id: str
    rule: DeliveryRule
    spider: str
    changed: int
    metadata: bytes
    counts: Mapping[str, Mapping[str, int]]
    totals: Mapping[str, Totals]


class Attempt(NamedTuple):
    """A delivery under way: its job, number and folder (URL)."""

    key: JobKey
    id: str
    folder: str


class Delivered(NamedTuple):
    """Records of one kind in a delivery: object, number of records, bytes and SHA-256 of the object."""

    kind: str
    object: str
    records: int
    size: int
    sha256: str


class DoneDelivery(NamedTuple):
    """A delivery whose objects are complete: the records, and the bytes and the SHA-256 of the manifest."""

    records: Sequence[Delivered]
    size: int
    manifest: str


class DeliveredData(NamedTuple):
    """Numbers of delivered jobs and records, and bytes of the objects with the records."""

    jobs: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: DeliveredData) -> DeliveredData:
        return DeliveredData(self.jobs + other.jobs, self.records + other.records, self.bytes + other.bytes)


# ── deliveries under way ──


async def _begin(
    tx: Transaction, lease: Lease, attempt: Attempt, rule: DeliveryRule, now: int, *, duration: int
) -> NewDelivery:
    """Record a delivery that begins; raise :class:`RuleOverError`, or :class:`ChangedError` when the job does not match
    any more."""
    await check_lease(tx, lease)
    present = await DELIVERY.find(tx, rule.project, rule.id, hold=True)
    if present is None or not present.enabled:
        raise RuleOverError
    key = attempt.key
    job = await tx.fetchrow(
        """SELECT spider_name, changed, metadata FROM jobs
           WHERE project = $1 AND spider = $2 AND job = $3 AND state = 'finished' FOR UPDATE""",
        *key,
    )
    if job is None or await match_of(tx, key, delivered_by(rule, now), now) is None:
        raise ChangedError
    totals = await _totals(tx, key, rule.what)
    await tx.execute(
        """INSERT INTO delivery_attempts (project, spider, job, delivery, folder, token, expires)
           VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        *key,
        attempt.id,
        attempt.folder,
        lease.token,
        now + duration,
    )
    counts = {kind: await _counts(tx, key, kind) for kind in totals}
    return NewDelivery(key, attempt.id, rule, job[0], job[1], bytes(job[2]), counts, totals)


async def _totals(tx: Transaction, key: JobKey, kinds: Sequence[str], *, lock: bool = False) -> dict[str, Totals]:
    found = {}
    for kind in RECORD_KINDS:
        if kind not in kinds:
            continue
        row = await tx.fetchrow(
            f"""SELECT records, bytes, revision FROM record_totals
                WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND removed IS NULL AND records > 0
                {"FOR SHARE" if lock else ""}""",
            *(key.project, kind, key.spider, key.job),
        )
        if row is not None:
            found[kind] = Totals(*row)
    return found


async def _counts(tx: Transaction, key: JobKey, kind: str) -> dict[str, int]:
    rows = await tx.fetch(
        """SELECT field, occurrences FROM record_counts
           WHERE project = $1 AND kind = $2 AND spider = $3 AND job = $4 AND occurrences > 0 ORDER BY field""",
        *(key.project, kind, key.spider, key.job),
    )
    return dict(rows)


async def _renew(tx: Transaction, lease: Lease, expires: int) -> None:
    """Renew the lease of deliveries, and with it those under way; raise :class:`LeaseLostError`."""
    await extend_lease(tx, lease, expires)
    await tx.execute("UPDATE delivery_attempts SET expires = $2 WHERE token = $1", lease.token, expires)


async def check(tx: Transaction, lease: Lease, new: NewDelivery) -> None:
    """Raise :class:`LeaseLostError` or :class:`ChangedError` when a delivery may not be completed."""
    await check_lease(tx, lease)
    job = await tx.fetchrow(
        "SELECT state FROM jobs WHERE project = $1 AND spider = $2 AND job = $3 FOR SHARE", *new.key
    )
    if job is None or job[0] != "finished" or await _totals(tx, new.key, new.rule.what, lock=True) != new.totals:
        raise ChangedError


async def _finish(tx: Transaction, lease: Lease, new: NewDelivery, done: DoneDelivery, now: int) -> DeliveredData:
    """Complete a delivery; raise :class:`LeaseLostError` or :class:`ChangedError`."""
    await check(tx, lease, new)
    row = await tx.fetchrow(
        """SELECT folder FROM delivery_attempts
           WHERE project = $1 AND spider = $2 AND job = $3 AND delivery = $4 AND token = $5 FOR UPDATE""",
        *new.key,
        new.id,
        lease.token,
    )
    if row is None:
        raise LeaseLostError
    rule = (new.rule.id, int(new.rule.project is None))
    delivered = done.records or (Delivered(JOB, MANIFEST, 0, done.size, done.manifest),)
    await tx.execute_many(
        """INSERT INTO deliveries (project, spider, job, kind, delivery, rule, of_server, folder, object, revision,
                                   records, size, sha256, manifest, finished)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)""",
        [
            (
                *(*new.key, each.kind, new.id, *rule, row[0], each.object),
                new.changed if each.kind == JOB else new.totals[each.kind].revision,
                *(each.records, each.size, each.sha256, done.manifest, now),
            )
            for each in delivered
        ],
    )
    await forget_attempt(tx, new.key, new.id)
    return DeliveredData(1, sum(each.records for each in delivered), sum(each.size for each in delivered))


async def has_unreported(tx: Transaction) -> bool:
    return await tx.fetchrow("SELECT 1 FROM deliveries WHERE reported = 0 LIMIT 1") is not None


async def _report(tx: Transaction, lease: Lease, now: int) -> bool:
    """Add an activity message about some deliveries of a rule that no message has; return false without any."""
    await check_lease(tx, lease)
    first = await tx.fetchrow(
        "SELECT project, rule, of_server FROM deliveries WHERE reported = 0 ORDER BY project, rule, of_server LIMIT 1"
    )
    if first is None:
        return False
    project, number, of_server = first
    rows = await tx.fetch(
        f"""SELECT spider, job, delivery, CAST(sum(records) AS BIGINT), CAST(sum(size) AS BIGINT) FROM deliveries
            WHERE project = $1 AND rule = $2 AND of_server = $3 AND reported = 0
            GROUP BY spider, job, delivery ORDER BY spider, job, delivery LIMIT {_REPORTED}""",
        *first,
    )
    await tx.execute_many(
        "UPDATE deliveries SET reported = 1 WHERE project = $1 AND spider = $2 AND job = $3 AND delivery = $4",
        [(project, *row[:3]) for row in rows],
    )
    rule = await DELIVERY.find(tx, None if of_server else project, number)
    jobs = list(dict.fromkeys(str(JobKey(project, spider, job)) for spider, job, *_ in rows))
    event = DeliveryEvent(
        event=DELIVERED_EVENT,
        user=f"delivery rule {number}" if rule is None else rule_in_words("delivery", rule),
        message=f"Delivered {'1 job' if len(jobs) == 1 else f'{len(jobs)} jobs'}",
        what=[] if rule is None else list(rule.what),
        jobs=jobs,
        records=sum(row[3] for row in rows),
        bytes=sum(row[4] for row in rows),
    )
    event.message += f" ({event.bytes} bytes)"
    if rule is not None:
        event.message += f": {', '.join(filter(None, (data_in_words(rule), limits_in_words(rule))))}"
    await add_events(tx, project, [msgspec.json.encode(event)], now)
    return True


async def forget_attempt(tx: Transaction, key: JobKey, delivery: str) -> None:
    """Forget a delivery that was not completed, after its objects were removed."""
    await tx.execute(
        "DELETE FROM delivery_attempts WHERE project = $1 AND spider = $2 AND job = $3 AND delivery = $4",
        *key,
        delivery,
    )


async def _dead(tx: Transaction, expired: int) -> list[Attempt]:
    """Return deliveries whose process has not renewed its lease since a time (ms)."""
    rows = await tx.fetch(
        "SELECT project, spider, job, delivery, folder FROM delivery_attempts WHERE expires < $1 LIMIT 100", expired
    )
    return [Attempt(JobKey(*row[:3]), row[3], row[4]) for row in rows]


async def find_archive(tx: Transaction, key: JobKey, kind: str) -> str | None:
    """Return the folder (URL) of a complete delivery with all present records of a kind; None without one.

    The caller locks the row of the totals, so that no write can follow before it removes the records.
    """
    row = await tx.fetchrow(
        """SELECT d.folder FROM deliveries d JOIN record_totals t ON t.project = d.project AND t.kind = d.kind
               AND t.spider = d.spider AND t.job = d.job AND t.revision = d.revision AND t.records = d.records
           WHERE d.project = $1 AND d.spider = $2 AND d.job = $3 AND d.kind = $4
           ORDER BY d.finished DESC, d.delivery LIMIT 1""",
        *key,
        kind,
    )
    return None if row is None else str(row[0])


async def find_manifest(tx: Transaction, key: JobKey, folder: str) -> str | None:
    """Return the SHA-256 of the manifest in a folder; None for an unknown delivery."""
    row = await tx.fetchrow(
        "SELECT manifest FROM deliveries WHERE project = $1 AND spider = $2 AND job = $3 AND folder = $4 LIMIT 1",
        *key,
        folder,
    )
    return None if row is None else str(row[0])


async def of_job(tx: Transaction, key: JobKey) -> list[JobDelivery]:
    """Return the complete deliveries of a job, newest first."""
    rows = await tx.fetch(
        f"""SELECT {_DELIVERY} FROM deliveries WHERE project = $1 AND spider = $2 AND job = $3
            ORDER BY finished DESC, delivery, kind""",
        *key,
    )
    return [
        JobDelivery(
            job=str(JobKey(key.project, spider, job)),
            kind=kind,
            rule=rule,
            of_server=bool(of_server),
            folder=folder,
            object=name,
            records=records,
            size=size,
            sha256=sha256,
            finished=finished,
        )
        for spider, job, kind, rule, of_server, folder, name, records, size, sha256, finished in rows
    ]


class DeliveryStore(RuleStore[NewDeliveryRule, DeliveryRule]):
    """Rules of delivery, and deliveries."""

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        super().__init__(engine, clock, DELIVERY)
        #: Set when a rule is added or enabled through this process.
        self.changed = asyncio.Event()
        #: Totals that this process has delivered, and the number of times that it could not apply a rule.
        self.delivered = DeliveredData()
        self.failures = 0

    async def add(self, project: int | None, new: NewDeliveryRule) -> DeliveryRule:
        """Add a rule; raise :class:`ContractError` when there are too many."""
        added = await super().add(project, new)
        self.changed.set()
        return added

    async def enable(self, project: int | None, number: int, enabled: bool) -> DeliveryRule | None:
        """Enable a rule, or disable it; return it, or None when there is none."""
        rule = await super().enable(project, number, enabled)
        self.changed.set()
        return rule

    def wanted(self, rule: DeliveryRule) -> Wanted:
        return delivered_by(rule, self._clock())

    note = Method("write", DELIVERY.note)

    # ── deliveries ──

    async def begin(self, lease: Lease, attempt: Attempt, rule: DeliveryRule, duration: int) -> NewDelivery:
        return await self._engine.write(_begin, lease, attempt, rule, self._clock(), duration=duration)

    async def renew(self, lease: Lease, duration: int) -> None:
        await self._engine.write(_renew, lease, self._clock() + duration)

    check = Method("write", check)

    async def finish(self, lease: Lease, new: NewDelivery, done: DoneDelivery) -> None:
        delivered = await self._engine.write(_finish, lease, new, done, self._clock())
        self.delivered = self.delivered.plus(delivered)

    has_unreported = Method("read", has_unreported)

    async def report(self, lease: Lease) -> None:
        """Add activity messages about the deliveries that have none."""
        while await self._engine.write(_report, lease, self._clock()):
            pass

    forget_attempt = Method("write", forget_attempt)

    async def dead(self, grace: int) -> list[Attempt]:
        """Return some deliveries whose lease expired ``grace`` milliseconds ago or earlier."""
        return await self._engine.read(_dead, self._clock() - grace)

    layout = Method("read", find_layout)
    archive = Method("read", find_archive)
    manifest = Method("read", find_manifest)
    of_job = Method("read", of_job)
