"""Build of a version's environment in two processes, which read a :class:`Specification` from standard input and write
lines of JSON: ``{"progress": …}``, ``{"log": …}``, ``{"error": …}``.

The first process creates the folder, and takes ownership of its contents once they are complete. It runs no code of the
project and trusts nothing that the second process writes. The second is confined: it unpacks and installs, which runs
code of the project, and can write only below the parts of the folder.

The environment is a venv whose packages precede those of the server: Scrapy and the server's other packages are the
base, and the project's packages and pins override them. It is built beside its place and renamed when complete. A file
lock prevents concurrent builds of the same environment. A second lock shows its use: every Python process of the
environment holds it.
"""

from __future__ import annotations

import asyncio
import configparser
import contextlib
import fcntl
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scrapy_ext.api.platform.versions import settings_faults
from scrapy_ext.jobprocess import file_trees
from scrapy_ext.jobprocess.child import Child, Supervision, die_with_parent, run
from scrapy_ext.jobprocess.confinement import Confinement
from scrapy_ext.server.jobs.versions.contents import SDIST, WHEEL, ArchiveError
from scrapy_ext.server.jobs.versions.inspection import PACKAGE_ROOT, program

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: Parts of an environment.
READY: Final = "ready.json"
IN_USE: Final = "in-use"
PROJECT: Final = "project"
SCRIPTS: Final = "scripts"
VENV: Final = "venv"
WORK: Final = "work"
#: A folder with a link to this package alone. Other files beside the package, as in a clone, are not for deployed code.
BASE: Final = "base"
#: Suffixes of an environment's name: of its lock, and of its folder while it is incomplete.
LOCK: Final = ".lock"
PART: Final = ".part"

_PIP_CONFIGURATION: Final = "pip.conf"
#: Of the machine; git fails when it cannot read it.
_GIT_CONFIGURATION: Final = "/etc/gitconfig"
#: Maximum characters of a line of JSON: far more than those of a line of the build's output in it.
MAX_LINE: Final = 64 * 1024

#: Code that each Python process of an environment runs first.
_HOLD: Final = f"""\
import fcntl, os, sys
try:
    _held = os.open(os.path.join(os.path.dirname(sys.prefix), {IN_USE!r}), os.O_RDONLY)
    fcntl.flock(_held, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass
"""


class Specification(msgspec.Struct):
    archive: str
    format: str
    filename: str
    #: The settings module; "": the one that the archive names.
    settings: str
    requirements: str
    target: str
    #: Folders of the server's packages.
    base: list[str]
    #: Folder of pip's cache.
    pip: str = ""
    #: Of the second process.
    confinement: dict[str, Any] = {}
    own_ports: int | None = None


class Built(msgspec.Struct):
    """Contents of :data:`READY`."""

    settings: str


class _Found(msgspec.Struct, forbid_unknown_fields=True):
    """The settings module, as the second process reports it."""

    settings: str


class BuildFailedError(Exception):
    """The build failed; the message is shown to the user who deployed the version."""


def main() -> None:
    """Run the first process."""
    die_with_parent()
    _run(_build)


def fill() -> None:
    """Run the second process."""
    _run(_fill)


def _run(work: Callable[[Specification], None]) -> None:
    specification = msgspec.json.decode(sys.stdin.buffer.read(), type=Specification)
    os.umask(0o022)
    try:
        work(specification)
    except (BuildFailedError, ArchiveError) as error:
        _say("error", str(error))
        sys.exit(1)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of an environment, whose holder may remove the file.

    Without ``wait``, raises ``BlockingIOError`` when another process holds it.
    """
    while True:
        with path.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise
                _say("progress", "waiting for another build of this version")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if _inode(path) == os.fstat(lock.fileno()).st_ino:  # otherwise it was removed, and is not the lock
                yield
                return


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _say(kind: str, text: str) -> None:
    print(json.dumps({kind: text}), flush=True)  # noqa: T201 - the parent reads it


def _build(wanted: Specification) -> None:
    target = Path(wanted.target)
    with locked(target.with_name(target.name + LOCK)):
        if (target / READY).exists():
            return
        part = target.with_name(target.name + PART)
        for leftover in (part, target):  # of a killed build
            _remove(leftover)
        _create(part, wanted)
        settings = _filled(part, wanted)
        _take_over(part, wanted)
        (part / IN_USE).touch()
        (part / READY).write_bytes(msgspec.json.encode(Built(settings)))
        part.rename(target)


def _remove(leftover: Path) -> None:
    try:
        file_trees.remove(leftover)
    except OSError as error:
        raise BuildFailedError(
            f"files of an earlier build could not be removed: {error}. Remove the folder {leftover} on the server"
        ) from None


def _create(part: Path, wanted: Specification) -> None:
    """Create the folder, which the server owns, and its parts, which the project's user owns."""
    user, group = wanted.confinement["user"], wanted.confinement["group"]
    part.mkdir(mode=0o700)
    pip = Path(wanted.pip)
    pip.mkdir(parents=True, exist_ok=True)
    for folder in (part / VENV, part / PROJECT, part / SCRIPTS, part / WORK, pip):
        folder.mkdir(exist_ok=True)
        if user is not None:
            os.chown(folder, user, group)
    pip.chmod(0o700)
    (part / BASE).mkdir()
    (part / BASE / "scrapy_ext").symlink_to(Path(PACKAGE_ROOT, "scrapy_ext"))
    shutil.copyfile(wanted.archive, part / wanted.filename)
    configuration = _pip_configuration()
    if configuration is not None:
        shutil.copyfile(configuration, part / _PIP_CONFIGURATION)
    for path in (part, *_inputs(part, wanted)):
        if user is not None:
            os.chown(path, -1, group)
            path.chmod(0o750)


