"""Reading of project archives: their kinds, and their extraction with a limit for every size that they claim.

An archive is not trusted. Each header has a limit before it is read, inflated bytes are counted, and every path is
checked before a byte is written: one file per path, within the folder, no links, devices or sparse files. Nothing here
runs in the server: see ``inspection_process`` and ``building``.
"""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple, cast

from scrapy_ext.compatibility.python import Self
from scrapy_ext.server.jobs.versions.contents import EGG, FOLDER, SDIST, WHEEL, ArchiveError, Contents

#: Maximum bytes of address space of a process that reads an archive. The interpreter needs a quarter of it.
MAX_MEMORY: Final = 256 * 1024 * 1024
#: Maximum files of an archive, and bytes of them.
MAX_FILES: Final = 20_000
MAX_UNPACKED: Final = 512 * 1024 * 1024
#: Maximum bytes of one read: more than the directory of a zip file with that many files needs.
_MAX_PIECE: Final = 16 * 1024 * 1024
#: Maximum bytes of a header in a tar file (a long name, pax fields), and of all headers.
_MAX_HEADER: Final = 64 * 1024
_MAX_HEADERS: Final = 64 * 1024 * 1024
#: Maximum bytes of a path and of each of its parts, as in file systems.
_MAX_PATH: Final = 1024
_MAX_PART: Final = 255
_COPIED: Final = 256 * 1024
#: Maximum bytes of a file of metadata, which pip and the build read as a whole.
_MAX_METADATA: Final = 8 * 1024 * 1024
_METADATA: Final = re.compile(
    r"(.+\.(dist|egg)-info/|EGG-INFO/).*|([^/]+/)?(scrapy\.cfg|PKG-INFO|pyproject\.toml|setup\.cfg)"
)

_WHEEL_FILE: Final = re.compile(r"([^/]+-[^/]+)\.dist-info/WHEEL")
_PKG_INFO: Final = re.compile(r"[^/]+/PKG-INFO")
_TAG: Final = re.compile(r"^Tag: *([\w.]+)-([\w.]+)-([\w.]+) *$", re.MULTILINE)
_MAX_TEXT: Final = 64 * 1024
#: Bytes of an entry in a zip file before its name and data.
_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 1
_KINDS: Final = "a wheel, an egg, a source distribution (.tar.gz), or a folder with scrapy.cfg as .tar.gz"


class _Member(NamedTuple):
    path: str
    size: int
    #: None for a folder.
    entry: zipfile.ZipInfo | tarfile.TarInfo | None


def inspect(file: BinaryIO) -> Contents:
    """Read a whole archive, and return its kind; raise :class:`ArchiveError`."""
    with _translated_errors():
        whole = cast("BinaryIO", _Bounded(file))
        if zipfile.is_zipfile(whole):
            with zipfile.ZipFile(whole) as archive:
                return _zip_contents(archive)
        with _tar(whole) as tar:
            return _tar_contents(tar)


def unpack(path: Path, folder: Path) -> None:
    """Extract an archive into an empty folder; raise :class:`ArchiveError`."""
    folder.mkdir(exist_ok=True)
    with path.open("rb") as file, _translated_errors():
        whole = cast("BinaryIO", _Bounded(file))
        if zipfile.is_zipfile(whole):
            with zipfile.ZipFile(whole) as archive:
                for member in _checked(_zip_members(archive)):
                    if isinstance(member.entry, zipfile.ZipInfo):
                        with _new(folder / member.path).open("xb") as target:
                            _copy(archive, member.entry, target)
            return
        with _tar(whole) as tar:
            for member in _checked(_tar_members(tar)):
                if isinstance(member.entry, tarfile.TarInfo) and (source := tar.extractfile(member.entry)) is not None:
                    with source, _new(folder / member.path).open("xb") as target:
                        shutil.copyfileobj(source, target, _COPIED)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Bound the address space of this process in a block, where the system supports it."""
    try:
        import resource  # not on every platform

        before = resource.getrlimit(resource.RLIMIT_AS)
        most = MAX_MEMORY if before[1] == resource.RLIM_INFINITY else min(MAX_MEMORY, before[1])
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise ArchiveError(f"reading it takes over {MAX_MEMORY} bytes of memory. Build it again") from None
    except (
        *(zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, OSError, EOFError),
        *(ValueError, OverflowError, NotImplementedError, RuntimeError, IndexError, KeyError),
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a full disk, for example
            raise ArchiveError(f"it cannot be read or unpacked ({error.strerror})") from None
        raise ArchiveError(f"it is not {_KINDS}, or it is damaged ({str(error)[:200]})") from None


class _Bounded:
    """File with bounded reads, and at most ``limit`` bytes in all."""

    def __init__(self, file: Any, limit: int | None = None) -> None:
        self._file = file
        self._left = limit
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0 or size > _MAX_PIECE:
            size = _MAX_PIECE + 1
        data: bytes = self._file.read(size)
        if len(data) > _MAX_PIECE:
            raise ArchiveError(f"a part of it that is not a file is over {_MAX_PIECE} bytes. Build it again")
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise ArchiveError(f"it becomes over {MAX_UNPACKED} bytes. Leave out files that are not code")
        return data


class _Entry(tarfile.TarInfo):
    """Entry of a tar file, whose type and size are checked before its contents are read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        extends = entry.type in (
            *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
            *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
        )
        if entry.size < 0 or (extends and entry.size > _MAX_HEADER):
            raise ArchiveError(f"a header in it (type {chr(entry.type[0])!r}) is over {_MAX_HEADER} bytes")
        if not extends and not entry.isdir() and (not entry.isfile() or entry.type == tarfile.GNUTYPE_SPARSE):
            raise _no_file(entry.name)
        return entry


