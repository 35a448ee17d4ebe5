"""Columns of the list of jobs: titles, values to sort by, and the choice that a browser remembers in a cookie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.jobs import DEFAULT_PRIORITY, JobState, outcome_of
from scrapy_ext.server.store.jobs.rows import StoredJob, reason_of, tags_of
from scrapy_ext.server.ui.job_summary import arguments_in_a_line, elapsed_of, queued_for, started_of, text_of

#: Cookie with the names of the chosen columns.
COOKIE: Final = "scrapy_ext_job_columns"
#: Seconds that a browser keeps it.
KEPT: Final = 400 * 24 * 3600
_SEPARATOR: Final = "."

#: Value of a job for the order of a list, given the time (ms); None comes last in either direction.
Value = Callable[[StoredJob, int], Any]


class JobColumn(NamedTuple):
    """A column. ``counts``: the number of records that it has; ``chosen``: shown unless the user chose otherwise.

    Without ``value`` the list is not sorted by it.
    """

    name: str
    title: str
    value: Value | None
    numeric: bool = False
    counts: str = ""
    chosen: bool = True


def _state(job: StoredJob, _: int) -> str:
    if job.state is not JobState.FINISHED:
        return str(job.state.value)
    return f"finished {outcome_of(reason_of(job)).value} {reason_of(job)}"


#: Monitors that failed of all that checked the job.
MONITORS: Final = "monitors"
#: Last change of state: the order that an index has.
CHANGED: Final = "changed"

COLUMNS: Final = (
    JobColumn("job", "Job", lambda job, _: (job.key.spider, job.key.job)),
    JobColumn("spider", "Spider", lambda job, _: job.spider.casefold()),
    JobColumn("state", "State", _state),
    JobColumn("items", "Items", lambda job, _: job.counts.items, numeric=True, counts="items"),
    JobColumn("requests", "Requests", lambda job, _: job.counts.requests, numeric=True, counts="requests"),
    JobColumn("log", "Log", lambda job, _: job.counts.logs, numeric=True, counts="logs"),
    JobColumn(
        "warnings", "Warnings", lambda job, _: job.counts.warnings, numeric=True, counts="warnings", chosen=False
    ),
    JobColumn("errors", "Errors", lambda job, _: job.counts.errors, numeric=True, counts="errors"),
    JobColumn(MONITORS, "Failed monitors", None, chosen=False),
    JobColumn("queued", "Queued", queued_for, numeric=True, chosen=False),
    JobColumn("started", "Started", lambda job, _: started_of(job), numeric=True),
    JobColumn("took", "Took", elapsed_of, numeric=True),
    JobColumn("arguments", "Arguments", lambda job, _: arguments_in_a_line(job).casefold() or None),
    JobColumn("tags", "Tags", lambda job, _: ", ".join(tags_of(job.metadata)).casefold() or None),
    JobColumn(CHANGED, "Changed", lambda job, _: job.changed, numeric=True, chosen=False),
    JobColumn("priority", "Priority", lambda job, _: _priority(job), numeric=True, chosen=False),
    JobColumn("version", "Version", lambda job, _: text_of(job, "version") or None, chosen=False),
    JobColumn("node", "Node", lambda job, _: text_of(job, "node") or None, chosen=False),
)
_BY_NAME: Final = {column.name: column for column in COLUMNS}
#: The column that leads to the page of the job.
_ALWAYS: Final = "job"


def _priority(job: StoredJob) -> int:
    value = job.metadata.get("priority", DEFAULT_PRIORITY)
    return value if isinstance(value, int) else DEFAULT_PRIORITY


def chosen_columns(text: str | None) -> list[JobColumn]:
    """Return the columns that a text of :func:`text_of_columns` names, in their order; the usual ones without it."""
    names = set((text or "").split(_SEPARATOR))
    found = [column for column in COLUMNS if column.name in names]
    if not found:
        return [column for column in COLUMNS if column.chosen]
    return found if found[0].name == _ALWAYS else [_BY_NAME[_ALWAYS], *found]


def text_of_columns(names: Sequence[str]) -> str:
    """Return the text for some columns, in the cookie and in addresses; unknown names are left out."""
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
        value_of = self.column.value
        if value_of is None:
            return list(jobs)
        valued = [(value_of(job, now), job) for job in jobs]
        known = [pair for pair in valued if pair[0] is not None]
        known.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [job for _, job in known] + [job for value, job in valued if value is None]


def order_of(text: str) -> Order:
    """Return the order of a parameter: the name of a column, with ``-`` before it for the reverse."""
    column = _BY_NAME.get(text.removeprefix("-"))
    return Order(column, text.startswith("-")) if column and column.value else Order(_BY_NAME[CHANGED], descending=True)
