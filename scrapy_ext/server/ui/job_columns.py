"""Columns of the list of jobs: titles, values to sort by, and the choice that a browser remembers in a cookie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, JobState
from scrapy_ext.api.platform.outcomes import outcome_of
from scrapy_ext.server.store.jobs.rows import StoredJob, tags_of
from scrapy_ext.server.ui.shapes import elapsed_of, reason_of, started_of

#: Cookie with the names of the chosen columns.
COOKIE: Final = "scrapy_ext_job_columns"
#: Seconds that a browser keeps it.
KEPT: Final = 400 * 24 * 3600
_SEPARATOR: Final = "."

#: Value of a job for the order of a list, given the time (ms); None comes last in either direction.
Value = Callable[[StoredJob, int], Any]


class JobColumn(NamedTuple):
    """A column. ``counts``: the number of records that it has; ``chosen``: shown unless the user chose otherwise."""

    name: str
    title: str
    value: Value
    numeric: bool = False
    counts: str = ""
    chosen: bool = True


def _state(job: StoredJob, _: int) -> str:
    if job.state is not JobState.FINISHED:
        return str(job.state.value)
    return f"finished {outcome_of(reason_of(job)).value} {reason_of(job)}"


#: Last change of state: the order that an index has.
CHANGED: Final = "changed"

COLUMNS: Final = (
    JobColumn("job", "Job", lambda job, _: (job.key.spider, job.key.job)),
    JobColumn("spider", "Spider", lambda job, _: job.spider.casefold()),
    JobColumn("state", "State", _state),
    JobColumn("items", "Items", lambda job, _: job.counts.items, numeric=True, counts="items"),
    JobColumn("requests", "Requests", lambda job, _: job.counts.requests, numeric=True, counts="requests"),
    JobColumn("log", "Log", lambda job, _: job.counts.logs, numeric=True, counts="logs"),
    JobColumn("errors", "Errors", lambda job, _: job.counts.errors, numeric=True, counts="errors"),
    JobColumn("started", "Started", lambda job, _: started_of(job), numeric=True),
    JobColumn("took", "Took", elapsed_of, numeric=True),
    JobColumn("tags", "Tags", lambda job, _: ", ".join(tags_of(job.metadata)).casefold() or None),
    JobColumn(CHANGED, "Changed", lambda job, _: job.changed, numeric=True, chosen=False),
    JobColumn("priority", "Priority", lambda job, _: _priority(job), numeric=True, chosen=False),
    JobColumn("version", "Version", lambda job, _: _version(job), chosen=False),
)
_BY_NAME: Final = {column.name: column for column in COLUMNS}
#: The column that leads to the page of the job.
_ALWAYS: Final = "job"


def _priority(job: StoredJob) -> int:
    value = job.metadata.get("priority", DEFAULT_PRIORITY)
    return value if isinstance(value, int) else DEFAULT_PRIORITY


def _version(job: StoredJob) -> str | None:
    value = job.metadata.get("version")
    return value if isinstance(value, str) else None


def chosen_columns(cookie: str | None) -> list[JobColumn]:
    """Return the columns that a cookie names, in their order; the usual ones without it."""
    names = set((cookie or "").split(_SEPARATOR))
    found = [column for column in COLUMNS if column.name in names]
    if not found:
        return [column for column in COLUMNS if column.chosen]
    return found if found[0].name == _ALWAYS else [_BY_NAME[_ALWAYS], *found]


def cookie_of(names: Sequence[str]) -> str:
    """Return the value of the cookie for some columns; unknown names are left out."""
    return _SEPARATOR.join(column.name for column in COLUMNS if column.name in names)


class Order(NamedTuple):
    """The order of a list."""

    column: JobColumn
    descending: bool

    @property
    def is_indexed(self) -> bool:
        return self.column.name == CHANGED

    @property
    def is_usual(self) -> bool:
        return self.is_indexed and self.descending

    def text_of(self, column: JobColumn) -> str | None:
        """Return the parameter of the link in the head of a column; None: the usual order."""
        # The first click shows the largest numbers, or the first texts.
        descending = not self.descending if column == self.column else column.numeric
        text = f"-{column.name}" if descending else column.name
        return None if text == f"-{CHANGED}" else text

    def sorted(self, jobs: Sequence[StoredJob], now: int) -> list[StoredJob]:
        """Return the jobs in this order. Equal ones stay in theirs, and those without a value come last."""
        valued = [(self.column.value(job, now), job) for job in jobs]
        known = [pair for pair in valued if pair[0] is not None]
        known.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [job for _, job in known] + [job for value, job in valued if value is None]


def order_of(text: str) -> Order:
    """Return the order of a parameter: the name of a column, with ``-`` before it for the reverse."""
    column = _BY_NAME.get(text.removeprefix("-"))
    return Order(column, text.startswith("-")) if column else Order(_BY_NAME[CHANGED], descending=True)
