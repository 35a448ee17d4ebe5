"""Archives of projects: what kinds there are, and taking them apart without trusting them.

Whatever an archive says of its sizes and paths is checked before a byte is written: how much it becomes, how many
files, and that none is outside of its folder, a link or a device.
"""

from __future__ import annotations

import re
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple

#: Files of one archive, and bytes that they become.
MAX_FILES: Final = 20_000
MAX_UNPACKED: Final = 512 * 1024 * 1024

WHEEL: Final = "wheel"
EGG: Final = "egg"
SDIST: Final = "sdist"
#: A folder with ``scrapy.cfg``, packed as it is.
FOLDER: Final = "folder"

_WHEEL_FILE: Final = re.compile(r"([^/]+-[^/]+)\.dist-info/WHEEL")
_PKG_INFO: Final = re.compile(r"[^/]+/PKG-INFO")
_TAG: Final = re.compile(r"^Tag: *([\w.]+)-([\w.]+)-([\w.]+) *$", re.MULTILINE)
_MAX_TEXT: Final = 64 * 1024
_KINDS: Final = "a wheel, an egg, a source distribution (.tar.gz), or a folder with scrapy.cfg as .tar.gz"


class ArchiveError(Exception):
    """The archive cannot be used; the message says why."""


class Contents(NamedTuple):
    """What an archive is, and the name that pip wants it to have."""

    format: str
    filename: str


class _Member(NamedTuple):
    path: str
    size: int
    #: None for a folder.
    entry: zipfile.ZipInfo | tarfile.TarInfo | None


def look(file: BinaryIO) -> Contents:
    """What the archive is; raises :class:`ArchiveError`."""
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                return _zip_contents(archive)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as tar:
            return _tar_contents(tar)
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise ArchiveError(f"it is not {_KINDS}, or it is damaged ({error})") from None


def unpack(path: Path, folder: Path) -> None:
    """Write the files of an archive that :func:`look` has taken into an empty folder; raises :class:`ArchiveError`."""
    folder.mkdir(exist_ok=True)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in _checked(_zip_members(archive)):
                if isinstance(member.entry, zipfile.ZipInfo):
                    with archive.open(member.entry) as source, _new(folder / member.path).open("xb") as target:
                        shutil.copyfileobj(source, target)
        return
    with tarfile.open(path, "r:gz") as tar:
        for member in _checked(_tar_members(tar)):
            if isinstance(member.entry, tarfile.TarInfo) and (file := tar.extractfile(member.entry)) is not None:
                with file, _new(folder / member.path).open("xb") as target:
                    shutil.copyfileobj(file, target)


def _new(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _zip_contents(archive: zipfile.ZipFile) -> Contents:
    names = {member.path for member in _checked(_zip_members(archive))}
    for name in sorted(names):
        if match := _WHEEL_FILE.fullmatch(name):
            return Contents(WHEEL, f"{match[1]}-{_wheel_tag(_text(archive, name))}.whl")
    if any(name.startswith("EGG-INFO/") for name in names):
        return Contents(EGG, "project.egg")
    if "scrapy.cfg" in names:
        return Contents(FOLDER, "project.zip")
    raise ArchiveError(f"it is not {_KINDS}: nothing in it says so")


def _tar_contents(tar: tarfile.TarFile) -> Contents:
    names = {member.path for member in _checked(_tar_members(tar))}
    if "scrapy.cfg" in names:
        return Contents(FOLDER, "project.tar.gz")
    if any(map(_PKG_INFO.fullmatch, names)):
        return Contents(SDIST, "project.tar.gz")
    raise ArchiveError(f"it is not {_KINDS}: nothing in it says so")


def _wheel_tag(text: str) -> str:
    tags = _TAG.findall(text)
    if not tags:
        raise ArchiveError("its file WHEEL has no tag. Build the wheel again")
    return "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return file.read(_MAX_TEXT).decode(errors="replace")


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for entry in archive.infolist():
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ArchiveError(f"{entry.filename[:100]!r} in it is neither a file nor a folder")
        yield _Member(entry.filename, entry.file_size, None if entry.is_dir() else entry)


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    for entry in tar:
        if not entry.isfile() and not entry.isdir():
            raise ArchiveError(f"{entry.name[:100]!r} in it is neither a file nor a folder")
        yield _Member(entry.name.removeprefix("./"), entry.size, entry if entry.isfile() else None)


def _checked(members: Iterable[_Member]) -> Iterator[_Member]:
    total = 0
    for number, member in enumerate(members, 1):
        total += member.size
        if number > MAX_FILES:
            raise ArchiveError(f"it has over {MAX_FILES} files. Leave out what is not code")
        if total > MAX_UNPACKED:
            raise ArchiveError(f"it becomes over {MAX_UNPACKED} bytes. Leave out what is not code")
        path = PurePosixPath(member.path)
        if path.is_absolute() or ".." in path.parts or "\\" in member.path or "\0" in member.path:
            raise ArchiveError(f"the path {member.path[:100]!r} in it leads out of its folder")
        yield member
