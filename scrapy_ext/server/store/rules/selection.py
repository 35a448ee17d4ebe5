"""Selection of the jobs that match the conditions of a rule, in bounded pages and one by one.

``api.platform.rules`` defines a match. A page examines a bounded number of jobs, by the time of their end, and
continues at a position. The age of a job is that of the column ``changed``, which clients cannot set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.platform.rules import KEEP, KINDS, JobConditions
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: The state as an expression, so that the engine walks the key from its end, instead of sorting an index by state.
_STATE: Final = "(j.state || '')"
#: Jobs examined per page: some milliseconds.
PAGE: Final = 500


class Position(NamedTuple):
    """Place in the finished jobs of a project, by the time of their end."""

    changed: int
    spider: int
    job: int


START: Final = Position(-MAX_NUMBER, 0, 0)


class Left(NamedTuple):
    """SQL conditions for a rule that applies once to each job: ``records`` on totals ``t`` of records that are left for
    it, ``jobs`` on jobs ``j`` that are left for it without records."""

    records: str
    jobs: str


class Wanted(NamedTuple):
    """Jobs that a rule is about: its conditions, and the kinds of records that it uses.

    ``left``: only these match, while all jobs count. ``with_kept``: jobs with the tag ``keep`` match and count, too,
    which is for rules that remove nothing.
    """

    conditions: JobConditions
    kinds: tuple[str, ...]
    left: Left
    with_kept: bool = False

    @property
    def records(self) -> str:
        """The condition on totals ``t`` of records that make a job match."""
        return f"t.records > 0 AND {self.left.records}"


class Match(NamedTuple):
    """A job that matches; ``changed``: the time of its end (ms); records and bytes are those of the wanted kinds."""

    key: JobKey
    spider: str
    changed: int
    records: int
    bytes: int


class MatchPage(NamedTuple):
    """Matches among the examined jobs, and the position of the next page; None at the end."""

    matches: list[Match]
    after: Position | None


class _Newest(NamedTuple):
    """The last one of the newest jobs of a spider: by the time of the end, and by number."""

    changed: int
    job: int
    lowest: int

    def has(self, changed: int, job: int) -> bool:
        # Both orders count: after the clock was set back, the newest jobs have early times.
        return (changed, job) >= (self.changed, self.job) or job >= self.lowest


class _Kept(NamedTuple):
    """The last one of the newest jobs of a spider, for its jobs with records and for those without; None: the spider
    has fewer."""

    filled: _Newest | None
    empty: _Newest | None


#: The last ones of the newest jobs by spider.
NewestJobs = dict[int, _Kept]


async def match_page(
    tx: Transaction,
    project: int,
    wanted: Wanted,
    now: int,
    after: Position = START,
    *,
    any_age: bool = False,
    only_with_data: bool = False,
    limit: int = PAGE,
) -> MatchPage:
    """Return the matches among the next ``limit`` finished jobs.

    ``any_age``: also those that are not old enough. ``only_with_data``: jobs without data are passed over, however many
    they are, instead of being among those ``limit``.
    """
    conditions = wanted.conditions
    before = None if any_age else conditions.before(now)
    condition = (
        "j.state = 'finished' AND j.changed < $3 AND j.changed >= $4 AND (j.changed, j.spider, j.job) > ($4, $5, $6)"
    )
    arguments: list[Any] = [MAX_NUMBER if before is None else before, *after]
    if conditions.spider is not None:
        spider = await _spider_number(tx, project, conditions.spider)
        if spider is None:
            return MatchPage([], None)
        condition += " AND j.spider = $7"
        arguments.append(spider)
    if only_with_data:
        condition += f" AND (EXISTS {_totals('1', wanted, wanted.records)} OR {wanted.left.jobs})"
    rows = await tx.fetch(
        f"""{_selected(wanted)} WHERE j.project = $1 AND {condition}
            ORDER BY j.changed, j.spider, j.job LIMIT {limit}""",
        project,
        conditions.tag,
        *arguments,
    )
    matches = await _matches(tx, project, wanted, rows, {})
    last = rows[-1] if len(rows) == limit else None
    return MatchPage(matches, None if last is None else Position(last[2], last[0], last[1]))


async def match_of(
    tx: Transaction, key: JobKey, wanted: Wanted, now: int, newest: NewestJobs | None = None
) -> Match | None:
    """Return the job if it matches now. The caller has locked its row.

    ``newest``: an empty mapping for all jobs of one project that a transaction examines.
    """
    before = wanted.conditions.before(now)
    rows = await tx.fetch(
        f"""{_selected(wanted)} WHERE j.project = $1 AND j.spider = $3 AND j.job = $4
            AND j.state = 'finished' AND j.changed < $5""",
        key.project,
        wanted.conditions.tag,
        key.spider,
        key.job,
        MAX_NUMBER if before is None else before,
    )
    name = wanted.conditions.spider
    named = [row for row in rows if name in (None, row[3])]
    matches = await _matches(tx, key.project, wanted, named, {} if newest is None else newest)
    return matches[0] if matches else None


async def _spider_number(tx: Transaction, project: int, name: str) -> int | None:
    row = await tx.fetchrow("SELECT spider FROM spiders WHERE project = $1 AND name = $2", project, name)
    return row[0] if row else None


def _totals(column: str, wanted: Wanted, condition: str) -> str:
    """Return a query of the totals of a job's records that are not removed, with a condition on ``t``."""
    kinds = ", ".join(f"'{kind}'" for kind in KINDS if kind in wanted.kinds)
    return f"""(SELECT {column} FROM record_totals t WHERE t.project = j.project AND t.kind IN ({kinds or "''"})
                AND t.spider = j.spider AND t.job = j.job AND t.removed IS NULL AND {condition})"""