def _tar(packed: BinaryIO) -> tarfile.TarFile:
    packed.seek(0)
    inflated = _Bounded(gzip.GzipFile(fileobj=packed), MAX_UNPACKED + _MAX_HEADERS)
    # As a stream: read once, in order, independently of the headers.
    return tarfile.open(fileobj=cast("BinaryIO", inflated), mode="r|", tarinfo=_Entry)


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: BinaryIO | None = None) -> None:
    """Read an entry, and check its size against the directory."""
    read = 0
    with archive.open(entry) as source:
        while piece := source.read(_COPIED):
            read += len(piece)
            if target is not None:
                target.write(piece)
    if read != entry.file_size:
        raise ArchiveError(f"the size of {entry.filename[:100]!r} in it is wrong. Build it again")


def _new(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _zip_contents(archive: zipfile.ZipFile) -> Contents:
    members = list(_checked(_zip_members(archive)))
    for member in members:
        if isinstance(member.entry, zipfile.ZipInfo):
            _copy(archive, member.entry)
    names = {member.path for member in members}
    for name in sorted(names):
        if match := _WHEEL_FILE.fullmatch(name):
            return Contents(WHEEL, _wheel_filename(match[1], _text(archive, name)))
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


def _wheel_filename(name: str, text: str) -> str:
    tags = _TAG.findall(text)
    if not tags:
        raise ArchiveError("its file WHEEL has no tag. Build the wheel again")
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    filename = f"{name}-{tag}.whl"
    if len(filename.encode()) > _MAX_PART:
        raise ArchiveError(f"its name with its tags is over {_MAX_PART} bytes. Build the wheel again")
    return filename


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return file.read(_MAX_TEXT).decode(errors="replace")


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    entries, end = archive.infolist(), 0
    for entry in sorted(entries[: MAX_FILES + 1], key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise ArchiveError("files in it share their bytes. Build it again")
        end = entry.header_offset + _LOCAL_HEADER + entry.compress_size
    for entry in entries:
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _no_file(entry.filename)
        if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            rule = "is encrypted, or packed by another method than deflate"
            raise ArchiveError(f"{entry.filename[:100]!r} in it {rule}")
        yield _Member(entry.filename, entry.file_size, None if entry.is_dir() else entry)


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    for entry in tar:
        if entry.issparse():
            raise _no_file(entry.name)
        yield _Member(entry.name.removeprefix("./"), entry.size, entry if entry.isfile() else None)
        cast("Any", tar).members = []  # otherwise the pax fields of all entries stay in memory


def _no_file(path: str) -> ArchiveError:
    return ArchiveError(f"{path[:100]!r} in it is neither a file nor a folder")


def _checked(members: Iterable[_Member]) -> Iterator[_Member]:
    total = 0
    files, folders = set[PurePosixPath](), set[PurePosixPath]()
    for number, member in enumerate(members, 1):
        total += member.size
        if number > MAX_FILES:
            raise ArchiveError(f"it has over {MAX_FILES} files. Leave out files that are not code")
        if total > MAX_UNPACKED:
            raise ArchiveError(f"it becomes over {MAX_UNPACKED} bytes. Leave out files that are not code")
        path = _path(member.path)
        if member.size > _MAX_METADATA and _METADATA.fullmatch(str(path)):
            raise ArchiveError(f"{member.path[:100]!r} in it is over {_MAX_METADATA} bytes. Build it again")
        if member.entry is not None:
            if path in files or path in folders:
                raise ArchiveError(f"the path {member.path[:100]!r} is in it twice. Build it again")
            files.add(path)
        else:
            folders.add(path)
        folders.update(path.parents)
        if not files.isdisjoint([*path.parents, *([path] if member.entry is None else [])]):
            raise ArchiveError(f"the path {member.path[:100]!r} in it leads through a file. Build it again")
        yield member


def _path(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or "\\" in text or "\0" in text:
        raise ArchiveError(f"the path {text[:100]!r} in it leads out of its folder")
    lengths = [len(part.encode(errors="surrogateescape")) for part in path.parts]
    if sum(lengths) + len(lengths) > _MAX_PATH or max(lengths, default=0) > _MAX_PART:
        raise ArchiveError(f"the path {text[:100]!r} in it is over {_MAX_PATH} bytes, or a part over {_MAX_PART}")
    return path
