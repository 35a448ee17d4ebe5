"""The environment of a version: built once on this machine, kept for the jobs that run it.

An environment is named after what is in it (archive, requirements, settings, and the server's own packages), so that
the same is never built twice and nothing in it changes. The ones that were used last are kept; one that any process
runs in stays (``building``).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import SCRIPT
from scrapy_ext.api.platform.versions import LOCAL, SpiderInfo, VersionState
from scrapy_ext.jobprocess import file_trees
from scrapy_ext.jobprocess.child import Child, run
from scrapy_ext.jobprocess.confinement import Confinement, own_ports
from scrapy_ext.server.jobs.confining import ConfinementError, Confining, User, package_folders, paths_of_pip
from scrapy_ext.server.jobs.versions import archives
from scrapy_ext.server.jobs.versions.building import (
    IN_USE,
    LOCK,
    PART,
    PROJECT,
    READY,
    SCRIPTS,
    VENV,
    WORK,
    Specification,
    locked,
    pip_configurations,
)
from scrapy_ext.server.jobs.versions.inspection import Inspector
from scrapy_ext.server.jobs.versions.spiders import ReadingError, read_spiders
from scrapy_ext.server.jobs.versions.variables import bare_environment, job_environment, local_environment
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.versions.rows import StoredVersion

#: Environments that are kept.
KEPT: Final = 20
#: Seconds of one build, with the wait for another that builds the same.
BUILD_SECONDS: Final = 900.0
#: Seconds for which what was just prepared stays, although nothing runs in it yet.
_FRESH: Final = 300.0
#: Seconds after a build for the removal of what is not kept; the rest is for the next time.
_TRIM_SECONDS: Final = 60.0
#: Builds of this process at once.
_AT_ONCE: Final = 2
#: Seconds after which the folder of the server is read again for the sake of a spider that it did not have.
_LOCAL_AGE: Final = 2.0

#: The name of an archive whose name says nothing.
_ARCHIVE: Final = "archive"
#: Of the way in which environments are built; those of another are built anew.
_FORM: Final = "3"
#: Behind the name of the folder of environments: the one with pip's cache of each project. What one has had built is
#: nothing for another.
_PIP: Final = "-pip"

#: Told how far a build is, or a line that it says.
Report = Callable[[str], None]

logger = logging.getLogger(__name__)


class NoVersionError(Exception):
    """The project has no such version, or none at all."""


class BuildError(Exception):
    """The version cannot be built, or its spiders cannot be read; the message is for who deployed it."""


class Prepared(NamedTuple):
    """The environment that a job is run with: ``python -m …``, with the project in ``directory``.

    ``scripts``: the folder of its scripts, if any.
    """

    python: str
    directory: Path
    version: str
    scripts: Path | None

    @property
    def work(self) -> Path:
        """The folder that its processes run in: of a deployed version one beside the code, for they write to it."""
        return self.directory if self.version == LOCAL else self.directory.with_name(WORK)


class LocalProject(NamedTuple):
    """A Scrapy project in a folder of this machine."""

    project: int
    directory: Path


class Environments:
    """Environments in the folder ``cache``; ``local``: the project that the server was started in."""

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
        self._local_spiders: list[SpiderInfo] = []
        self._local_error: str | None = None
        self._local_read: float | None = None
        self._local_lock = asyncio.Lock()

    async def prepare(self, project: int, version: str | None) -> Prepared:
        """What a job of this version (None: the current one) runs in. Raises :class:`NoVersionError` and
        :class:`BuildError`."""
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
        """The environment of a version, built now if it is not there; raises :class:`BuildError`."""
        key = _key(project, version)
        home = await asyncio.to_thread(_used, self._cache / key)
        if home is None:
            task = self._builds.get(key)
            if task is None:
                task = self._builds[key] = asyncio.create_task(self._build(project, version, key, report))
                task.add_done_callback(lambda _: self._builds.pop(key, None))
            # Whoever waits may give up; the others go on.
            home = await asyncio.shield(task)
        scripts = home / SCRIPTS
        try:
            user = await self.confining.usable_user(project, [home / WORK])
            await asyncio.to_thread(_lend, home, user)
        except (OSError, ConfinementError) as error:
            raise BuildError(f"the environment cannot be used: {error}") from None
        return Prepared(
            str(home / VENV / "bin" / "python"),
            home / PROJECT,
            version.shown.version,
            scripts if await asyncio.to_thread(scripts.is_dir) else None,
        )

    async def confinement(self, prepared: Prepared, memory: int | None = None) -> Confinement | None:
        """The confinement of a process in what was prepared, with so many bytes of ``memory``; None for the operator's
        own project. Raises :class:`ConfinementError`."""
        if prepared.version == LOCAL:
            return None
        home = prepared.directory.parent
        return await self.confining.of(_project_of(home), [home], [prepared.work], memory)

    async def read(self, prepared: Prepared) -> list[SpiderInfo]:
        """The spiders and scripts of what was prepared; raises :class:`BuildError`."""
        local = prepared.version == LOCAL
        try:
            spiders = await read_spiders(
                prepared.python,
                prepared.work,
                local_environment() if local else job_environment(),
                confinement=await self.confinement(prepared),
            )
        except (ReadingError, ConfinementError) as error:
            raise BuildError(str(error)) from None
        # A script that lies beside scrapy.cfg runs, too; but what lies there is often none.
        folder = None if prepared.scripts == prepared.directory else prepared.scripts
        names = await asyncio.to_thread(_script_names, folder)
        return [*spiders, *(SpiderInfo(SCRIPT + name, custom=False) for name in names)]

    async def spiders(self, project: int, wanted: str | None = None) -> list[SpiderInfo]:
        """The spiders of the current version; of the server's own folder where nothing was deployed. That is read
        again when it does not have the one that is ``wanted``. Raises :class:`BuildError`."""
        if await self._store.versions.current(project) is not None:
            return await self._store.versions.spiders(project)
        if self._local is None or self._local.project != project:
            return []
        async with self._local_lock:
            age = None if self._local_read is None else time.monotonic() - self._local_read
            known = wanted is None or any(spider.name == wanted for spider in self._local_spiders)
            if age is None or (not known and age > _LOCAL_AGE):
                self._local_error = None
                try:
                    self._local_spiders = await self.read(self._prepared_local(project))
                except BuildError as error:
                    self._local_spiders, self._local_error = [], str(error)
                self._local_read = time.monotonic()
            if self._local_error is not None:
                raise BuildError(self._local_error)
            return self._local_spiders

    @property
    def has_read_local(self) -> bool:
        """Whether the spiders of the server's own folder are known without reading them."""
        return self._local_read is not None

    async def read_local(self) -> None:
        """Read the spiders of the server's own folder, so that they are known."""
        if self._local is not None:
            with contextlib.suppress(BuildError):
                await self.spiders(self._local.project)

    async def close(self) -> None:
        """End the builds that are under way."""
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
                contents = await self._look(archive)
                await self._run_build(project, self._specification(version, key, archive, contents), report)
            except archives.ArchiveError as error:
                raise BuildError(f"the archive cannot be used: {error}") from None
            finally:
                await asyncio.to_thread(archive.unlink, missing_ok=True)
            home = await asyncio.to_thread(_used, self._cache / key)
            if home is None:
                raise BuildError("the environment was removed while it was built")
            await self._tidy()
            return home

    async def _tidy(self) -> None:
        """Remove what is not kept. A build that is whole does not fail by it."""
        try:
            await asyncio.to_thread(_trim, self._cache, self._keep)
        except Exception:
            logger.exception(
                "Old environments in %s could not be removed. It will be tried again after the next build. If this "
                "stays, stop the server and remove the folder: environments are built again.",
                self._cache,
            )

    def _specification(
        self, version: StoredVersion, key: str, archive: Path, contents: archives.Contents
    ) -> Specification:
        return Specification(
            archive=str(archive),
            format=contents.format,
            filename=contents.filename or _ARCHIVE,
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
            wanted, pip=str(pip), confinement=confinement._asdict(), own_ports=own_ports.descriptor()
        )
        told: dict[str, str] = {}
        log: list[str] = []

        def on_line(line: str) -> None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                said = msgspec.json.decode(line, type=dict[str, str])
                told.update(said)
                log.extend(said.get("log", "").splitlines())
                del log[:-50]
                for text in said.values():
                    report(text)

        try:
            starting = Child.start(
                [sys.executable, "-c", _CHILD],
                folder=self._cache,
                environment=environment,
                given=msgspec.json.encode(wanted),
                descriptors=[] if wanted.own_ports is None else [wanted.own_ports],
            )
            ended = await run(starting, seconds=BUILD_SECONDS, on_line=on_line)
        except TimeoutError:
            raise BuildError(f"the build did not end within {BUILD_SECONDS:g} s") from None
        if ended.status != 0:
            reason = told.get("error") or f"the build ended with status {ended.status}:\n{ended.output}"
            raise BuildError("\n".join([reason, *log]))

    async def _look(self, archive: Path) -> archives.Contents:
        with archive.open("rb") as file:
            return await self._inspector.inspect(file)

    async def _fetched(self, project: int, version: StoredVersion) -> Path:
        """The archive as a file, with the content that was uploaded."""
        digest = hashlib.sha256()
        handle, name = await asyncio.to_thread(tempfile.mkstemp, PART, None, self._cache)
        path = Path(name)
        with os.fdopen(handle, "wb") as file:
            async for piece in self._store.versions.archive(project, version.shown.deploy_id):
                digest.update(piece)
                file.write(piece)  # half a megabyte into the system's memory
        if digest.hexdigest() != version.shown.sha256:
            await asyncio.to_thread(path.unlink)
            raise BuildError("the stored archive is not what was uploaded. Deploy the version again")
        return path


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[4])