def _tagged(tag: str) -> str:
    # A number, since PostgreSQL would read all tags of the table for an EXISTS, for each page of jobs.
    return f"""((SELECT count(*) FROM job_tags t WHERE t.project = j.project AND t.spider = j.spider AND t.job = j.job
                AND t.tag = {tag}) > 0)"""


_KEPT: Final = _tagged(f"'{KEEP}'")


def _scope(wanted: Wanted, tag: str) -> str:
    """Return the condition on the tags of a job. It has the placeholder ``tag``, whose value may be NULL."""
    kept = "" if wanted.with_kept else f" AND NOT {_KEPT}"
    return f"(CAST({tag} AS TEXT) IS NULL OR {_tagged(tag)}){kept}"


def _selected(wanted: Wanted) -> str:
    """Return a query of jobs with flags, which are no conditions so that a page examines a bounded number of rows."""
    return f"""SELECT j.spider, j.job, j.changed, j.spider_name,
                   CASE WHEN {_scope(wanted, "$2")} AND NOT EXISTS (
                       SELECT 1 FROM attempts a
                       WHERE a.project = j.project AND a.spider = j.spider AND a.job = j.job
                       AND a.node <> ''
                   ) THEN 1 ELSE 0 END,
                   CASE WHEN {wanted.left.jobs} THEN 1 ELSE 0 END,
                   CAST(COALESCE({_totals("sum(t.records)", wanted, wanted.records)}, 0) AS BIGINT),
                   CAST(COALESCE({_totals("sum(COALESCE(t.stored, t.bytes))", wanted, wanted.records)}, 0) AS BIGINT)
               FROM jobs j"""


async def _matches(
    tx: Transaction, project: int, wanted: Wanted, rows: Sequence[Row], newest: NewestJobs
) -> list[Match]:
    """Return the rows that are in scope, have data, and are not among the newest of their spider."""
    matches: list[Match] = []
    for spider, job, changed, name, in_scope, matches_empty, records, size in rows:
        if not in_scope or not (records or matches_empty):
            continue
        if wanted.conditions.keep_last is not None:
            if spider not in newest:
                newest[spider] = await _kept(tx, project, spider, wanted, wanted.conditions.keep_last)
            last = newest[spider].filled if records else newest[spider].empty
            if last is None or last.has(changed, job):
                continue
        matches.append(Match(JobKey(project, spider, job), name, changed, records, size))
    return matches


async def _kept(tx: Transaction, project: int, spider: int, wanted: Wanted, count: int) -> _Kept:
    """Return the last ones of the newest ``count`` jobs.

    Jobs with records count. All of them stay where there are fewer: there, those without records stay when they are
    among the newest of all jobs.
    """
    arguments = (project, wanted.conditions.tag, spider, count - 1)
    filled = await _newest(tx, wanted, f" AND EXISTS {_totals('1', wanted, 't.records > 0')}", arguments)
    return _Kept(filled, filled or await _newest(tx, wanted, "", arguments))


async def _newest(tx: Transaction, wanted: Wanted, condition: str, arguments: tuple[Any, ...]) -> _Newest | None:
    """Return the last one of the newest jobs in scope that meet a condition; None when there are fewer.

    ``arguments``: project, tag, spider, and the number of those before it.
    """

    def counted(state: str) -> str:
        return f"""SELECT j.changed, j.job FROM jobs j WHERE j.project = $1 AND j.spider = $3 AND {state} = 'finished'
                   AND {_scope(wanted, "$2")}{condition}"""

    order = "ORDER BY j.changed DESC, j.job DESC LIMIT 1 OFFSET $4"
    by_time = await tx.fetchrow(f"{counted('j.state')} {order}", *arguments)
    by_number = await tx.fetchrow(f"{counted(_STATE)} ORDER BY j.job DESC LIMIT 1 OFFSET $4", *arguments)
    return None if by_time is None or by_number is None else _Newest(by_time[0], by_time[1], by_number[1])
