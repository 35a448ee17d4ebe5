"""Builds the environment of a version, in processes of their own: a specification comes by standard input, lines of
JSON go out (``{"progress": …}``, ``{"log": …}``, ``{"error": …}``).

There are two of them. The first makes the folder, and takes over what is in it when it is whole; it runs no code of the
project and believes nothing that the second says. The second is confined: it unpacks and installs, which runs what the
project brings, and can write below the folder's parts alone.

The environment is a venv whose packages come before those of the server: Scrapy and the rest of the server's own are
the base, and what the project brings or pins lies on top. All of it is made beside its place and renamed when it is
whole. A file that is locked keeps others from building the same, and tells which is in use: every Python process of the
environment holds the second lock for as long as it lives.
"""

from __future__ import annotations

import asyncio
import compileall
import configparser
import contextlib
import fcntl
import importlib.metadata
import json
import os
import shutil
import stat
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.versions import settings_faults
from scrapy_ext.jobprocess import file_trees
from scrapy_ext.jobprocess.child import Child, Supervision, die_with_parent, run
from scrapy_ext.jobprocess.confinement import Confinement
from scrapy_ext.server.jobs.versions import archives
from scrapy_ext.server.jobs.versions.archives import ArchiveError
from scrapy_ext.server.jobs.versions.inspection import bounded_memory

#: Parts of an environment.
READY: Final = "ready.json"
IN_USE: Final = "in-use"
PROJECT: Final = "project"
SCRIPTS: Final = "scripts"
VENV: Final = "venv"
WORK: Final = "work"
#: A folder with nothing but a link to this package. Python looks for a package in the names of its folder, and those
#: in the package's own, such as those of a clone, are not for deployed code.
BASE: Final = "base"
#: Behind the name of an environment: that of its lock, and of what is not whole yet or not any more.
LOCK: Final = ".lock"
PART: Final = ".part"

_PIP_CONFIGURATION: Final = "pip.conf"
_LONGEST_LINE: Final = 64 * 1024
_ROOT: Final = str(Path(__file__).resolve().parents[4])
_FILL: Final = "import sys; sys.path.insert(0, {!r}); from scrapy_ext.server.jobs.versions.building import fill; fill()"

#: What each Python process of an environment runs first.
_HOLD: Final = f"""\
import fcntl, os, sys
try:
    _held = os.open(os.path.join(os.path.dirname(sys.prefix), {IN_USE!r}), os.O_RDONLY)
    fcntl.flock(_held, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass
"""


class Specification(msgspec.Struct):
    """The order to build an environment: of what, where, and over which folders of packages.

    ``settings``: "" when the archive says it. ``pip``: the folder of pip's cache; ``confinement`` and ``own_ports``: of
    the second process.
    """

    archive: str
    format: str
    filename: str
    settings: str
    requirements: str
    target: str
    base: list[str]
    pip: str = ""
    confinement: dict[str, Any] = {}
    own_ports: int | None = None


class Built(msgspec.Struct):
    """What stands in :data:`READY`."""

    settings: str


class _Found(msgspec.Struct, forbid_unknown_fields=True):
    """The settings module that the second process has found."""

    settings: str


class BuildFailedError(Exception):
    """The message is for who deployed."""


def main() -> None:
    """Build what standard input says: the first process."""
    die_with_parent()
    _run(_build)


def fill() -> None:
    """Fill the folder that standard input says: the second process."""
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
    """Hold the lock of an environment; whoever holds it may remove the file. Raises ``BlockingIOError`` when another
    has it and this is not to wait."""
    while True:
        with path.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise
                _say("progress", "waiting for another build of this version")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if _inode(path) == os.fstat(lock.fileno()).st_ino:  # else it was removed, and others lock another
                yield
                return


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _say(kind: str, text: str) -> None:
    print(json.dumps({kind: text}), flush=True)  # noqa: T201 - the parent listens


def _build(wanted: Specification) -> None:
    target = Path(wanted.target)
    with locked(target.with_name(target.name + LOCK)):
        if (target / READY).exists():
            return
        part = target.with_name(target.name + PART)
        for left in (part, target):  # of a build that was killed
            _remove(left)
        _make(part, wanted)
        settings = _filled(part, wanted)
        _take_over(part, wanted)
        (part / IN_USE).touch()
        (part / READY).write_bytes(msgspec.json.encode(Built(settings)))
        part.rename(target)


def _remove(left: Path) -> None:
    try:
        file_trees.remove(left)
    except OSError as error:
        raise BuildFailedError(
            f"what an earlier build has left could not be removed: {error}. Remove the folder {left} on the server"
        ) from None


def _make(part: Path, wanted: Specification) -> None:
    """Make the folder: its parts are the user's who fills them, and it is nobody's who is not trusted."""
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
    (part / BASE / "scrapy_ext").symlink_to(Path(_ROOT, "scrapy_ext"))
    shutil.copyfile(wanted.archive, part / wanted.filename)
    configuration = _pip_configuration()
    if configuration is not None:
        shutil.copyfile(configuration, part / _PIP_CONFIGURATION)
    for path in (part, *_lent(part, wanted)):
        if user is not None:
            os.chown(path, -1, group)
            path.chmod(0o750)


