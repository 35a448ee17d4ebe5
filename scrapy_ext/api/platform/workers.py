"""Workers of a group, which run one job together, and their report (``/jobq/<project>/report``).

The hosted platform does not have these calls: it answers 404.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked, flag
from scrapy_ext.api.platform.jobs import MAX_NAME
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.permits import (
    MAX_DOMAIN,
    MOST_BUDGETS,
    MOST_DOMAINS,
    BudgetReport,
    DomainReport,
    Grant,
    Permit,
)
from scrapy_ext.api.platform.stat_kinds import Stat
from scrapy_ext.api.platform.worker_bounds import BOUNDS_REMEDY, BOUNDS_RULE, MOST_WORKERS, bounds_faults
from scrapy_ext.api.violations import ContractError, Violation

#: Seconds between two reports of a worker.
INTERVAL: Final = 2.0
#: Seconds without a report after which a worker is shown as silent, and at least which the others wait before they take
#: over its requests.
SILENCE: Final = 3 * INTERVAL
#: Stat of a worker with its highest memory.
MEMORY_STAT: Final = "memusage/max"
#: Bytes of a report: all stats, and their kinds.
MAX_REPORT: Final = 2 * 1024 * 1024
_COUNT_REMEDY: Final = "Write a whole number, 0 or more."

#: Names without NUL, which PostgreSQL does not store.
_Domain = Annotated[str, Meta(min_length=1, max_length=MAX_DOMAIN, pattern=r"^[^\0]*$")]
_Budget = Annotated[str, Meta(pattern="^[a-z_]{1,40}$")]
_Count = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Seconds = Annotated[float, Meta(ge=0, le=1e9)]


class Queue(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Requests of a worker: those that wait in its memory, and those in the downloader. ``more``: its slots may have
    more. ``idle``: seconds of the time since the report before in which it had no request to run."""

    memory: _Count = 0
    more: bool = False
    active: _Count = 0
    idle: _Seconds = 0.0

    @property
    def is_empty(self) -> bool:
        return not (self.memory or self.more or self.active)


