"""Use of storage, as the API reports it. Bytes are those stored: records of jobs are compressed."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct):
    """A part of what is stored: ``name`` is that of a kind, spider, age or project."""

    name: str
    #: Jobs with data in the part; records, or rows of kinds that have no records.
    jobs: int
    records: int
    bytes: int


class Deleted(msgspec.Struct):
    """Deleted data. ``waiting``: bytes that are still to be removed, of ``owners`` (jobs, collections, frontiers)."""

    owners: int
    waiting: int
    #: Rows and bytes that were removed since the beginning.
    removed_rows: int
    removed_bytes: int


class Database(msgspec.Struct):
    """The database. ``free``: bytes for new data within its size; null if it does not report that.

    ``dead_rows``: deleted rows whose space the database has not made usable yet, as it estimates.
    """

    bytes: int
    free: int | None
    dead_rows: int


class Usage(msgspec.Struct):
    """Use of storage by a project, or by all of them (``project`` null).

    ``counted``: when the sums were complete (ms since 1970); null while they still grow.
    """

    project: int | None
    counted: int | None
    bytes: int
    kinds: list[Part]
    spiders: list[Part]
    ages: list[Part]
    projects: list[Part]
    deleted: Deleted
    database: Database | None = None