_CHILD: Final = (
    f"import sys; sys.path.insert(0, {_package_root()!r}); "
    "from scrapy_ext.server.jobs.versions.building import main; main()"
)


def _key(project: int, version: StoredVersion) -> str:
    base = [*package_folders(), _package_root()]
    parts = [_FORM, version.shown.sha256, version.shown.requirements, version.settings, sys.version, *base]
    with contextlib.suppress(PackageNotFoundError):  # run from its source
        parts.append(version_of("scrapy-ext"))
    return f"{project}-{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:24]}"


def _project_of(home: Path) -> int:
    return int(home.name.partition("-")[0])


def _used(home: Path) -> Path | None:
    """The environment if it is whole, which is noted as used now."""
    try:
        os.utime(home / READY)
    except OSError:
        return None
    return home


def _lend(home: Path, user: User | None) -> None:
    """Let the processes of a project read its environment, and write its working folder; no other project's do."""
    if os.geteuid() != 0:
        return
    owner, group = (0, 0) if user is None else user
    os.chown(home, 0, group)
    home.chmod(0o750)
    if (home / WORK).stat().st_uid != owner:
        for folder, name in file_trees.walk(home / WORK):
            os.chown(name, owner, group, dir_fd=folder, follow_symlinks=False)
        os.chown(home / WORK, owner, group)


