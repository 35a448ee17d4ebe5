"""Rows of rules, those of one purpose at a time, and the jobs that the rules of each purpose are about.

A transaction that applies a rule locks its row, so that a rule that was disabled or removed is not applied afterwards.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

from scrapy_ext.api.platform import deliveries, monitors, retention
from scrapy_ext.api.platform.rules import DAY_MS, KINDS, MAX_RULES, RESTORED_DAYS, RuleRecord
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Row, Transaction
from scrapy_ext.server.store.projects import advance
from scrapy_ext.server.store.rules.selection import Left, Wanted

#: A rule as it is added, and as it is stored.
NewT = TypeVar("NewT")
RuleT = TypeVar("RuleT", bound=RuleRecord)

#: The project of rules of the server.
_SERVER: Final = -1
_COLUMNS: Final = "project, number, definition, enabled, created, changed, failure"
_ONE: Final = "project = $1 AND purpose = $2 AND number = $3"
_LONGEST_FAILURE: Final = 500


class RuleRows(Generic[NewT, RuleT]):
    """Rows of the rules of a purpose. ``project`` None: rules of the server."""

    def __init__(self, purpose: str, rule: type[RuleT]) -> None:
        self._purpose = purpose
        self._rule = rule

    async def add(self, tx: Transaction, now: int, project: int | None, new: NewT) -> RuleT:
        """Store a rule; raise :class:`ContractError` when there are too many."""
        place = _place(project)
        # The counter also locks the number of rules.
        number = await advance(tx, place, f"{self._purpose} rule")
        if len(await self.listed(tx, project)) >= MAX_RULES:
            violation = Violation("rules", f"are {MAX_RULES} already, which is the limit", "Remove one of them.")
            raise ContractError([violation])
        definition: dict[str, Any] = msgspec.to_builtins(new)
        enabled = definition.pop("enabled")
        row = (place, number, msgspec.json.encode(definition), int(enabled), now, now, None)
        await tx.execute(
            f"INSERT INTO rules (purpose, {_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            self._purpose,
            *row,
        )
        return self._of(row)

    def unstored(self, project: int | None, new: NewT) -> RuleT:
        """Return a rule for a preview before it is added."""
        return msgspec.convert(
            {**msgspec.to_builtins(new), "id": 0, "project": project, "created": 0, "changed": 0}, self._rule
        )

    async def listed(self, tx: Transaction, project: int | None) -> list[RuleT]:
        """Return the rules of a project, or of the server, oldest first."""
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM rules WHERE project = $1 AND purpose = $2 ORDER BY number",
            _place(project),
            self._purpose,
        )
        return [self._of(row) for row in rows]

    async def enabled(self, tx: Transaction) -> list[RuleT]:
        """Return the enabled rules of the server and of all projects."""
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM rules WHERE purpose = $1 AND enabled = 1 ORDER BY project, number",
            self._purpose,
        )
        return [self._of(row) for row in rows]

    async def find(self, tx: Transaction, project: int | None, number: int, *, hold: bool = False) -> RuleT | None:
        """Return a rule; ``hold`` locks it against a change."""
        held = " FOR SHARE" if hold else ""
        row = await tx.fetchrow(
            f"SELECT {_COLUMNS} FROM rules WHERE {_ONE}{held}",
            _place(project),
            self._purpose,
            number,
        )
        return self._of(row) if row else None

    async def remove(self, tx: Transaction, project: int | None, number: int) -> bool:
        """Remove a rule; return whether there was one."""
        return await tx.execute(f"DELETE FROM rules WHERE {_ONE}", _place(project), self._purpose, number) > 0

    async def enable(self, tx: Transaction, now: int, project: int | None, number: int, enabled: bool) -> RuleT | None:
        """Enable a rule, or disable it; return it, or None when there is none."""
        await tx.execute(
            f"UPDATE rules SET enabled = $4, changed = $5, failure = NULL WHERE {_ONE}",
            _place(project),
            self._purpose,
            number,
            int(enabled),
            now,
        )
        return await self.find(tx, project, number)

    async def note(self, tx: Transaction, project: int | None, number: int, failure: str | None) -> None:
        """Store why a rule is not applied now; None when it is."""
        await tx.execute(
            f"UPDATE rules SET failure = $4 WHERE {_ONE}",
            _place(project),
            self._purpose,
            number,
            failure and failure[:_LONGEST_FAILURE],
        )

    def _of(self, row: Row | tuple[Any, ...]) -> RuleT:
        place, number, definition, enabled, created, changed, failure = row
        fields: dict[str, Any] = msgspec.json.decode(definition)
        stored = {"enabled": bool(enabled), "created": created, "changed": changed, "failure": failure}
        project = None if place == _SERVER else place
        # Retention rules have no failures.
        return msgspec.convert({**fields, **stored, "id": number, "project": project}, self._rule)


def _place(project: int | None) -> int:
    return _SERVER if project is None else project


RETENTION: Final = RuleRows[retention.NewRule, retention.Rule]("retention", retention.Rule)
DELIVERY: Final = RuleRows[deliveries.NewDeliveryRule, deliveries.DeliveryRule]("delivery", deliveries.DeliveryRule)

MONITOR: Final = RuleRows[monitors.NewMonitor, monitors.Monitor]("monitor", monitors.Monitor)

_MINUTE: Final = 60_000
# Rows of a job are counted. For an EXISTS, PostgreSQL would read the table of all jobs, for each page of jobs.
_OF_JOB: Final = "{0}.project = j.project AND {0}.spider = j.spider AND {0}.job = j.job"


def removed_by(rule: retention.Rule, now: int) -> Wanted:
    """Return the jobs whose data a retention rule removes at a time (ms).

    A job that was restored stays as it is for some days.
    """
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    stays = f"""(SELECT count(*) FROM record_totals s WHERE {_OF_JOB.format("s")} AND s.kind IN ({kinds})
                 AND s.removed IS NULL AND s.restored > {int(now) - RESTORED_DAYS * DAY_MS}) = 0"""
    delivered = f"""EXISTS (SELECT 1 FROM deliveries d WHERE {_OF_JOB.format("d")} AND d.kind = t.kind
                            AND d.revision = t.revision AND d.records = t.records)"""
    records = f"{stays} AND {delivered}" if rule.only_delivered else stays
    return Wanted(rule, rule.kinds, Left(records, stays if rule.removes_jobs else "1 = 0"))


def delivered_by(rule: deliveries.DeliveryRule, now: int) -> Wanted:
    """Return the jobs that a delivery rule delivers.

    They have records that the rule has not delivered as they are now, or they ended some time ago without records of
    its kinds, and it has not delivered them since.
    """
    kinds = ", ".join(f"'{kind}'" for kind in rule.what)
    done = f"""SELECT count(*) FROM deliveries d WHERE {_OF_JOB.format("d")}
               AND d.rule = {int(rule.id)} AND d.of_server = {int(rule.project is None)}"""
    records = f"({done} AND d.kind = t.kind AND d.revision = t.revision) = 0"
    # Whole minutes, so that few statements differ.
    before = now // _MINUTE * _MINUTE - deliveries.EMPTY_AFTER
    # A job whose records were removed is not one without records.
    jobs = f"""j.changed <= {before} AND (
                   SELECT count(*) FROM record_totals e WHERE {_OF_JOB.format("e")} AND e.kind IN ({kinds})
                   AND (e.records > 0 OR e.removed IS NOT NULL)) = 0
               AND ({done} AND d.kind = '{deliveries.JOB}' AND d.revision = j.changed) = 0"""
    return Wanted(rule, rule.what, Left(records, jobs), with_kept=True)
