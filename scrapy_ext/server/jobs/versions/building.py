"""Builds the environment of a version, in a process of its own: a specification comes by standard input, lines of
JSON go out (``{"progress": …}``, ``{"log": …}``, ``{"error": …}``).

The environment is a venv whose packages come before those of the server: Scrapy and the rest of the server's own are
the base, and what the project brings or pins lies on top. All of it is made beside its place and renamed when it is
whole. A file that is locked keeps others from building the same, and tells which is in use: every Python process of the
environment holds the second lock for as long as it lives.
"""

from __future__ import annotations

import configparser
import contextlib
import fcntl
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from scrapy_ext.api.platform.versions import settings_faults
from scrapy_ext.server.jobs.versions import archives
from scrapy_ext.server.jobs.versions.archives import ArchiveError
from scrapy_ext.server.jobs.versions.children import die_with_parent
from scrapy_ext.server.jobs.versions.inspection import bounded_memory

#: Parts of an environment.
READY: Final = "ready.json"
IN_USE: Final = "in-use"
PROJECT: Final = "project"
SCRIPTS: Final = "scripts"
VENV: Final = "venv"
#: Behind the name of an environment: that of its lock, and of what is not whole yet or not any more.
LOCK: Final = ".lock"
PART: Final = ".part"

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
    """What to build, where, and over which folders of packages. ``settings``: "" when the archive says it."""

    archive: str
    format: str
    filename: str
    settings: str
    requirements: str
    target: str
    base: list[str]


class Built(msgspec.Struct):
    """What stands in :data:`READY`."""

    settings: str
    scripts: list[str]


class BuildFailedError(Exception):
    """The message is for who deployed."""


def main() -> None:
    """Build what standard input says."""
    die_with_parent()
    specification = msgspec.json.decode(sys.stdin.buffer.read(), type=Specification)
    try:
        _build(specification)
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
            shutil.rmtree(left, ignore_errors=True)
        part.mkdir()
        built = _fill(part, wanted)
        (part / IN_USE).touch()
        (part / READY).write_bytes(msgspec.json.encode(built))
        part.rename(target)


def _fill(part: Path, wanted: Specification) -> Built:
    _say("progress", "making an environment")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(part / VENV)
    python = part / VENV / "bin" / "python"
    packages = next((part / VENV / "lib").glob("python*/site-packages"))
    base = "\n".join(f"import site; site.addsitedir({folder!r})" for folder in wanted.base)
    (packages / "zz_base.pth").write_text(base + "\n", "utf-8")
    (packages / "_environment_in_use.py").write_text(_HOLD, "utf-8")
    (packages / "aa_in_use.pth").write_text("import _environment_in_use\n", "utf-8")
    project, archive = part / PROJECT, Path(wanted.archive)
    to_install: list[str] = []
    if wanted.format in (archives.WHEEL, archives.SDIST):
        project.mkdir()
        named = part / wanted.filename
        os.link(archive, named)
        to_install.append(str(named))
    else:
        with bounded_memory():
            archives.unpack(archive, project)
        # Behind the packages of the environment and before the server's: a path in it, wherever it is moved to.
        hook = f"import os, sys; sys.path.append(os.path.join(os.path.dirname(sys.prefix), {PROJECT!r}))\n"
        (packages / "bb_project.pth").write_text(hook, "utf-8")
    requirements = "\n".join([wanted.requirements, *_requirements_of_egg(project)]).strip()
    if requirements:
        listed = part / "requirements.txt"
        listed.write_text(requirements + "\n", "utf-8")
        to_install = ["-r", str(listed), *to_install]
    if to_install:
        _say("progress", "installing packages")
        _install(python, to_install, part)
    for name in to_install[-1:]:
        if name.endswith(wanted.filename):
            Path(name).unlink()
    settings = _settings(project, packages, wanted)
    if faults := settings_faults(settings):
        raise BuildFailedError(str(faults[0]))
    (project / "scrapy.cfg").write_text(f"[settings]\ndefault = {settings}\n", "utf-8")
    return Built(settings, _scripts(part, packages, wanted.format))


def _install(python: Path, to_install: Sequence[str], folder: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--no-warn-script-location", "--progress-bar", "off", *to_install]
    with subprocess.Popen(  # noqa: S603 - the interpreter of the environment
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
    ) as pip:
        assert pip.stdout is not None  # noqa: S101 - it is a pipe
        for line in pip.stdout:
            _say("log", line.decode(errors="replace").rstrip()[:1000])
        status = pip.wait()
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


def _scripts(part: Path, packages: Path, kind: str) -> list[str]:
    """Copy the scripts of the project to one place; returns their names."""
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
    scripts = sorted(path for path in files if path.suffix == ".py" and path.is_file())
    if scripts:
        (part / SCRIPTS).mkdir()
    for path in scripts:
        shutil.copyfile(path, part / SCRIPTS / path.name)
    return sorted({path.name for path in scripts})


if __name__ == "__main__":
    main()
