"""The row of a job: reading it, and storing what changes in it.

A job's metadata is one JSON object, read and rewritten within a transaction. What lists are filtered and ordered by
stands in columns beside it (state, when it was entered, spider, priority, needs) and in ``job_tags``; :func:`save`
keeps them equal to the metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import (
    DEFAULT_PRIORITY,
    DEFAULT_UNITS,
    MAX_NAME,
    MAX_UNITS,
    MIN_UNITS,
    JobState,
    is_name,
)
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: Of a job's metadata, as JSON: what clients may fill, and what they may not, so that a state can always be entered.
MAX_METADATA_BYTES: Final = 1024 * 1024
_ROOM_FOR_STATES: Final = 64 * 1024
#: Metadata that only a change of state sets.
PROTECTED: Final = frozenset({"state", "project", "spider", "key", "_key", "auth", "attempt", "node", "nodes_lost"})

#: What :func:`stored` reads.
COLUMNS: Final = "spider, job, spider_name, state, changed, updated, metadata"


class Counts(NamedTuple):
    """What a job has stored."""

    items: int = 0
    requests: int = 0
    logs: int = 0
    errors: int = 0


class StoredJob(NamedTuple):
    """A job: ``changed`` is when it entered its state, ``updated`` when anything of it changed (ms)."""

    key: JobKey
    spider: str
    state: JobState
    changed: int
    updated: int
    metadata: dict[str, Any]
    counts: Counts = Counts()


async def get_job(tx: Transaction, key: JobKey, *, lock: bool = False) -> StoredJob | None:
    """One job, None if there is none; with ``lock``, nobody else changes it before the transaction ends."""
    row = await tx.fetchrow(
        f"SELECT {COLUMNS} FROM jobs WHERE project = $1 AND spider = $2 AND job = $3"  # noqa: S608 - fixed text
        + (" FOR UPDATE" if lock else ""),
        *key,
    )
    return stored(key.project, row) if row else None


def stored(project: int, row: Row) -> StoredJob:
    """The job of a row of :data:`COLUMNS`."""
    spider, job, name, state, changed, updated, metadata = row
    return StoredJob(
        JobKey(project, spider, job), name, JobState(state), changed, updated, msgspec.json.decode(metadata)
    )


def tags_of(metadata: Mapping[str, Any]) -> list[str]:
    """The tags in a job's metadata, in their order."""
    tags = metadata.get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def priority_of(metadata: Mapping[str, Any]) -> int:
    """The priority in a job's metadata; the usual one when it is not a number."""
    priority = metadata.get("priority")
    if isinstance(priority, int) and not isinstance(priority, bool) and abs(priority) <= MAX_NUMBER:
        return priority
    return DEFAULT_PRIORITY


def needs_of(metadata: Mapping[str, Any]) -> tuple[int, str]:
    """What a job needs of its node: units, and tags as they are stored."""
    units, tags = metadata.get("units"), metadata.get("node_tags")
    known = isinstance(units, int) and not isinstance(units, bool) and MIN_UNITS <= units <= MAX_UNITS
    named = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    return units if known and isinstance(units, int) else DEFAULT_UNITS, msgspec.json.encode(sorted(named)).decode()


def merged(metadata: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with fields set, but for those that only a change of state sets."""
    return {**metadata, **{name: value for name, value in fields.items() if name not in PROTECTED}}


async def save(
    tx: Transaction, key: JobKey, metadata: Mapping[str, Any], now: int, *, from_client: bool = True
) -> None:
    """Store the metadata of a job, and what the columns repeat of it. What is not ``from_client`` always has room."""
    await tx.execute(
        """UPDATE jobs SET metadata = $4, updated = $5, priority = $6, units = $7, node_tags = $8
           WHERE project = $1 AND spider = $2 AND job = $3""",
        *key,
        encode(metadata, MAX_METADATA_BYTES if from_client else MAX_METADATA_BYTES + _ROOM_FOR_STATES),
        now,
        priority_of(metadata),
        *needs_of(metadata),
    )
    await index_tags(tx, key, metadata)


def encode(metadata: Mapping[str, Any], most: int = MAX_METADATA_BYTES) -> bytes:
    """Metadata as it is stored; raises :class:`ContractError` when it is too large."""
    encoded = msgspec.json.encode(metadata)
    if len(encoded) > most:
        raise ContractError(
            [
                Violation(
                    "metadata",
                    f"of a job must be at most {MAX_METADATA_BYTES} bytes of JSON, got {len(encoded)}",
                    "Keep large values in a collection.",
                    413,
                )
            ]
        )
    return encoded


async def index_tags(tx: Transaction, key: JobKey, metadata: Mapping[str, Any], *, new: bool = False) -> None:
    """Make ``job_tags`` say what the metadata does; raises :class:`ContractError` for what can be no tag."""
    tags = set(tags_of(metadata))
    if not all(map(is_name, tags)):
        raise ContractError(
            [Violation("tags", f"must be 1 to {MAX_NAME} characters each, and none of them NUL", "Correct the tags.")]
        )
    present = set() if new else await _indexed_tags(tx, key)
    if gone := present - tags:
        await tx.execute_many(
            "DELETE FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3 AND tag = $4",
            [(*key, tag) for tag in gone],
        )
    if added := tags - present:
        await tx.execute_many(
            "INSERT INTO job_tags (project, spider, job, tag) VALUES ($1, $2, $3, $4)",
            [(*key, tag) for tag in added],
        )


async def _indexed_tags(tx: Transaction, key: JobKey) -> set[str]:
    rows = await tx.fetch("SELECT tag FROM job_tags WHERE project = $1 AND spider = $2 AND job = $3", *key)
    return {row[0] for row in rows}
