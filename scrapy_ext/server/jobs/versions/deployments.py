"""Deployments: an uploaded archive becomes a runnable version after a check.

The check builds its environment on this machine and reads its spiders. Until then, and if it fails, the previous
version stays current. A check that is interrupted (the server was killed) is repeated by a server that starts, or that
receives a request for the version.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from scrapy_ext.api.platform.versions import Version, VersionState
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.jobs.versions.environments import BuildError, Environments
from scrapy_ext.server.jobs.versions.inspection import Inspector
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.version_rows import StoredVersion
from scrapy_ext.server.store.versions import PIECE, NewVersion

logger = logging.getLogger(__name__)

#: Seconds between two heartbeats of a check, and without one until it counts as interrupted.
_HEARTBEAT: Final = 2.0
_INTERRUPTED: Final = 8.0
#: Maximum characters of the message of a check, and lines of its output that are kept for the user.
_MESSAGE: Final = 16_000
_LINES: Final = 1000


class _Check:
    """A running check with its output and stage."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES)
        self.total = 0
        self.stage = "waiting to be checked"
        self.task: asyncio.Task[None] | None = None

    def note(self, text: str) -> None:
        self.lines.append(text)
        self.total += 1
        self.stage = text


class Deployments:
    """Uploads and checks of versions on this server."""

    def __init__(self, store: Store, environments: Environments) -> None:
        self._store = store
        self.environments = environments
        self._inspector = Inspector()
        self._checks: dict[tuple[int, int], _Check] = {}

    async def resume(self) -> None:
        """Repeat interrupted checks."""
        for project, deploy in await self._store.versions.unchecked(int(_INTERRUPTED * 1000)):
            self._start(project, deploy)

    async def take(self, project: int, name: str, file: BinaryIO, by: str, **more: str) -> StoredVersion:
        """Store an archive and start its check; raise ``ArchiveError``. ``more``: ``settings`` and ``requirements``."""
        contents = await self._inspector.inspect(file)
        size, sha256 = await in_data_thread(_measured, file)
        new = NewVersion(name, contents.format, more["settings"], size, sha256, more["requirements"])
        deploy = await self._store.versions.begin(project, new, by)
        try:
            piece = 0
            while body := await in_data_thread(file.read, PIECE):
                await self._store.versions.put(project, deploy, piece, body)
                piece += 1
            await self._store.versions.arrived(project, deploy)
        except BaseException:
            with contextlib.suppress(StoreError):
                await self._store.versions.discard(project, deploy)
            raise
        self._start(project, deploy)
        found = await self._store.versions.get(project, deploy)
        assert found is not None  # noqa: S101 - it was stored just now
        return found

    async def refreshed(self, project: int, version: StoredVersion) -> Version:
        """Return a version with the stage of its check, which is repeated if it was interrupted."""
        shown = version.shown
        if shown.state is VersionState.UPLOADED:
            check = self._checks.get((project, shown.deploy_id))
            if check is not None:
                shown.message = check.stage
            elif (project, shown.deploy_id) in await self._store.versions.unchecked(int(_INTERRUPTED * 1000)):
                self._start(project, shown.deploy_id)
        return shown

    async def follow(self, project: int, deploy: int) -> AsyncIterator[str]:
        """Yield the output of a check until its end, and an empty text after a second without output."""
        check = self._checks.get((project, deploy))
        seen = 0
        while check is not None and check.task is not None:
            new = min(check.total - seen, len(check.lines))
            for line in list(check.lines)[len(check.lines) - new :]:
                yield line
            seen = check.total if new else seen
            if check.task.done():
                return
            await asyncio.wait([check.task], timeout=1.0)
            if check.total == seen and not check.task.done():
                yield ""

    async def close(self) -> None:
        """Cancel the running checks, which the next start repeats."""
        tasks = [check.task for check in self._checks.values() if check.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.environments.close()

    def _start(self, project: int, deploy: int) -> None:
        key = (project, deploy)
        if key not in self._checks:
            check = self._checks[key] = _Check()
            check.task = asyncio.create_task(self._check(project, deploy, check))
            check.task.add_done_callback(lambda _: self._checks.pop(key, None))

    async def _check(self, project: int, deploy: int, check: _Check) -> None:
        heartbeats = asyncio.create_task(self._send_heartbeats(project, deploy, check))
        try:
            version = await self._store.versions.get(project, deploy)
            if version is None or version.shown.state is not VersionState.UPLOADED:
                return
            try:
                prepared = await self.environments.build(project, version, check.note)
                check.note("reading its spiders")
                found = await self.environments.read(prepared)
            except BuildError as error:
                await self._store.versions.failed(project, deploy, str(error)[:_MESSAGE])
            else:
                await self._store.versions.ready(project, deploy, found.spiders, unreadable=found.unreadable)
        except StoreError as error:
            logger.error("Version %d of project %d was not checked: %s", deploy, project, error)
        except Exception:
            logger.exception("Version %d of project %d could not be checked", deploy, project)
            with contextlib.suppress(StoreError):
                await self._store.versions.failed(project, deploy, "the server failed to check it; see its log")
        finally:
            heartbeats.cancel()

    async def _send_heartbeats(self, project: int, deploy: int, check: _Check) -> None:
        """Store the stage regularly, so that no other server repeats the check."""
        sent, stage = time.monotonic(), ""
        while True:
            if check.stage != stage or time.monotonic() - sent >= _HEARTBEAT:
                sent, stage = time.monotonic(), check.stage
                with contextlib.suppress(StoreError):
                    await self._store.versions.progress(project, deploy, stage[:_MESSAGE])
            await asyncio.sleep(1.0)


def _measured(file: BinaryIO) -> tuple[int, str]:
    """Return size and SHA-256 of a file, which is then at its beginning."""
    digest, size = hashlib.sha256(), 0
    file.seek(0)
    while piece := file.read(PIECE):
        digest.update(piece)
        size += len(piece)
    file.seek(0)
    return size, digest.hexdigest()
