"""Import of projects from another platform: the calls under ``/imports``. The hosted platform does not have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.violations import refused

#: Kinds of records of jobs, in the order in which they are copied.
RECORD_KINDS: Final = ("items", "requests", "logs", "samples")
COMMENTS: Final = "comments"
#: Member of a job's metadata that describes its import: an :class:`Origin`.
IMPORTED: Final = "imported"
#: Event of a job that was imported completely.
JOB_IMPORTED: Final = "job:imported"
#: Job numbers that remain free after an imported one, for the source.
RESERVED: Final = 1000
MAX_RESERVED: Final = 10**9
#: Spiders of one call.
MAX_SPIDERS: Final = 1000
#: Records of a collection in one call.
MAX_RECORDS: Final = 5000
#: Header with the times of the records of a body, and the maximum of its entries.
TIMES_HEADER: Final = "Record-Times"
MAX_TIMES: Final = 1000

_RUN: Final = re.compile(r"([1-9][0-9]{0,8}):([0-9]{1,18})", re.ASCII)


class Origin(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Origin of an imported job.

    ``source`` is its host and its key there; ``copied`` the kinds of its records that are complete, ``missing`` the
    reasons for those that are not; ``time`` (ms) and ``by`` the end of the import and its API key, None before.
    """

    source: str
    copied: list[str] = []
    missing: dict[str, str] = {}
    time: int | None = None
    by: str | None = None


class ImportedSpider(msgspec.Struct, omit_defaults=True):
    """A spider to import. ``number`` is that in the source, None if unknown; in an answer, that in the target."""

    name: str
    number: int | None = None
    tags: list[str] = []


class BegunImport(msgspec.Struct):
    """A job that is being imported, or was: its state, kinds that are complete, and first and next index by kind."""

    key: str
    state: str
    copied: list[str]
    indexes: dict[str, tuple[int, int]]


class ImportedComment(msgspec.Struct):
    """A comment on an item or a field of it; ``created`` in milliseconds."""

    item: int
    field: str
    text: str
    author: str
    created: int


class FinishedImport(msgspec.Struct):
    """The end of a job's import: its metadata in the source, its comments, the kinds that were copied, and the reasons
    for those that were not."""

    source: str
    metadata: dict[str, Any]
    copied: list[str]
    comments: list[ImportedComment] = []
    missing: dict[str, str] = {}


class ImportEvent(msgspec.Struct):
    """The activity message about a job that was imported completely; ``source`` is its host and its key there."""

    event: str
    job: str
    user: str
    source: str


class TimeRun(NamedTuple):
    """Consecutive records that were stored at the same time (ms)."""

    records: int
    ts: int


def runs_of(times: Sequence[int]) -> list[TimeRun]:
    """Return the runs of equal times."""
    runs: list[TimeRun] = []
    for ts in times:
        if runs and runs[-1].ts == ts:
            runs[-1] = TimeRun(runs[-1].records + 1, ts)
        else:
            runs.append(TimeRun(1, ts))
    return runs


def times_header(runs: Sequence[TimeRun]) -> str:
    """Return the value of :data:`TIMES_HEADER`: ``<records>:<ms>`` for each run, joined by commas."""
    return ",".join(f"{run.records}:{run.ts}" for run in runs)


def parse_times(text: str) -> list[TimeRun]:
    """Parse :data:`TIMES_HEADER`; raises :class:`ContractError`."""
    found = [_RUN.fullmatch(part.strip()) for part in text.split(",", MAX_TIMES)]
    runs = [TimeRun(int(match[1]), int(match[2])) for match in found if match is not None]
    if len(runs) != len(found) or len(runs) > MAX_TIMES or any(run.ts > MAX_NUMBER for run in runs):
        rule = f"must be 1 to {MAX_TIMES} entries <records>:<milliseconds>, joined by commas, got {text[:60]!r}"
        raise refused(TIMES_HEADER, rule, "Send Record-Times: 3:1700000000000 for three records of one time.")
    return runs
