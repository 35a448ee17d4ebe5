"""Permits and grants of groups as stored: each report takes its worker's part of domains and budgets.

The rules are those of :mod:`scrapy_ext.api.platform.permits`. The lock of the group's row makes the reports of a group
follow each other, so that each one decides on the rows of all others.

A row that is over counts as none. Those of domains that nobody reports any more are removed with the reports that have
stats, a limited number with each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.permits import (
    MOST_DOMAINS,
    MOST_STARTS,
    BudgetReport,
    BudgetShare,
    Decision,
    Domain,
    DomainReport,
    Grant,
    Permit,
    Share,
    decide,
    granted,
)
from scrapy_ext.api.platform.workers import Report
from scrapy_ext.server.store.engine.interface import Transaction

_OF_JOB: Final = "project = $1 AND spider = $2 AND job = $3"
_DOMAIN, _BUDGET = "domain:", "budget:"
#: Attempt of what was used before the job had a group.
_BEFORE: Final = 0
#: Names in a query: few sizes, so that few statements are prepared.
_SIZES: Final = (8, 32, 128)
#: Rows of each table that one report removes. Of a worker with :data:`MOST_DOMAINS` new domains in each of the five
#: reports between two with stats, at most as many are over.
_MOST_REMOVED: Final = 5 * MOST_DOMAINS


class Given(NamedTuple):
    """Permits by domain and grants by budget for a report."""

    permits: Mapping[str, Permit]
    grants: Mapping[str, Grant]


class _Row(NamedTuple):
    name: str
    attempt: int
    amount: int
    used: int
    most: int
    want: int
    delay: int
    expires: int | None

    @property
    def share(self) -> Share:
        return Share(self.attempt, self.most, self.want, self.amount, self.delay, self.expires or 0)


async def take_shares(tx: Transaction, key: JobKey, attempt: int, report: Report, live: Set[int]) -> Given:
    """Store the part of a new report, under the lock of the group. ``live``: attempts that have not ended."""
    if report.last:
        await tx.execute(
            f"DELETE FROM group_shares WHERE {_OF_JOB} AND attempt = $4 AND expires IS NOT NULL", *key, attempt
        )
    if report.stats is not None:
        await _remove_over(tx, key)
    domains = {} if report.last else report.domains or {}
    budgets = report.budgets or {}
    if not (domains or budgets):
        return Given({}, {})
    rows = await _rows(tx, key, [*map(_DOMAIN.__add__, domains), *map(_BUDGET.__add__, budgets)])
    taking = _Taking(tx, key, attempt, rows)
    permits = await _take_permits(taking, domains) if domains else {}
    grants = await _take_grants(taking, budgets, live) if budgets else {}
    return Given(permits, grants)


class _Taking(NamedTuple):
    """A report in its transaction, and the rows of all workers by name."""

    tx: Transaction
    key: JobKey
    attempt: int
    rows: Mapping[str, Sequence[_Row]]

    def others(self, name: str) -> list[_Row]:
        return [row for row in self.rows[name] if row.attempt != self.attempt]


async def _take_permits(taking: _Taking, reports: Mapping[str, DomainReport]) -> dict[str, Permit]:
    tx, key, attempt, _ = taking
    stored = await _domains(tx, key, reports)
    now = await tx.time()
    decisions: dict[str, Decision] = {}
    left = MOST_STARTS
    for name, report in reports.items():
        others = [row.share for row in taking.others(_DOMAIN + name)]
        given = decide(attempt, report, others, stored.get(name, Domain()), now, most_starts=left)
        decisions[name] = given
        left -= len(given.permit.starts)
    await _store_shares(tx, key, [_row(name, each.share) for name, each in decisions.items() if each.share is not None])
    over = [(name, attempt) for name, each in decisions.items() if each.share is None]
    expired = [
        (name, row.attempt) for name in reports for row in taking.others(_DOMAIN + name) if (row.expires or 0) <= now
    ]
    await _remove_shares(tx, key, [*over, *expired])
    await _store_domains(tx, key, decisions, stored, now)
    return {name: each.permit for name, each in decisions.items()}


def _row(name: str, share: Share) -> _Row:
    attempt, most, want, amount, delay, expires = share
    return _Row(_DOMAIN + name, attempt, amount, 0, most, want, delay, expires)


async def _take_grants(taking: _Taking, reports: Mapping[str, BudgetReport], live: Set[int]) -> dict[str, Grant]:
    tx, key, attempt, rows = taking
    others: dict[str, list[BudgetShare]] = {}
    changed: list[_Row] = []
    for budget, report in reports.items():
        name = _BUDGET + budget
        found = taking.others(name)
        if not rows[name]:
            found.append(_Row(name, _BEFORE, report.former, report.former, 0, 0, 0, None))
            changed += found
        others[budget] = [BudgetShare(row.amount, row.used, row.attempt not in live) for row in found]
    grants = granted(reports, others, len(live))
    for budget, grant in grants.items():
        changed.append(_Row(_BUDGET + budget, attempt, grant.amount, reports[budget].used, 0, 0, 0, None))
    await _store_shares(tx, key, changed)
    return grants


async def allowed(tx: Transaction, key: JobKey) -> int | None:
    """Return the number of requests at once that the limits of the sites allow, as far as requests wait for them; None
    if no site has a limit. One with a delay allows none: another worker would not change its rate."""
    rows = await tx.fetch(
        f"""SELECT CAST(sum(want) AS BIGINT), min(most), max(delay) FROM group_shares
            WHERE {_OF_JOB} AND expires > $4 GROUP BY name""",
        *key,
        await tx.time(),
    )
    return sum(min(want, most) for want, most, delay in rows if not delay) if rows else None


# ── rows ──


async def _rows(tx: Transaction, key: JobKey, names: Sequence[str]) -> Mapping[str, Sequence[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for part in _parts(names):
        for row in await tx.fetch(
            f"""SELECT name, attempt, amount, used, most, want, delay, expires FROM group_shares
                WHERE {_OF_JOB} AND name IN ({marks(part)})""",
            *key,
            *part,
        ):
            found[row[0]].append(_Row(*row))
    return found


async def _domains(tx: Transaction, key: JobKey, names: Iterable[str]) -> dict[str, Domain]:
    found: dict[str, Domain] = {}
    for part in _parts(list(names)):
        for name, *times in await tx.fetch(
            f"""SELECT domain, next_start, paused_until FROM group_domains
                WHERE {_OF_JOB} AND domain IN ({marks(part)})""",
            *key,
            *part,
        ):
            found[name] = Domain(*times)
    return found


def _parts(names: Sequence[str]) -> list[list[str]]:
    """Divide names for queries of few sizes; the last name fills the rest."""
    parts = [list(names[first : first + _SIZES[-1]]) for first in range(0, len(names), _SIZES[-1])]
    return [part + part[-1:] * (next(size for size in _SIZES if size >= len(part)) - len(part)) for part in parts]


def marks(names: Sequence[str]) -> str:
    """Return the placeholders of names, after those of a job."""
    return ", ".join(f"${place}" for place in range(4, 4 + len(names)))


async def _store_shares(tx: Transaction, key: JobKey, rows: Sequence[_Row]) -> None:
    await tx.execute_many(
        """INSERT INTO group_shares (project, spider, job, name, attempt, amount, used, most, want, delay, expires)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
           ON CONFLICT (project, spider, job, name, attempt) DO UPDATE SET amount = excluded.amount,
               used = excluded.used, most = excluded.most, want = excluded.want, delay = excluded.delay,
               expires = excluded.expires""",
        [(*key, *row) for row in rows],
    )


async def _remove_shares(tx: Transaction, key: JobKey, shares: Sequence[tuple[str, int]]) -> None:
    await tx.execute_many(
        f"DELETE FROM group_shares WHERE {_OF_JOB} AND name = $4 AND attempt = $5",
        [(*key, _DOMAIN + name, attempt) for name, attempt in shares],
    )


async def _remove_over(tx: Transaction, key: JobKey) -> None:
    """Remove permits that have expired, and domains whose times are over."""
    now = await tx.time()
    await tx.execute(
        f"""DELETE FROM group_shares WHERE {_OF_JOB} AND (name, attempt) IN (
                SELECT name, attempt FROM group_shares WHERE {_OF_JOB} AND expires <= $4 LIMIT {_MOST_REMOVED})""",
        *key,
        now,
    )
    await tx.execute(
        f"""DELETE FROM group_domains WHERE {_OF_JOB} AND domain IN (
                SELECT domain FROM group_domains
                WHERE {_OF_JOB} AND next_start <= $4 AND paused_until <= $4 LIMIT {_MOST_REMOVED})""",
        *key,
        now,
    )


async def _store_domains(
    tx: Transaction, key: JobKey, decisions: Mapping[str, Decision], stored: Mapping[str, Domain], now: int
) -> None:
    """Store the times of domains with a delay or a pause. They go when nobody needs them."""
    needed = {name: each.domain for name, each in decisions.items() if each.permit.delay or each.permit.pause}
    await tx.execute_many(
        """INSERT INTO group_domains (project, spider, job, domain, next_start, paused_until)
           VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project, spider, job, domain)
           DO UPDATE SET next_start = excluded.next_start, paused_until = excluded.paused_until""",
        [(*key, name, *domain) for name, domain in needed.items() if domain != stored.get(name)],
    )
    over = [name for name, each in decisions.items() if name in stored and max(each.domain) <= now]
    await tx.execute_many(f"DELETE FROM group_domains WHERE {_OF_JOB} AND domain = $4", [(*key, name) for name in over])
