"""Archive of a project: its wheel if it can be built, else its folder; and its comparison with a deployed version.

A deploy notes the digest of the files that it has packed beside that of the archive, in the data directory of the
project: archives of one project differ, as the tools that build them write times into them.
"""

from __future__ import annotations

import configparser
import contextlib
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.versions import MAX_ARCHIVE, MAX_REQUIREMENTS, Version, settings_faults
from scrapy_ext.commands.deploy_targets import CFG, YML
from scrapy_ext.commands.subcommand import CommandError
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.session.project import project_data

#: Maximum bytes of a packed file; larger files are data.
MAX_FILE: Final = 5 * 1024 * 1024
_FOLDERS: Final = {
    *(".git", ".hg", ".svn", ".scrapy", ".tox", ".nox", ".eggs", ".idea", ".vscode", "node_modules"),
    *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "dist", "htmlcov"),
}
#: Files that are not code, or may contain keys.
_FILES: Final = re.compile(r".*\.(pyc|pyo|log|sqlite3?|db)|\.env(\..*)?|\.envrc|\.netrc|\.DS_Store|\.coverage.*")
_BUILD_SECONDS: Final = 300
_MAX_INCLUDES: Final = 10
#: File of the last deploy from a folder.
_NOTE: Final = "deployed.json"


class Packed(NamedTuple):
    """An archive, its settings module, and notes for the user."""

    path: Path
    settings: str
    notes: list[str]


def pack(folder: Path, into: Path) -> Packed:
    """Pack the project in ``folder``, which contains ``scrapy.cfg``; raises :class:`CommandError`."""
    settings = _settings(folder)
    copy, notes = into / "project", list[str]()
    large = _copy(folder, copy)
    if large:
        shown = ", ".join(f"{path} ({size / 1024**2:.0f} MB)" for path, size in large[:5])
        more = f" and {len(large) - 5} more" if len(large) > 5 else ""
        notes.append(
            f"files over {MAX_FILE // 1024**2} MB are left out: {shown}{more}. Keep data in a collection, or fetch it"
        )
    archive = None
    if is_built(folder):
        archive, why = _wheel(copy, into / "wheel", settings)
        if archive is None:
            notes.append(f"packed as a folder: {why}")
    if archive is None:
        archive = _folder(copy, into / "project.tar.gz", settings)
    size = archive.stat().st_size
    if size > MAX_ARCHIVE:
        limit = MAX_ARCHIVE // 1024**2
        raise CommandError(
            f"the packed project has {size / 1024**2:.0f} MB, and the limit is {limit} MB; remove data files"
        )
    return Packed(archive, settings, notes)


def requirements_of(folder: Path, name: str | None) -> str:
    """Return the text of a requirements file with the files that it includes; raises :class:`CommandError`.

    Without a name, the file is ``requirements.txt`` if it exists.
    """
    path = folder / (name or "requirements.txt")
    if name is None and not path.is_file():
        return ""
    text = "\n".join(_lines(path, folder, 0)) + "\n"
    if len(text.encode()) > MAX_REQUIREMENTS:
        raise CommandError(f"{path.name} is over {MAX_REQUIREMENTS} bytes; name fewer packages")
    return text


def _lines(path: Path, folder: Path, depth: int) -> Iterator[str]:
    if depth > _MAX_INCLUDES:
        raise CommandError(f"{path.name} includes itself; remove that line")
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the requirements file {path} cannot be read: {error}") from None
    for line in lines:
        words = line.split("#", 1)[0].strip()
        if match := re.fullmatch(r"(-r|--requirement)[ =]*(.+)", words):
            yield from _lines(path.parent / match[2].strip(), folder, depth + 1)
        elif re.match(r"(-e|--editable|-c|--constraint)\b|\.{0,2}/|file:|.+@ *file:", words) or words == ".":
            raise CommandError(f"{path.name}: {words!r} names files of this machine; name a package instead")
        else:
            yield line


def _settings(folder: Path) -> str:
    parser = configparser.RawConfigParser()
    try:
        parser.read(folder / CFG, "utf-8")
        found = parser.get("settings", "default", fallback="").strip()
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CommandError(f"{CFG} cannot be read: {error}") from None
    if not found:
        raise CommandError(f"{CFG} names no settings; write default = NAME.settings in its section [settings]")
    if faults := settings_faults(found):
        raise CommandError(f"{CFG}: {faults[0]}")
    return found


