"""Deployed versions of projects: archives in pieces, spiders, and the current version.

Changes of a project's versions lock its counter of deploys. A version becomes visible when its archive is complete. A
ready version becomes current unless a later one is, and replaces other deploys of its name. Archives of the newest
versions are kept, and those that active jobs need.

A version of a new job is locked until the job is stored (``rows.held_version``). A removal locks the versions before it
reads the jobs, so that it sees each job that has chosen one of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.versions import KEPT, SpiderInfo, VersionState, warning_of
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import EngineStore, Method, TimedMethod, Transaction
from scrapy_ext.server.store.projects import advance, hold
from scrapy_ext.server.store.removals import VERSION, RemovedOwner, add_removal
from scrapy_ext.server.store.version_rows import (
    UPLOADING,
    active_jobs,
    current_version,
    get_version,
    list_versions,
    named_version,
    piece_of,
    refused_for,
    runnable,
    running_jobs,
    spiders_of,
    stored_versions,
    unchecked_versions,
    version_of_job,
)

#: Bytes per piece of an archive.
PIECE: Final = 512 * 1024
#: Tolerated difference between the clocks of servers, in milliseconds.
_CLOCKS_DIFFER: Final = 300_000
#: Milliseconds after which an incomplete upload is removed.
_GIVEN_UP: Final = 3_600_000


class NewVersion(NamedTuple):
    """A version to deploy; ``settings`` is the settings module, "" to use the one in the archive."""

    name: str
    format: str
    settings: str
    size: int
    sha256: str
    requirements: str


class InUseError(Exception):
    """The version cannot be removed; the message has the reason."""


async def begin(tx: Transaction, now: int, project: int, new: NewVersion, by: str) -> int:
    """Start the upload of a version; return its number."""
    deploy = await advance(tx, project, "deploy")
    stale = await tx.fetch(
        "SELECT deploy FROM versions WHERE project = $1 AND state = $2 AND touched < $3 ORDER BY deploy",
        project,
        UPLOADING,
        now - _GIVEN_UP,
    )
    for (old,) in stale:
        await remove_version(tx, project, old)
    await tx.execute(
        """INSERT INTO versions (project, deploy, name, state, message, created, created_by, touched, format, settings,
                                 size, sha256, requirements)
           VALUES ($1, $2, $3, $4, '', $5, $6, $5, $7, $8, $9, $10, $11)""",
        project,
        deploy,
        new.name,
        UPLOADING,
        now,
        by,
        new.format,
        new.settings,
        new.size,
        new.sha256,
        new.requirements,
    )
    return deploy


async def put(tx: Transaction, project: int, deploy: int, piece: int, body: bytes) -> None:
    """Store a piece of the archive, up to :data:`PIECE` bytes. Pieces count from 0.

    Raises :class:`ContractError` (410) when the upload was removed meanwhile.
    """
    row = await tx.fetchrow("SELECT 1 FROM versions WHERE project = $1 AND deploy = $2 FOR SHARE", project, deploy)
    if row is None:
        raise ContractError([Violation("archive", "took too long and was removed", "Deploy the version again.", 410)])
    await tx.execute(
        "INSERT INTO version_pieces (project, deploy, piece, body) VALUES ($1, $2, $3, $4)",
        project,
        deploy,
        piece,
        body,
    )


async def _set_state(
    tx: Transaction, project: int, deploy: int, *, state: VersionState, now: int, message: str = ""
) -> None:
    await tx.execute(
        "UPDATE versions SET state = $3, message = $4, touched = $5 WHERE project = $1 AND deploy = $2",
        project,
        deploy,
        state.value,
        message,
        now,
    )


async def progress(tx: Transaction, now: int, project: int, deploy: int, message: str) -> None:
    """Record the progress of the check."""
    await tx.execute(
        "UPDATE versions SET message = $3, touched = $4 WHERE project = $1 AND deploy = $2 AND state = $5",
        project,
        deploy,
        message,
        now,
        VersionState.UPLOADED.value,
    )


async def ready(
    tx: Transaction,
    now: int,
    project: int,
    deploy: int,
    spiders: Sequence[SpiderInfo],
    *,
    unreadable: Sequence[str] = (),
) -> None:
    """Record that the check has passed: the version is runnable. Its message names ``unreadable`` modules."""
    await hold(tx, project, "deploy")
    found = await get_version(tx, project, deploy)
    if found is None or found.shown.state is not VersionState.UPLOADED:
        # Another server has removed or checked it meanwhile.
        return
    await _set_state(tx, project, deploy, state=VersionState.READY, now=now, message=warning_of(spiders, unreadable))
    await tx.execute_many(
        "INSERT INTO version_spiders (project, deploy, name, info) VALUES ($1, $2, $3, $4)",
        [(project, deploy, spider.name, msgspec.json.encode(spider)) for spider in spiders],
    )
    before = await current_version(tx, project)
    if before is None or before.deploy < deploy:
        await _set_current(tx, project, deploy)
    await _remove_old(tx, project)


async def failed(tx: Transaction, now: int, project: int, deploy: int, message: str) -> None:
    """Record that the check has failed."""
    await hold(tx, project, "deploy")
    found = await get_version(tx, project, deploy)
    if found is None or found.shown.state is not VersionState.UPLOADED:
        return
    await _set_state(tx, project, deploy, state=VersionState.FAILED, now=now, message=message)
    await add_removal(tx, RemovedOwner(project, VERSION, deploy))
    await _remove_old(tx, project)


async def _remove_old(tx: Transaction, project: int) -> None:
    """Remove versions replaced by a later deploy of their name, and the oldest of too many."""
    rows = await tx.fetch(
        """SELECT deploy, name, state FROM versions WHERE project = $1 AND state IN ($2, $3)
           ORDER BY deploy DESC FOR UPDATE""",
        project,
        VersionState.READY.value,
        VersionState.FAILED.value,
    )
    current = await current_version(tx, project)
    needed = await _needed(tx, project)
    seen: set[str] = set()
    kept = {VersionState.READY.value: 0, VersionState.FAILED.value: 0}
    for deploy, name, state in rows:
        # A failed later deploy replaces nothing runnable.
        replaced = name in seen
        if state == VersionState.READY.value:
            seen.add(name)
        kept[state] += not replaced
        if (current is not None and deploy == current.deploy) or not (
            replaced or (kept[state] > KEPT and deploy not in needed)
        ):
            continue
        await remove_version(tx, project, deploy)


async def _needed(tx: Transaction, project: int) -> set[int]:
    """Return the versions that active jobs were scheduled with."""
    rows = await tx.fetch(
        "SELECT DISTINCT deploy FROM jobs WHERE project = $1 AND state IN ('pending', 'running')", project
    )
    return {row[0] for row in rows}


async def _needed_names(tx: Transaction, project: int, deploys: Iterable[int]) -> set[str | None]:
    """Return the names of replaced versions among these, whose jobs run the later deploy of the name."""
    names: set[str | None] = set()
    for deploy in deploys:
        if await tx.fetchrow("SELECT 1 FROM versions WHERE project = $1 AND deploy = $2", project, deploy) is not None:
            continue
        row = await tx.fetchrow(
            """SELECT metadata FROM jobs WHERE project = $1 AND state IN ('pending', 'running') AND deploy = $2
               LIMIT 1""",
            project,
            deploy,
        )
        if row is not None:
            names.add(version_of_job(row[0]))
    return names


async def _runs_periodic_jobs(tx: Transaction, project: int) -> bool:
    row = await tx.fetchrow("SELECT 1 FROM periodic_jobs WHERE project = $1 AND disabled = 0 LIMIT 1", project)
    return row is not None


async def remove_version(tx: Transaction, project: int, deploy: int) -> None:
    """Remove a version; its archive and spiders, which no reader sees without it, are purged later."""
    await tx.execute("DELETE FROM versions WHERE project = $1 AND deploy = $2", project, deploy)
    await add_removal(tx, RemovedOwner(project, VERSION, deploy))


async def _set_current(tx: Transaction, project: int, deploy: int) -> None:
    await tx.execute(
        """INSERT INTO current_versions (project, deploy) VALUES ($1, $2)
           ON CONFLICT (project) DO UPDATE SET deploy = excluded.deploy""",
        project,
        deploy,
    )


async def make_current(tx: Transaction, project: int, name: str) -> bool:
    """Make a version current for new jobs; False when there is no runnable one of this name."""
    await hold(tx, project, "deploy")
    found = await runnable(tx, project, name)
    if found is None:
        return False
    await _set_current(tx, project, found.deploy)
    return True


async def remove(tx: Transaction, project: int, name: str) -> bool:
    """Remove every deploy of a name; False when there is none. Raises :class:`InUseError` for the current one while
    there are others, and for one that an active job needs."""
    await hold(tx, project, "deploy")
    rows = await tx.fetch(
        "SELECT deploy, name, state FROM versions WHERE project = $1 AND state <> $2 ORDER BY deploy DESC FOR UPDATE",
        project,
        UPLOADING,
    )
    doomed = [deploy for deploy, its, _ in rows if its == name]
    current = await current_version(tx, project)
    others = any(its != name and state == VersionState.READY.value for _, its, state in rows)
    is_last = current is not None and current.deploy in doomed
    if is_last:
        if others:
            raise InUseError("it is the current version. Make another one current first")
        await tx.execute("DELETE FROM current_versions WHERE project = $1", project)
    needed = await _needed(tx, project)
    if needed.intersection(doomed) or name in await _needed_names(tx, project, needed.difference(doomed)):
        raise InUseError("pending or running jobs need it. Let them end, or cancel them")
    if is_last and await _runs_periodic_jobs(tx, project):
        raise InUseError("periodic jobs need it. Disable or delete them")
    for deploy in doomed:
        await remove_version(tx, project, deploy)
    return bool(doomed)


class VersionStore(EngineStore):
    # ── uploading ──

    begin = TimedMethod("write", begin)
    put = Method("write", put)

    async def arrived(self, project: int, deploy: int) -> None:
        """Complete an upload: the version is visible and waits for its check."""
        await self._engine.write(_set_state, project, deploy, state=VersionState.UPLOADED, now=self._clock())

    discard = Method("write", remove_version)

    async def archive(self, project: int, deploy: int) -> AsyncIterator[bytes]:
        piece = 0
        while (body := await self._engine.read(piece_of, project, deploy, piece)) is not None:
            yield body
            piece += 1

    # ── checking ──

    progress = TimedMethod("write", progress)
    ready = TimedMethod("write", ready)
    failed = TimedMethod("write", failed)

    async def unchecked(self, idle: int) -> list[tuple[int, int]]:
        """Return project and number of versions whose check was idle for ``idle`` milliseconds."""
        now = self._clock()
        return await self._engine.read(unchecked_versions, now - idle, now + _CLOCKS_DIFFER)

    # ── reading ──

    listed = Method("read", list_versions)
    stored = Method("read", stored_versions)
    get = Method("read", get_version)
    named = Method("read", named_version)
    active_jobs = Method("read", active_jobs)
    running_jobs = Method("read", running_jobs)

    async def current(self, project: int) -> str | None:
        """Return the name of the version that jobs run; None without any."""
        found = await self._engine.read_inline(current_version, project)
        return found.name if found else None

    async def spiders(self, project: int, name: str | None = None) -> list[SpiderInfo]:
        """Return the spiders and scripts of a version (None: the current one), by name."""
        return await self._engine.read(spiders_of, project, name)

    async def refuses(self, project: int, spider: str, name: str | None = None) -> list[str] | None:
        """Return None when jobs of this name can be added; else the names of the version's spiders.

        A project without a version accepts any name.
        """
        return await self._engine.read_inline(refused_for, project, spider, name)

    # ── changing ──

    make_current = Method("write", make_current)
    remove = Method("write", remove)
