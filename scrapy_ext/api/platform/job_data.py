"""Names of the data that a job keeps outside its records: its frontier, its journal, copies of items, and snapshots.

The crawl makes them, and the server removes them with the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from scrapy_ext.api.platform.collections import CollectionType
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey

#: Collection with the items of commits in progress, one in a project.
COMMITS_COLLECTION: Final = "scrapy_commits"
#: Collection with the pages whose callback raised (``snapshots``), one in a project.
SNAPSHOTS_COLLECTION: Final = "scrapy_snapshots"
#: Prefix of the slots of commit journals.
JOURNAL_PREFIX: Final = "commits-"
#: Slot of the journal with the assignment of slots.
ASSIGNMENT: Final = "assignment"
_FRONTIER_PREFIX: Final = "job-"
_NUMBER: Final = r"(0|[1-9][0-9]{0,18})"
#: Spider and job; in the names of journals also the attempt of a worker, from 1.
_NUMBERS: Final = re.compile(f"{_NUMBER}-{_NUMBER}", re.ASCII)
_WITH_ATTEMPT: Final = re.compile(rf"{_NUMBER}-{_NUMBER}(?:-([1-9][0-9]{{0,18}}))?", re.ASCII)


def frontier_of(key: JobKey) -> str:
    """Return the name of the frontier that a job has without ``FRONTIER_NAME``."""
    return f"{_FRONTIER_PREFIX}{key.spider}-{key.job}"


def journal_of(key: JobKey, attempt: int | None = None) -> str:
    """Return the name of the slot with the journal of a job's commits, in any frontier. ``attempt``: that of a worker
    of a group, which has a journal of its own."""
    return f"{JOURNAL_PREFIX}{key.spider}-{key.job}" + ("" if attempt is None else f"-{attempt}")


def payload_prefixes(frontier: str, key: JobKey) -> list[str]:
    """Return the starts of the keys of items that a job has staged, in :data:`COMMITS_COLLECTION`: those of a job with
    one worker, and those of the workers of a group."""
    return [f"{frontier}/{journal_of(key)}{separator}" for separator in "-/"]


def snapshots_prefix(key: JobKey) -> str:
    """Return the start of the keys of a job's snapshots, in :data:`SNAPSHOTS_COLLECTION`."""
    return f"{frontier_of(key)}/"


def job_of_frontier(project: int, frontier: str) -> JobKey | None:
    """Return the job of a name of :func:`frontier_of`; None for another name."""
    return _job(project, frontier, _FRONTIER_PREFIX)


def is_journal(slot: str) -> bool:
    """Return true for the slots of a frontier in which crawls note their commits; the others have requests."""
    return slot == ASSIGNMENT or slot.startswith(JOURNAL_PREFIX)


def job_of_journal(project: int, slot: str) -> JobKey | None:
    """Return the job of a name of :func:`journal_of`; None for another name."""
    return _job(project, slot, JOURNAL_PREFIX, _WITH_ATTEMPT)


def attempt_of_journal(slot: str) -> int | None:
    """Return the attempt of a name of :func:`journal_of`; None for the journal of a job with one worker."""
    match = _WITH_ATTEMPT.fullmatch(slot.removeprefix(JOURNAL_PREFIX))
    return None if match is None or match[3] is None else int(match[3])


def job_of_payload(project: int, key: str) -> JobKey | None:
    """Return the job that has staged the items of a key in :data:`COMMITS_COLLECTION`; None for another key."""
    parts = key.split("/")
    return job_of_journal(project, parts[1]) if len(parts) > 2 else None


def job_of_snapshot(project: int, key: str) -> JobKey | None:
    """Return the job of a key in :data:`SNAPSHOTS_COLLECTION`; None for another key."""
    name, slash, _ = key.partition("/")
    return job_of_frontier(project, name) if slash else None


class OwnedCollection(NamedTuple):
    """Collection whose records belong to jobs. ``job_of``: the job of a key in a project, None for another key."""

    type: CollectionType
    job_of: Callable[[int, str], JobKey | None]


#: By name. They keep their names, by which the records of deleted jobs are recognized.
OWNED_COLLECTIONS: Final[Mapping[str, OwnedCollection]] = {
    COMMITS_COLLECTION: OwnedCollection(CollectionType.STORE, job_of_payload),
    SNAPSHOTS_COLLECTION: OwnedCollection(CollectionType.CACHED_STORE, job_of_snapshot),
}


def _job(project: int, name: str, prefix: str, numbers: re.Pattern[str] = _NUMBERS) -> JobKey | None:
    match = numbers.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
    if match is None:
        return None
    spider, job = int(match[1]), int(match[2])
    return JobKey(project, spider, job) if max(spider, job) <= MAX_NUMBER else None