def _inputs(part: Path, wanted: Specification) -> list[Path]:
    """Return the copies that only the build reads: of the archive, and of pip's configuration of the server's user."""
    return [path for path in (part / wanted.filename, part / _PIP_CONFIGURATION) if path.exists()]


def pip_configurations() -> list[Path]:
    """Return pip's existing configuration files, of the server's user and of the machine."""
    own = _pip_configuration()
    shared = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), Path(sys.prefix, "pip.conf")]
    return [path for path in (own, *shared) if path is not None and path.is_file()]


def _pip_configuration() -> Path | None:
    named = os.environ.get("PIP_CONFIG_FILE")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    known = [Path(named)] if named else [folder / "pip" / "pip.conf", Path("~/.pip/pip.conf").expanduser()]
    return next((path for path in known if path.is_file()), None)


def _filled(part: Path, wanted: Specification) -> str:
    """Run the second process; return the settings module that it reports."""
    environment = {**os.environ, "PIP_CACHE_DIR": wanted.pip, "GIT_TERMINAL_PROMPT": "0"}
    # The process cannot read it; pip's file of it is copied, and git fails if it finds a folder that it cannot read.
    environment.pop("XDG_CONFIG_HOME", None)
    if (part / _PIP_CONFIGURATION).exists():
        environment["PIP_CONFIG_FILE"] = str(part / _PIP_CONFIGURATION)
    settings = ""

    def on_line(line: str) -> None:
        nonlocal settings
        try:
            settings = msgspec.json.decode(line, type=_Found).settings
        except msgspec.DecodeError:
            print(line, flush=True)  # noqa: T201 - the parent reads it

    starting = Child.start(
        [sys.executable, "-c", program("building", "fill", str(part / BASE))],
        folder=part,
        environment=environment,
        given=msgspec.json.encode(wanted),
        supervision=Supervision(Confinement.of(wanted.confinement), wanted.own_ports),
    )
    status = asyncio.run(run(starting, on_line=on_line, longest=MAX_LINE)).status
    if status != 0 or settings_faults(settings):
        sys.exit(status or 1)
    return settings


