"""Archives of projects."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import tempfile
import zipfile
from pathlib import Path

from scrapy_ext.server.jobs.versions.archives import inspect, unpack
from scrapy_ext.server.jobs.versions.contents import ArchiveError
from tests.fuzz.target import target


def _zip(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return buffer.getvalue()


def _tar(files: dict[str, str], kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "target"
            entry.size = len(text) if kind == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


#: What reading an archive that was taken may end with: the process that does it ends as well.
_DAMAGED = (ArchiveError,)
_WHEEL = {"p-1.dist-info/WHEEL": "Tag: py3-none-any\n", "p/a.py": ""}


def _check(data: bytes) -> None:
    contents = inspect(io.BytesIO(data))
    assert contents.filename
    with tempfile.TemporaryDirectory(prefix="scrapy-ext-fuzz-") as folder:
        archive, target_folder = Path(folder, "archive"), Path(folder, "in", "target")
        archive.write_bytes(data)
        target_folder.parent.mkdir()
        with contextlib.suppress(*_DAMAGED):
            unpack(archive, target_folder)
        written = [path for path in Path(folder).rglob("*") if path.is_file() or path.is_symlink()]
        assert all(path == archive or path.is_relative_to(target_folder) for path in written)
        assert not any(path.is_symlink() for path in written)


@target(
    "archive-zip",
    [
        _zip({"scrapy.cfg": "[settings]", "p/__init__.py": ""}),
        _zip(_WHEEL),
        _zip({"EGG-INFO/PKG-INFO": "", "../out.py": "x"}),
        _zip({"scrapy.cfg": "", "a": "", "a/b": "", "scrapy.cfg/": ""}),
    ],
    refuses=_DAMAGED,
    calls=(60_000, 200),
)
def zips(data: bytes) -> None:
    """Nothing is written outside of the folder, and what cannot be used is refused as such."""
    _check(data)


@target(
    "archive-tar",
    [
        _tar({"scrapy.cfg": "[settings]"}),
        _tar({"p-1/PKG-INFO": "x", "p-1/" + "n" * 120: "y"}),
        _tar({"scrapy.cfg": "", "../out.py": "x"}),
        _tar({"scrapy.cfg": "", "link": ""}, tarfile.SYMTYPE),
        _tar({"scrapy.cfg": "", "scrapy.cfg/x": ""}),
    ],
    refuses=_DAMAGED,
    longest=6000,
    calls=(60_000, 200),
)
def tars(data: bytes) -> None:
    """The same; what is changed is the archive inside of the compression."""
    _check(gzip.compress(data, 1))
