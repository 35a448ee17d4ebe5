"""Reads of deployed versions."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.versions import SpiderInfo, Version, VersionState
from scrapy_ext.server.store.engine.interface import Row, Transaction

#: The state of a version while its archive is uploaded, which no reader sees.
UPLOADING: Final = "uploading"

_COLUMNS: Final = "deploy, name, state, message, created, created_by, size, sha256, format, requirements, settings"
_decode: Final = msgspec.json.Decoder(SpiderInfo).decode


class StoredVersion(NamedTuple):
    """A version as published, and the settings module that was sent with it."""

    shown: Version
    settings: str


class Runnable(NamedTuple):
    """A runnable version: its number and name."""

    deploy: int
    name: str


async def current_version(tx: Transaction, project: int) -> Runnable | None:
    """Return the version that jobs run, within a larger transaction."""
    row = await tx.fetchrow(
        """SELECT v.deploy, v.name FROM current_versions c JOIN versions v ON v.project = c.project
           AND v.deploy = c.deploy WHERE c.project = $1""",
        project,
    )
    return Runnable(*row) if row else None


async def runnable(tx: Transaction, project: int, name: str | None) -> Runnable | None:
    """Return the version of this name (None: the current one) if it is runnable."""
    if name is None:
        return await current_version(tx, project)
    row = await tx.fetchrow(
        """SELECT deploy, name FROM versions WHERE project = $1 AND name = $2 AND state = $3
           ORDER BY deploy DESC LIMIT 1""",
        project,
        name,
        VersionState.READY.value,
    )
    return Runnable(*row) if row else None


async def held_version(tx: Transaction, project: int, name: str | None) -> Runnable | None:
    """Return :func:`runnable`, locked against its removal until the commit."""
    while (found := await runnable(tx, project, name)) is not None:
        row = await tx.fetchrow(
            "SELECT 1 FROM versions WHERE project = $1 AND deploy = $2 FOR SHARE", project, found.deploy
        )
        if row is not None:
            break
    return found


async def piece_of(tx: Transaction, project: int, deploy: int, piece: int) -> bytes | None:
    """Return a piece of an archive; None after the last, and of a version that was removed or failed."""
    row = await tx.fetchrow(
        """SELECT p.body FROM version_pieces p JOIN versions v ON v.project = p.project AND v.deploy = p.deploy
           WHERE p.project = $1 AND p.deploy = $2 AND p.piece = $3 AND v.state <> $4""",
        *(project, deploy, piece, VersionState.FAILED.value),
    )
    return bytes(row[0]) if row else None


async def unchecked_versions(tx: Transaction, before: int, after: int) -> list[tuple[int, int]]:
    """Return project and number of versions whose check was idle since ``before``; or, after a clock was set back, last
    touched after ``after``."""
    rows = await tx.fetch(
        """SELECT project, deploy FROM versions WHERE state = $1 AND (touched <= $2 OR touched > $3)
           ORDER BY project, deploy LIMIT 100""",
        VersionState.UPLOADED.value,
        before,
        after,
    )
    return [(project, deploy) for project, deploy in rows]


async def list_versions(tx: Transaction, project: int) -> list[Version]:
    """Return the versions of a project, newest first."""
    return [version.shown for version in await stored_versions(tx, project)]


async def stored_versions(tx: Transaction, project: int) -> list[StoredVersion]:
    """Return the versions of a project with their settings, newest first."""
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM versions WHERE project = $1 AND state <> $2 ORDER BY deploy DESC",
        project,
        UPLOADING,
    )
    current = await current_version(tx, project)
    return [_version(row, current) for row in rows]


async def get_version(tx: Transaction, project: int, deploy: int) -> StoredVersion | None:
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM versions WHERE project = $1 AND deploy = $2 AND state <> $3",
        project,
        deploy,
        UPLOADING,
    )
    return _version(row, await current_version(tx, project)) if row else None


async def named_version(tx: Transaction, project: int, name: str) -> StoredVersion | None:
    """Return the runnable version of a name, else its last deployed one."""
    found = await runnable(tx, project, name)
    if found is not None:
        return await get_version(tx, project, found.deploy)
    row = await tx.fetchrow(
        """SELECT deploy FROM versions WHERE project = $1 AND name = $2 AND state <> $3
           ORDER BY deploy DESC LIMIT 1""",
        project,
        name,
        UPLOADING,
    )
    return await get_version(tx, project, row[0]) if row else None


def _version(row: Row, current: Runnable | None) -> StoredVersion:
    deploy, name, state, message, created, by, size, sha256, kind, requirements, settings = row
    shown = Version(
        version=name,
        deploy_id=deploy,
        state=VersionState(state),
        message=message,
        current=current is not None and current.deploy == deploy,
        created=created,
        created_by=by,
        size=size,
        sha256=sha256,
        format=kind,
        requirements=requirements,
    )
    return StoredVersion(shown, settings)


async def spiders_of(tx: Transaction, project: int, name: str | None) -> list[SpiderInfo]:
    """Return the spiders and scripts of a version (None: the current one)."""
    found = await runnable(tx, project, name)
    if found is None:
        return []
    rows = await tx.fetch(
        "SELECT info FROM version_spiders WHERE project = $1 AND deploy = $2 ORDER BY name", project, found.deploy
    )
    return [_decode(row[0]) for row in rows]


# ── active jobs and the versions that they run ──


class ActiveJobs(NamedTuple):
    """Numbers of the pending and the running jobs of a version."""

    pending: int = 0
    running: int = 0


class RunningJob(NamedTuple):
    """A running job; ``version`` is None without a deployed one, ``node`` without a process on a node.

    ``since``: time of its start (ms).
    """

    key: JobKey
    spider: str
    version: str | None
    node: str | None
    since: int


class _VersionOfJob(msgspec.Struct):
    version: object = None


_decode_version: Final = msgspec.json.Decoder(_VersionOfJob).decode


def version_of_job(metadata: bytes) -> str | None:
    """Return the name of the version in the metadata of a job."""
    version = _decode_version(metadata).version
    return version if isinstance(version, str) else None


async def active_jobs(tx: Transaction, project: int) -> dict[int, ActiveJobs]:
    """Return the numbers of active jobs by the deploy that they were scheduled with, 0 for those without one."""
    rows = await tx.fetch(
        """SELECT deploy, CAST(sum(CASE WHEN state = 'pending' THEN 1 ELSE 0 END) AS BIGINT),
                  CAST(sum(CASE WHEN state = 'running' THEN 1 ELSE 0 END) AS BIGINT)
           FROM jobs WHERE project = $1 AND state IN ('pending', 'running') GROUP BY deploy""",
        project,
    )
    return {deploy: ActiveJobs(pending, running) for deploy, pending, running in rows}


#: Running jobs among which those of a version are found.
_MOST_RUNNING: Final = 10_000


async def running_jobs(tx: Transaction, project: int, count: int, version: str | None = None) -> list[RunningJob]:
    """Return the running jobs, or those of a version, with their versions and nodes, the last started first."""
    rows = await tx.fetch(
        """SELECT j.spider, j.job, j.spider_name, j.metadata,
                  (SELECT min(NULLIF(a.node, '')) FROM attempts a
                   WHERE a.project = j.project AND a.spider = j.spider AND a.job = j.job),
                  j.changed FROM jobs j
           WHERE j.project = $1 AND j.state = 'running' ORDER BY j.changed DESC, j.spider DESC, j.job DESC LIMIT $2""",
        project,
        count if version is None else _MOST_RUNNING,
    )
    found = (
        RunningJob(JobKey(project, spider, job), name, version_of_job(metadata), node, since)
        for spider, job, name, metadata, node, since in rows
    )
    return list(islice((each for each in found if version in (None, each.version)), count))


async def refused_for(tx: Transaction, project: int, spider: str, name: str | None) -> list[str] | None:
    """Return None when jobs of this name can be added; else the names that the version has."""
    found = await runnable(tx, project, name)
    if found is None:
        return None
    row = await tx.fetchrow(
        "SELECT 1 FROM version_spiders WHERE project = $1 AND deploy = $2 AND name = $3", project, found.deploy, spider
    )
    if row is not None:
        return None
    rows = await tx.fetch(
        "SELECT name FROM version_spiders WHERE project = $1 AND deploy = $2 ORDER BY name", project, found.deploy
    )
    return [name for (name,) in rows]