class Counts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Numbers of one attempt since its start, or of a whole group."""

    items: _Count = 0
    responses: _Count = 0
    errors: _Count = 0

    def plus(self, other: Counts) -> Counts:
        pairs = ((self.items, other.items), (self.responses, other.responses), (self.errors, other.errors))
        return Counts(*(min(sum(pair), MAX_NUMBER) for pair in pairs))


class Silent(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A worker whose report number did not change: ``[attempt, number]``."""

    attempt: _Count
    number: _Count


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A report of a worker."""

    #: Key of the job.
    job: Annotated[
        str,
        Meta(pattern=r"^(0|[1-9][0-9]{0,18})(/(0|[1-9][0-9]{0,18})){2}$"),
        Field("must be the key of a job", 'Write "1/2/3".'),
    ]
    #: None: a worker that no node runs joins with this report.
    attempt: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_NUMBER)] | None,
        Field("must be a whole number, 1 or more", "Leave it out to join."),
    ] = None
    #: Random text of this process. A repeated join with the same one returns the same attempt.
    nonce: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-f]{32}$")] | None,
        Field("must be 32 hexadecimal digits in lower case", "Make one for each process."),
    ] = None
    #: Number of this report, from 1. One that is not above the last changes nothing.
    number: Annotated[
        int, Meta(ge=1, le=MAX_NUMBER), Field("must be a whole number, 1 or more", "Count the reports from 1.")
    ]
    #: In a join: the number of workers, or its bounds. They make the group of a job that has none.
    workers: Annotated[str | None, Field(BOUNDS_RULE, BOUNDS_REMEDY, check=bounds_faults)] = None
    #: In a join: no earlier worker is alive, and their attempts are over.
    resume: Annotated[bool, flag()] = False
    queue: Annotated[
        Queue | None,
        Field("must have memory, active (numbers), more (true or false) and idle (seconds)", _COUNT_REMEDY),
    ] = None
    #: From the worker that runs ``start()``.
    start: Annotated[
        Literal["running", "done"] | None, Field('must be "running" or "done"', "Leave it out in other workers.")
    ] = None
    counts: Annotated[Counts | None, Field("must have items, responses and errors (numbers)", _COUNT_REMEDY)] = None
    #: Since the start of this attempt.
    stats: Annotated[
        dict[str, Stat] | None,
        Field(
            "must be an object with [kind, value] by name; kinds are sum, max, min, time and last",
            'Write {"item_scraped_count": ["sum", 5]}.',
        ),
    ] = None
    #: Domains of which this worker has a permit, or wants one. One that is left out stays as it is.
    domains: Annotated[
        Annotated[dict[_Domain, DomainReport], Meta(max_length=MOST_DOMAINS)] | None,
        Field(
            "must be an object with limit, want, held, open, delay, randomize, starts and pause by domain, "
            f"{MOST_DOMAINS} at most",
            'Write {"example.com": {"limit": 8, "want": 3}}.',
        ),
    ] = None
    budgets: Annotated[
        Annotated[dict[_Budget, BudgetReport], Meta(max_length=MOST_BUDGETS)] | None,
        Field(
            f"must be an object with limit, used, held, want and former by name, {MOST_BUDGETS} at most",
            'Write {"requests": {"limit": 100, "want": 1}}.',
        ),
    ] = None
    #: The reason for which this worker closes the crawl.
    closing: Annotated[str | None, Field("must be a close reason", "Leave it out while the crawl runs.")] = None
    #: This worker alone ends.
    leaving: Annotated[bool, flag()] = False
    #: This worker has closed its journal, and waits for the others: they take over its slots.
    closed: Annotated[bool, flag()] = False
    silent: Annotated[
        Annotated[tuple[Silent, ...], Meta(max_length=MOST_WORKERS)],
        Field("must be an array of pairs of attempt and report number", "Write [[3, 17]]."),
    ] = ()
    #: The last report of this worker, with its ``outcome``: close reason of its crawl.
    last: Annotated[bool, flag()] = False
    outcome: Annotated[str | None, Field("must be a close reason", "Send it with last.")] = None
    #: With the outcome ``finished``: the number of workers that had ended unfinished before the end was found, as an
    #: answer had it. The end counts only while no other one has.
    unfinished: Annotated[
        _Count | None, Field("must be a whole number, 0 or more", "Send the number of the last answer.")
    ] = None

    @property
    def is_join(self) -> bool:
        return self.attempt is None


def report_of(given: Mapping[str, Any]) -> Report:
    """Return the report with the given fields; raises :class:`ContractError`."""
    report = checked(Report, given, "a report")
    early = [name for name in ("last", "silent", "start") if report.is_join and getattr(report, name)]
    faults = [Violation(name, "cannot be sent in a join", "Join first.") for name in early]
    if report.is_join and report.nonce is None:
        faults.append(Violation("nonce", "is required to join", "Send 32 random hexadecimal digits."))
    if not report.is_join and report.nonce is None and (report.workers or report.resume):
        faults.append(Violation("attempt", "has joined", "Leave out workers and resume, which a join has."))
    if report.last and report.outcome is None:
        faults.append(Violation("outcome", "is required with last", "Send the close reason of the crawl."))
    if faults:
        raise ContractError(faults)
    return report


def reason_text(reason: str | None) -> str:
    """Return a close reason as a job can have it; "" for none."""
    return (reason or "").replace("\0", "")[:MAX_NAME]


class LiveWorker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker of a group.

    ``number``: of its last report. ``idle``: it had no request then, and its slots had none. ``ended``: its last report
    is stored, and its process may be running. ``closed``: it crawls no more, and waits for the others.
    """

    attempt: int
    worker: int
    number: int
    idle: bool = False
    ended: bool = False
    closed: bool = False


class Closing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason for which a crawl closes, and who asked for it first: a user, or the worker of an attempt."""

    reason: str
    by: str = ""
    attempt: int | None = None


class Totals(Counts, frozen=True, omit_defaults=True):
    """Sums over all workers since the start of the crawl, and the seconds since then and since the last item."""

    seconds: float = 0.0
    item_seconds: float = 0.0


class ReportAnswer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The answer to a report. ``attempt``, ``worker`` and ``token``: after a join. ``leave``: the group shrinks by this
    worker. ``run_start``: this worker alone runs ``start()``. ``started``: its requests and items are stored.
    ``permits``, ``grants``: by domain and by budget, for a new report. ``unfinished``: the number of workers that have
    ended in this run without finding the end of the crawl, so that their requests are for others."""

    attempt: int | None = None
    worker: int | None = None
    token: str | None = None
    workers: tuple[LiveWorker, ...] = ()
    closing: Closing | None = None
    leave: bool = False
    run_start: bool = False
    started: bool = False
    unfinished: int = 0
    permits: dict[str, Permit] = {}
    grants: dict[str, Grant] = {}
    totals: Totals = Totals()


class WorkerRow(LiveWorker, frozen=True, omit_defaults=True):
    """A line of ``/jobq/<project>/workers``. ``node``: "" for a worker that no node runs; ``placed``: time (ms) when it
    was placed or has joined.

    ``reported``: time (ms) of its last report. ``busy``: share of its last seconds in which it had a request to run,
    from its second report on. ``memory``: highest memory (bytes) in its stats.
    """

    node: str = ""
    placed: int = 0
    queue: Queue = Queue()
    counts: Counts = Counts()
    leaving: bool = False
    reported: int | None = None
    busy: float | None = None
    memory: int | None = None