def _script_names(folder: Path | None) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py")) if folder is not None else []


def _trim(cache: Path, keep: int) -> None:
    """Remove the environments that were not used for longest, and what is there of others that are not whole. What
    cannot be removed is logged, and tried again the next time."""
    now, deadline = time.time(), time.monotonic() + _TRIM_SECONDS
    folders = [path for path in cache.iterdir() if path.is_dir()]
    used: dict[Path, float] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            if not folder.name.endswith(PART):
                used[folder] = (folder / READY).stat().st_mtime
    last_used = sorted(used, key=lambda home: used[home])
    old = [home for home in last_used[: max(len(used) - keep, 0)] if now - used[home] > _FRESH]
    for folder in (*old, *(folder for folder in folders if folder not in used)):
        _remove(folder, deadline)
    for path in cache.glob(f"*{PART}"):  # archives
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > 2 * BUILD_SECONDS:
                path.unlink()


def _remove(folder: Path, deadline: float) -> None:
    """Remove an environment, or a part of one, unless somebody builds it or runs in it."""
    lock = folder.with_name(folder.name.removesuffix(PART) + LOCK)
    try:
        with locked(lock, wait=False), contextlib.ExitStack() as held:
            with contextlib.suppress(FileNotFoundError):
                running = held.enter_context((folder / IN_USE).open("rb"))
                fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / READY).unlink(missing_ok=True)  # from here on nobody takes it for whole
            file_trees.remove(folder, deadline)
            lock.unlink()
    except BlockingIOError:
        return
    except OSError as error:
        logger.warning(
            "The folder %s, which no job needs any more, could not be removed: %s. It will be tried again after the "
            "next build. If this stays, remove the folder.",
            *(folder, error),
        )