def files_digest(folder: Path) -> str:
    """Return a digest of the files of a project that are packed, and of its settings module."""
    digest = hashlib.sha256(_settings(folder).encode())
    for path in _code(folder):
        name = str(path.relative_to(folder))
        if name != CFG and path.stat().st_size <= MAX_FILE:
            digest.update(f"\0{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def _copy(folder: Path, copy: Path) -> list[tuple[str, int]]:
    """Copy the files of code, and return those that are too large."""
    large = []
    for path in _code(folder):
        name, size = path.relative_to(folder), path.stat().st_size
        if size > MAX_FILE:
            large.append((str(name), size))
        else:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)
    return large


def _code(folder: Path) -> Iterator[Path]:
    """Yield the files of code, in their order."""
    for place, names, files in os.walk(folder):
        here = Path(place)
        names[:] = sorted(
            name
            for name in names
            if name not in _FOLDERS
            and not name.endswith(".egg-info")
            and not (here / name / "pyvenv.cfg").exists()
            and not (here / name).is_symlink()
        )
        for name in sorted(files):
            path = here / name
            if not (_FILES.fullmatch(name) or name == YML or path.is_symlink()) and path.is_file():
                yield path


def is_built(folder: Path) -> bool:
    if (folder / "setup.py").is_file():
        return True
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return "build-system" in project or "project" in project


def _wheel(project: Path, into: Path, settings: str) -> tuple[Path | None, str]:
    """Return the wheel of a project, or the reason for its absence."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-input", "--disable-pip-version-check"]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [*command, "--wheel-dir", str(into), "."],
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"building its wheel took over {_BUILD_SECONDS} s"
    wheels = sorted(into.glob("*.whl")) if done.returncode == 0 else []
    if not wheels:
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        return None, f"pip built no wheel ({errors[-1][:200] if errors else 'without an error'})"
    module = settings.replace(".", "/")
    with zipfile.ZipFile(wheels[0]) as wheel:
        if not {f"{module}.py", f"{module}/__init__.py"} & set(wheel.namelist()):
            return None, f"its wheel does not have {settings}: check the list of packages of its build"
    return wheels[0], ""


def _folder(project: Path, path: Path, settings: str) -> Path:
    """Pack the folder as .tar.gz. Equal files give equal bytes, so that servers do not build them again."""
    (project / CFG).write_text(f"[settings]\ndefault = {settings}\n", "utf-8")  # Without targets and their keys.
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for each in sorted(project.rglob("*")):
            if each.is_file():
                data = each.read_bytes()
                entry = tarfile.TarInfo(str(each.relative_to(project)))
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
    return path


# ── comparison with a deployed version ──


class _Deployed(msgspec.Struct):
    """The last deploy from a folder: SHA-256 of the archive, and digest of the files."""

    sha256: str
    files: str


def note_deployed(folder: Path, version: Version) -> None:
    """Note that a version has the files of a folder; without effect where nothing can be written."""
    note = project_data(_NOTE)
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(msgspec.json.encode(_Deployed(version.sha256, files_digest(folder))))


def difference(folder: Path, version: Version) -> str:
    """Return how a version may differ from the project in a folder, in words; "" for the same code."""
    deployed = _noted()
    if deployed is not None and deployed.sha256 == version.sha256:
        with contextlib.suppress(CommandError, OSError):
            if deployed.files == files_digest(folder):
                return ""
        return "the files of this folder differ from it"
    if _packs_to(folder, version.sha256):
        return ""
    return "it was not deployed from this folder, whose files may differ"


def _noted() -> _Deployed | None:
    try:
        return msgspec.json.decode(project_data(_NOTE).read_bytes(), type=_Deployed)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _packs_to(folder: Path, sha256: str) -> bool:
    """Return true when the folder has an archive with this digest. Nothing is built for it."""
    if is_built(folder):
        return False
    try:
        with tempfile.TemporaryDirectory(prefix="compare-") as into:
            return hashlib.sha256(pack(folder, Path(into)).path.read_bytes()).hexdigest() == sha256
    except (CommandError, OSError):
        return False