def _lent(part: Path, wanted: Specification) -> list[Path]:
    """Copies of what is read for the build and of no use afterwards: the archive, and the configuration of pip that is
    the server's user's own."""
    return [path for path in (part / wanted.filename, part / _PIP_CONFIGURATION) if path.exists()]


def pip_configurations() -> list[Path]:
    """The configuration files of pip that there are: of the server's user, if any the first, and of the machine."""
    own = _pip_configuration()
    shared = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), Path(sys.prefix, "pip.conf")]
    return [path for path in (own, *shared) if path is not None and path.is_file()]


def _pip_configuration() -> Path | None:
    named = os.environ.get("PIP_CONFIG_FILE")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    known = [Path(named)] if named else [folder / "pip" / "pip.conf", Path("~/.pip/pip.conf").expanduser()]
    return next((path for path in known if path.is_file()), None)


def _filled(part: Path, wanted: Specification) -> str:
    """Run the second process; returns the settings module that it has found."""
    environment = {**os.environ, "PIP_CACHE_DIR": wanted.pip}
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
        [sys.executable, "-P", "-c", _FILL.format(str(part / BASE))],
        folder=part,
        environment=environment,
        given=msgspec.json.encode(wanted),
        supervision=Supervision(Confinement.of(wanted.confinement), wanted.own_ports),
    )
    status = asyncio.run(run(starting, on_line=on_line, longest=_LONGEST_LINE)).status
    if status != 0 or settings_faults(settings):
        sys.exit(status or 1)
    return settings


def _take_over(part: Path, wanted: Specification) -> None:
    """Make what was filled the server's own, so that no job changes the code that others run."""
    for lent in _lent(part, wanted):
        lent.unlink()
    if not any((part / SCRIPTS).iterdir()):
        (part / SCRIPTS).rmdir()
    for name in sorted(os.listdir(part / PROJECT)):  # what the project brings is found where its jobs run
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
            # Read by the project's user; those of others do not pass the folder.
            mode = (status.st_mode & 0o755) | (0o555 if status.st_mode & 0o100 else 0o444)
            file_trees.change_mode(folder, name, mode)


def _fill(wanted: Specification) -> None:
    part = Path(wanted.target + PART)
    _say("progress", "making an environment")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(part / VENV)
    python = part / VENV / "bin" / "python"
    packages = next((part / VENV / "lib").glob("python*/site-packages"))
    base = [f"import site; site.addsitedir({folder!r})" for folder in wanted.base]
    # By the folder that the environment is in: it is not in its place yet.
    base.append(f"import os, site, sys; site.addsitedir(os.path.join(os.path.dirname(sys.prefix), {BASE!r}))")
    (packages / "zz_base.pth").write_text("".join(f"{line}\n" for line in base), "utf-8")
    (packages / "_environment_in_use.py").write_text(_HOLD, "utf-8")
    (packages / "aa_in_use.pth").write_text("import _environment_in_use\n", "utf-8")
    project, archive = part / PROJECT, part / wanted.filename
    to_install: list[str] = []
    if wanted.format in (archives.WHEEL, archives.SDIST):
        to_install.append(str(archive))
    else:
        with bounded_memory():
            archives.unpack(archive, project)
        # Behind the packages of the environment and before the server's: a path in it, wherever it is moved to.
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
    compileall.compile_dir(project, quiet=2)  # those who run it cannot write here
    print(json.dumps({"settings": settings}), flush=True)  # noqa: T201 - the first process listens


def _install(python: Path, to_install: Sequence[str], folder: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--no-warn-script-location", "--progress-bar", "off", *to_install]
    starting = Child.start(command, folder=folder, environment=os.environ, given=b"", dies_with_parent=True)
    status = asyncio.run(run(starting, on_line=lambda line: _say("log", line))).status
    if status == 0:
        return
    raise BuildFailedError(f"pip could not install the project and its requirements (exit status {status})")


def _requirements_of_egg(project: Path) -> list[str]:
    """What an egg needs by itself: the lines before the first section, which is for extras."""
    with contextlib.suppress(OSError):
        text = (project / "EGG-INFO" / "requires.txt").read_text("utf-8", errors="replace")
        return text.partition("[")[0].splitlines()
    return []


def _settings(project: Path, packages: Path, wanted: Specification) -> str:
    """The settings module: that of ``scrapy.cfg``, of the entry point ``settings`` in the group ``scrapy``, the one
    that was sent, or the only package with a module of this name."""
    candidates = _of_file(project / "scrapy.cfg", "settings", "default")
    candidates += _of_file(project / "EGG-INFO" / "entry_points.txt", "scrapy", "settings")
    candidates += [
        entry.value
        for distribution in importlib.metadata.distributions(path=[str(packages)])
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
        "the archive does not say which settings are the project's. Give it a scrapy.cfg, or add the entry point "
        "settings = NAME.settings to the group scrapy"
    )


def _of_file(path: Path, section: str, name: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):
        parser.read(path, "utf-8")
        value = parser.get(section, name, fallback="").strip()
        return [value] if value else []
    return []


def _copy_scripts(part: Path, packages: Path, kind: str) -> None:
    """Copy the scripts of the project to one place."""
    if kind in (archives.WHEEL, archives.SDIST):
        files = [
            Path(str(file.locate()))
            for distribution in importlib.metadata.distributions(path=[str(packages)])
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
