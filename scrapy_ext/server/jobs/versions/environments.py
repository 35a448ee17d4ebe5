"""Environments of versions: built once on this machine, and kept for the jobs that run in them.

The name of an environment is a hash of its contents (archive, requirements, settings, and the server's own packages),
so that the same environment is never built twice, and none ever changes. ``environment_folders`` removes old ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import SCRIPT
from scrapy_ext.api.platform.versions import LOCAL, SpiderInfo, SpiderList, VersionState
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.child import Child, run
from scrapy_ext.jobprocess.confinement import Confinement, addresses
from scrapy_ext.jobprocess.confinement.applying import package_folders
from scrapy_ext.server.jobs.confining import ConfinementError, Confining, paths_of_pip
from scrapy_ext.server.jobs.versions.building import (
    MAX_LINE,
    PART,
    PROJECT,
    SCRIPTS,
    VENV,
    WORK,
    Specification,
    pip_configurations,
)
from scrapy_ext.server.jobs.versions.contents import ArchiveError, Contents
from scrapy_ext.server.jobs.versions.environment_folders import (
    BUILD_SECONDS,
    grant_access,
    mark_needed,
    mark_used,
    needs_of,
    remove_unneeded,
    trim,
)
from scrapy_ext.server.jobs.versions.inspection import PACKAGE_ROOT, Inspector, program
from scrapy_ext.server.jobs.versions.spiders import ReadingError, read_spiders
from scrapy_ext.server.jobs.versions.variables import bare_environment, job_environment, local_environment
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.version_rows import StoredVersion

#: Environments that are kept.
KEPT: Final = 20
#: Concurrent builds of this process.
_AT_ONCE: Final = 2
#: Lines of a failed build's output in its error, and characters of the output of a build without an error.
_LOG_LINES: Final = 50
_OUTPUT: Final = 16_000
#: Minimum seconds after which the spiders of the local project are read again for an unknown name.
_LOCAL_AGE: Final = 2.0

#: Version of the layout of environments; those of others are built anew.
_LAYOUT: Final = "3"
#: Suffix of the folder of environments: pip's caches by project, which are not shared.
_PIP: Final = "-pip"

#: Called with the progress and the output of a build, line by line.
Report = Callable[[str], None]

logger = logging.getLogger(__name__)


class NoVersionError(Exception):
    """The project has no such version, or no version."""


class BuildError(Exception):
    """The version cannot be built, or its spiders cannot be read; the message is shown to its user."""


class Prepared(NamedTuple):
    """A prepared environment: its interpreter, and the folders of its project and scripts."""

    python: str
    directory: Path
    version: str
    scripts: Path | None

    @property
    def work(self) -> Path:
        """The working folder of its processes; of a deployed version beside its code, which they cannot write."""
        return self.directory if self.version == LOCAL else self.directory.with_name(WORK)


class LocalProject(NamedTuple):
    """A Scrapy project in a folder of this machine, which runs without a deployed version."""

    project: int
    directory: Path


class Environments:
    """Environments in the folder ``cache``, and the project ``local`` in which the server was started."""

    def __init__(
        self,
        store: Store,
        cache: Path,
        local: LocalProject | None = None,
        *,
        keep: int = KEPT,
        confining: Confining | None = None,
    ) -> None:
        self._store = store
        self._cache = cache.absolute()
        self._local = local
        self._keep = keep
        self.confining = confining or Confining()
        self._builds: dict[str, asyncio.Task[Path]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._inspector = Inspector()
        self._local_list = SpiderList([])
        self._local_error: str | None = None
        self._local_read: float | None = None
        self._local_lock = asyncio.Lock()

    async def prepare(self, project: int, version: str | None) -> Prepared:
        """Return the environment of a version (None: the current one), built if it is missing.

        Raises :class:`NoVersionError` and :class:`BuildError`.
        """
        if version is None:
            version = await self._store.versions.current(project) or LOCAL
        if version == LOCAL:
            return self._prepared_local(project)
        found = await self._store.versions.named(project, version)
        if found is None:
            raise NoVersionError(f"project {project} has no version {version}")
        if found.shown.state is VersionState.FAILED:
            raise BuildError(f"version {version} failed: {found.shown.message}")
        return await self.build(project, found)

    async def build(self, project: int, version: StoredVersion, report: Report = lambda _: None) -> Prepared:
        """Return the environment of a version, built if it is missing; raise :class:`BuildError`."""
        key = _key(project, version)
        home = await asyncio.to_thread(mark_used, self._cache / key)
        if home is None:
            task = self._builds.get(key)
            if task is None:
                task = self._builds[key] = asyncio.create_task(self._build(project, version, key, report))
                task.add_done_callback(lambda _: self._builds.pop(key, None))
            # The build continues when one of its waiters is cancelled.
            home = await asyncio.shield(task)
        await asyncio.to_thread(mark_needed, home, await self._owner(), _contents(version))
        scripts = home / SCRIPTS
        try:
            user = await self.confining.usable_user(project, [home / WORK])
            await asyncio.to_thread(grant_access, home, user)
        except (OSError, ConfinementError) as error:
            raise BuildError(f"the environment cannot be used: {error}") from None
        return Prepared(
            str(home / VENV / "bin" / "python"),
            home / PROJECT,
            version.shown.version,
            scripts if await asyncio.to_thread(scripts.is_dir) else None,
        )

    async def remove_unneeded(self) -> int:
        """Remove the environments of deleted versions; return their number."""
        owner = await self._owner()
        removed = 0
        for home, contents in (await asyncio.to_thread(needs_of, self._cache, owner)).items():
            project = _project_of(home)
            needed = {_contents(version) for version in await self._store.versions.stored(project)}
            if unneeded := contents - needed:
                removed += await asyncio.to_thread(remove_unneeded, home, owner, unneeded)
        return removed

    async def _owner(self) -> str:
        """Return a name of the database for the folder of environments, which other databases may use, too."""
        return hashlib.sha256(await self._store.keys.secret("environments")).hexdigest()[:16]

    async def confinement(self, prepared: Prepared, memory: int | None = None) -> Confinement | None:
        """Return the confinement of a process with ``memory`` bytes; None for the operator's own project.

        Raises :class:`ConfinementError`.
        """
        if prepared.version == LOCAL:
            return None
        home = prepared.directory.parent
        return await self.confining.of(_project_of(home), [home], [prepared.work], memory)

    async def read(self, prepared: Prepared) -> SpiderList:
        """Return the spiders and scripts of an environment; raise :class:`BuildError`."""
        local = prepared.version == LOCAL
        try:
            found = await read_spiders(
                prepared.python,
                prepared.work,
                local_environment() if local else job_environment(),
                confinement=await self.confinement(prepared),
            )
        except (ReadingError, ConfinementError) as error:
            raise BuildError(str(error)) from None
        # Scripts beside scrapy.cfg run, too, but are not listed: other modules are there as well.
        folder = None if prepared.scripts == prepared.directory else prepared.scripts
        names = await asyncio.to_thread(_script_names, folder)
        found.spiders += (SpiderInfo(SCRIPT + name, custom=False) for name in names)
        return found

    async def spiders(self, project: int, wanted: str | None = None) -> list[SpiderInfo]:
        """Return the spiders of the current version, or of the local project if nothing was deployed.

        The local project is read again when it has no spider named ``wanted``. Raises :class:`BuildError`.
        """
        if await self._store.versions.current(project) is not None:
            return await self._store.versions.spiders(project)
        if self._local is None or self._local.project != project:
            return []
        async with self._local_lock:
            age = None if self._local_read is None else time.monotonic() - self._local_read
            known = wanted is None or any(spider.name == wanted for spider in self._local_list.spiders)
            if age is None or (not known and age > _LOCAL_AGE):
                self._local_error = None
                try:
                    self._local_list = await self.read(self._prepared_local(project))
                except BuildError as error:
                    self._local_list, self._local_error = SpiderList([]), str(error)
                self._local_read = time.monotonic()
            if self._local_error is not None:
                raise BuildError(self._local_error)
            return self._local_list.spiders

    @property
    def has_read_local(self) -> bool:
        """True when the spiders of the local project were read."""
        return self._local_read is not None

    @property
    def unreadable_local(self) -> Sequence[str]:
        """Modules of the local project that cannot be imported, each with its error."""
        return self._local_list.unreadable

    async def read_local(self) -> None:
        """Read the spiders of the local project in advance."""
        if self._local is not None:
            with contextlib.suppress(BuildError):
                await self.spiders(self._local.project)

    async def close(self) -> None:
        """Cancel the running builds."""
        for task in list(self._builds.values()):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, BuildError):
                await task

    def _prepared_local(self, project: int) -> Prepared:
        if self._local is None or self._local.project != project:
            raise NoVersionError(f"project {project} has no version. Deploy one: scrapy platform deploy")
        folder = self._local.directory
        return Prepared(sys.executable, folder, LOCAL, folder / SCRIPTS if (folder / SCRIPTS).is_dir() else folder)

    async def _build(self, project: int, version: StoredVersion, key: str, report: Report) -> Path:
        async with self._slots:
            await asyncio.to_thread(self._cache.mkdir, parents=True, exist_ok=True, mode=0o700)
            archive = await self._fetched(project, version)
            try:
                contents = await self._inspect(archive)
                await self._run_build(project, self._specification(version, key, archive, contents), report)
            except ArchiveError as error:
                raise BuildError(f"the archive cannot be used: {error}") from None
            finally:
                await asyncio.to_thread(archive.unlink, missing_ok=True)
            home = await asyncio.to_thread(mark_used, self._cache / key)
            if home is None:
                raise BuildError("the environment was removed while it was built")
            await self._trim()
            return home

    async def _trim(self) -> None:
        """Remove old environments; a failure does not affect the build."""
        try:
            await asyncio.to_thread(trim, self._cache, self._keep)
        except Exception:
            logger.exception(
                "Old environments in %s could not be removed. It is retried after the next build. If this "
                "stays, stop the server and remove the folder: environments are built again.",
                self._cache,
            )

    def _specification(self, version: StoredVersion, key: str, archive: Path, contents: Contents) -> Specification:
        return Specification(
            archive=str(archive),
            format=contents.format,
            filename=contents.filename,
            settings=version.settings,
            requirements=version.shown.requirements,
            target=str(self._cache / key),
            base=package_folders(),
        )

    async def _run_build(self, project: int, wanted: Specification, report: Report) -> None:
        environment = bare_environment()
        part, pip = Path(wanted.target + PART), self._cache.with_name(self._cache.name + _PIP) / str(project)
        named = await asyncio.to_thread(paths_of_pip, environment, pip_configurations())
        try:
            confinement = await self.confining.of(
                project, [part, *named], [part / VENV, part / PROJECT, part / SCRIPTS, pip]
            )
        except ConfinementError as error:
            raise BuildError(str(error)) from None
        wanted = msgspec.structs.replace(
            wanted, pip=str(pip), confinement=confinement._asdict(), own_ports=addresses.closed_ports()
        )
        reported: dict[str, str] = {}
        log: list[str] = []

        def on_line(line: str) -> None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                message = msgspec.json.decode(line, type=dict[str, str])
                reported.update(message)
                log.extend(message.get("log", "").splitlines())
                del log[:-_LOG_LINES]
                for text in message.values():
                    report(text)

        try:
            starting = Child.start(
                [sys.executable, "-c", program("building")],
                folder=self._cache,
                environment=environment,
                given=msgspec.json.encode(wanted),
                descriptors=[] if wanted.own_ports is None else [wanted.own_ports],
            )
            ended = await run(starting, seconds=BUILD_SECONDS, on_line=on_line, longest=MAX_LINE)
        except TIMEOUT_ERRORS:
            raise BuildError(f"the build did not end within {BUILD_SECONDS:g} s") from None
        if ended.status != 0:
            reason = reported.get("error")
            reason = reason or f"the build ended with status {ended.status}:\n{ended.output[-_OUTPUT:]}"
            raise BuildError("\n".join([reason, *log]))

    async def _inspect(self, archive: Path) -> Contents:
        with archive.open("rb") as file:
            return await self._inspector.inspect(file)

    async def _fetched(self, project: int, version: StoredVersion) -> Path:
        """Write the archive to a file, and check its hash."""
        digest = hashlib.sha256()
        handle, name = await asyncio.to_thread(tempfile.mkstemp, PART, None, self._cache)
        path = Path(name)
        with os.fdopen(handle, "wb") as file:
            async for piece in self._store.versions.archive(project, version.shown.deploy_id):
                digest.update(piece)
                file.write(piece)  # half a megabyte, into the page cache
        if digest.hexdigest() != version.shown.sha256:
            await asyncio.to_thread(path.unlink)
            raise BuildError("the stored archive is not what was uploaded. Deploy the version again")
        return path


def _key(project: int, version: StoredVersion) -> str:
    from importlib.metadata import PackageNotFoundError  # a megabyte of memory, with what it imports
    from importlib.metadata import version as version_of

    base = [*package_folders(), PACKAGE_ROOT]
    parts = [_LAYOUT, version.shown.sha256, version.shown.requirements, version.settings, sys.version, *base]
    with contextlib.suppress(PackageNotFoundError):  # run from its source
        parts.append(version_of("scrapy-ext"))
    return f"{project}-{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:24]}"


def _contents(version: StoredVersion) -> str:
    """Return a hash of all that an environment has of its version."""
    parts = [version.shown.sha256, version.shown.requirements, version.settings]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:24]


def _project_of(home: Path) -> int:
    return int(home.name.partition("-")[0])


def _script_names(folder: Path | None) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py")) if folder is not None else []
