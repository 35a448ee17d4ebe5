"""Checks of this machine: data folder, disk, open files, shared memory, time zones."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scrapy_ext.commands.doctor.checking import Check, Finding, in_thread, ok, problem, warning
from scrapy_ext.jobprocess.proc import SHARED_MEMORY

_GIB: Final = 2**30
#: Free bytes below which a disk is doubtful, and below which writes soon fail.
_LITTLE: Final = 2 * _GIB
_TOO_LITTLE: Final = _GIB // 4
#: Free inodes, likewise.
_FEW_INODES: Final = 10_000
#: Open files that a server with some hundred clients and a browser needs.
_FILES: Final = 4096
#: Bytes of shared memory that Chromium needs for large pages; containers have 64 MiB.
_SHARED_MEMORY: Final = 256 * 2**20
_SHM: Final = Path(SHARED_MEMORY)
_MOUNTS: Final = Path("/proc/self/mountinfo")
#: Types of file systems of other machines, whose locks SQLite does not trust.
_NETWORK: Final = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
)


def checks(data: Path | None) -> list[Check]:
    """Return the checks of a machine that runs the server. ``data``: the folder of its data; None: in a database."""
    folder = data if data is not None else Path.cwd()
    found = [
        in_thread("disk", lambda: _disk(folder)),
        in_thread("machine", _machine),
    ]
    return [in_thread("data folder", lambda: _folder(data)), *found] if data is not None else found


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above that exists."""
    return next((each for each in (folder, *folder.absolute().parents) if each.exists()), Path("/"))


def _folder(data: Path) -> Iterator[Finding]:
    existing = _existing(data)
    if not existing.is_dir():
        yield problem("data folder", f"{existing} is no folder", "Choose another with --data.")
        return
    try:
        # The only test that file systems that are read-only, full or over a quota do not pass.
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield problem("data folder", f"{data} cannot be written: {error.strerror}", _remedy(error.errno, existing))
        return
    kind = network_file_system(data, _mounts())
    if kind:
        yield warning(
            "data folder", f"{data} is on a network file system ({kind}), on which SQLite may lose data",
            "Choose a local folder with --data, or PostgreSQL with --database.",
        )  # fmt: skip
        return
    made = "" if data.exists() else "; it is created when data is stored"
    yield ok("data folder", f"{data} can be written{made}")


def _remedy(number: int | None, folder: Path) -> str:
    """Return the remedy for a folder that refuses a file with this ``errno``."""
    path = shlex.quote(str(folder))
    if number == errno.ENOSPC:
        remedy = f"Free space or inodes on its disk (df -h {path}; df -i {path})"
    elif number == errno.EDQUOT:
        remedy = "Remove files of this user, or raise its quota (quota -s)"
    elif number == errno.EROFS:
        remedy = f"Mount its file system for writing (findmnt -T {path} shows which)"
    elif number in (errno.EACCES, errno.EPERM):
        remedy = f"Make it writable for this user (ls -ld {path})"
    elif number == errno.EIO:
        remedy = "Look for faults of its disk in the log of the system (dmesg)"
    else:
        return "Choose another folder with --data."
    return f"{remedy}, or choose another with --data."


def _mounts() -> str:
    try:
        return _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def network_file_system(path: Path, mounts: str) -> str:
    """Return the type of the network file system with a path, "" for another one. ``mounts``: text of
    ``/proc/self/mountinfo``."""
    where, kind = -1, ""
    whole = Path(os.path.realpath(path))
    for line in mounts.splitlines():
        fields = line.split()
        if "-" not in fields[6:]:
            continue
        point = Path(fields[4].encode().decode("unicode_escape"))
        # Later lines cover earlier ones.
        if whole.is_relative_to(point) and len(point.parts) >= where:
            where, kind = len(point.parts), fields[fields.index("-", 6) + 1]
    return kind if kind in _NETWORK else ""


def _disk(folder: Path) -> Iterator[Finding]:
    place = _existing(folder)
    usage = shutil.disk_usage(place)
    text = f"{usage.free / _GIB:.1f} GiB of {usage.total / _GIB:.1f} are free in {place}"
    space = "Delete old jobs (scrapy platform retention --help), run scrapy platform vacuum, or use a larger disk."
    if usage.free < _TOO_LITTLE:
        yield problem("disk", text, space)
    elif usage.free < _LITTLE:
        yield warning("disk", text, space)
    else:
        yield ok("disk", text)
    if hasattr(os, "statvfs"):
        files = os.statvfs(place)
        if files.f_files and files.f_favail < _FEW_INODES:  # some file systems have no number of inodes
            yield problem(
                "disk",
                f"{files.f_favail} inodes are free in {place}",
                "Remove small files: df -i shows where they are.",
            )


def _machine() -> Iterator[Finding]:
    yield from _open_files()
    if _SHM.is_dir() and hasattr(os, "statvfs"):
        shared = os.statvfs(_SHM)
        size = shared.f_blocks * shared.f_frsize
        if size < _SHARED_MEMORY:
            yield warning(
                "machine",
                f"{_SHM} has {size / 2**20:.0f} MiB, and pages of Chromium may crash",
                "Start the container with --shm-size=1g.",
            )
    try:
        ZoneInfo("Europe/Paris")
    except ZoneInfoNotFoundError:
        yield problem("machine", "there is no time zone data, which periodic jobs need", "pip install tzdata")


def _open_files() -> Iterator[Finding]:
    try:
        import resource
    except ImportError:
        return  # A system without such a limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _FILES:
        yield warning(
            "machine",
            f"a process may open {most} files",
            f"Raise it: ulimit -Hn {_FILES} as root, or LimitNOFILE={_FILES} in the systemd unit.",
        )
    else:
        yield ok("machine", "a process may open enough files")