def _take_over(part: Path, wanted: Specification) -> None:
    """Give the built files to the server's user, so that no job changes code that others run."""
    for path in _inputs(part, wanted):
        path.unlink()
    if not any((part / SCRIPTS).iterdir()):
        (part / SCRIPTS).rmdir()
    for name in sorted(os.listdir(part / PROJECT)):  # jobs find the project's files in their working folder
        (part / WORK / name).symlink_to(Path("..", PROJECT, name))
    user = wanted.confinement["user"]
    if user is None:
        return
    work = (part / WORK).stat()
    for folder, name in file_trees.walk(part):
        status = os.lstat(name, dir_fd=folder)
        if status.st_uid != user or os.path.samestat(status, work):
            continue
        os.chown(name, 0, 0, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            # Readable by all: other projects' users cannot enter the folder above.
            mode = (status.st_mode & 0o755) | (0o555 if status.st_mode & 0o100 else 0o444)
            file_trees.change_mode(folder, name, mode)


def _fill(wanted: Specification) -> None:
    import compileall  # the process of the server, which has this module, needs neither
    import venv

    part = Path(wanted.target + PART)
    _say("progress", "making an environment")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(part / VENV)
    python = part / VENV / "bin" / "python"
    packages = next((part / VENV / "lib").glob("python*/site-packages"))
    base = [f"import site; site.addsitedir({folder!r})" for folder in wanted.base]
    # Relative to the environment, which is not in its final place yet.
    base.append(f"import os, site, sys; site.addsitedir(os.path.join(os.path.dirname(sys.prefix), {BASE!r}))")
    (packages / "zz_base.pth").write_text("".join(f"{line}\n" for line in base), "utf-8")
    (packages / "_environment_in_use.py").write_text(_HOLD, "utf-8")
    (packages / "aa_in_use.pth").write_text("import _environment_in_use\n", "utf-8")
    project, archive = part / PROJECT, part / wanted.filename
    to_install: list[str] = []
    if wanted.format in (WHEEL, SDIST):
        to_install.append(str(archive))
    else:
        from scrapy_ext.server.jobs.versions import archives  # not in the server, which reads no archive

        with archives.bounded_memory():
            archives.unpack(archive, project)
        # After the packages of the environment and before the server's, relative to the environment.
        hook = f"import os, sys; sys.path.append(os.path.join(os.path.dirname(sys.prefix), {PROJECT!r}))\n"
        (packages / "bb_project.pth").write_text(hook, "utf-8")
    requirements = "\n".join([wanted.requirements, *_requirements_of_egg(project)]).strip()
    if requirements:
        listed = Path(tempfile.gettempdir(), "requirements.txt")
        listed.write_text(requirements + "\n", "utf-8")
        to_install = ["-r", str(listed), *to_install]
    if to_install:
        _say("progress", "installing packages")
        _install(python, to_install, part)
    settings = _settings(project, packages, wanted)
    if faults := settings_faults(settings):
        raise BuildFailedError(str(faults[0]))
    (project / "scrapy.cfg").write_text(f"[settings]\ndefault = {settings}\n", "utf-8")
    _copy_scripts(part, packages, wanted.format)
    compileall.compile_dir(project, quiet=2)  # its jobs cannot write here
    print(json.dumps({"settings": settings}), flush=True)  # noqa: T201 - the first process reads it


def _install(python: Path, to_install: Sequence[str], folder: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--no-warn-script-location", "--progress-bar", "off", *to_install]
    environment = {**os.environ, **({} if _is_readable(_GIT_CONFIGURATION) else {"GIT_CONFIG_NOSYSTEM": "1"})}
    starting = Child.start(command, folder=folder, environment=environment, given=b"", dies_with_parent=True)
    status = asyncio.run(run(starting, on_line=lambda line: _say("log", line))).status
    if status == 0:
        return
    raise BuildFailedError(f"pip could not install the project and its requirements (exit status {status})")


def _is_readable(path: str) -> bool:
    """Return true for a file that can be opened, and for one that does not exist."""
    try:
        with open(path, "rb"):
            return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _requirements_of_egg(project: Path) -> list[str]:
    """Return the requirements of an egg: the lines before the first section of extras."""
    with contextlib.suppress(OSError):
        text = (project / "EGG-INFO" / "requires.txt").read_text("utf-8", errors="replace")
        return text.partition("[")[0].splitlines()
    return []


def _settings(project: Path, packages: Path, wanted: Specification) -> str:
    """Return the settings module: of ``scrapy.cfg``, of the entry point ``settings`` in the group ``scrapy``, of the
    upload, or of the only package with a module ``settings``."""
    candidates = _of_file(project / "scrapy.cfg", "settings", "default")
    candidates += _of_file(project / "EGG-INFO" / "entry_points.txt", "scrapy", "settings")
    candidates += [
        entry.value
        for distribution in _distributions(packages)
        for entry in distribution.entry_points
        if (entry.group, entry.name) == ("scrapy", "settings")
    ]
    candidates += [wanted.settings] if wanted.settings else []
    if candidates:
        return candidates[0]
    found = sorted(path.parent.name for folder in (project, packages) for path in folder.glob("*/settings.py"))
    if len(found) == 1:
        return f"{found[0]}.settings"
    raise BuildFailedError(
        "the archive does not name the settings of the project. Add a scrapy.cfg, or the entry point "
        "settings = NAME.settings to the group scrapy"
    )


def _distributions(packages: Path) -> Iterable[Distribution]:
    from importlib.metadata import distributions  # not in the server, which builds in other processes

    return distributions(path=[str(packages)])


def _of_file(path: Path, section: str, name: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):
        parser.read(path, "utf-8")
        value = parser.get(section, name, fallback="").strip()
        return [value] if value else []
    return []


def _copy_scripts(part: Path, packages: Path, kind: str) -> None:
    """Copy the scripts of the project to one folder."""
    if kind in (WHEEL, SDIST):
        files = [
            Path(str(file.locate()))
            for distribution in _distributions(packages)
            for file in distribution.files or ()
            if file.parent.name == "bin"
        ]
    else:
        own = part / PROJECT
        files = [path for name in ("EGG-INFO/scripts", SCRIPTS) for path in sorted((own / name).glob("*.py"))]
    for path in sorted(files):
        if path.suffix == ".py" and path.is_file():
            shutil.copyfile(path, part / SCRIPTS / path.name)


if __name__ == "__main__":
    main()
