"""A view of the file system for another user, in a mount namespace of its own. Needs the rights of root.

Folders that the user may not enter (a home, a data directory) may contain folders that it needs: a Python in ``/root``,
an environment in the data directory. In the view such a folder is empty but for the needed paths. Shared memory is
private, and ``/proc`` shows the user's own processes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from scrapy_ext.jobprocess.confinement.system import call
from scrapy_ext.jobprocess.proc import SHARED_MEMORY

_CLONE_NEWNS: Final = 0x20000
#: The mount namespace of the thread that opens it.
_NAMESPACE: Final = "/proc/thread-self/ns/mnt"
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18

#: Bytes of folders that contain mounts only.
_OF_FOLDERS: Final = 64 * 2**20
#: Bytes of the smallest file system: 0 would mean no limit.
_LEAST: Final = 2**20
#: A file takes about 1 KiB of memory besides its content: empty ones are limited to a sixteenth of the size.
_FOR_EACH_FILE: Final = 16 * 1024


def make(needed: Iterable[str], user: int, group: int, shared_memory: int) -> int:
    """Return the descriptor of a view in which the user reaches the ``needed`` paths, and has ``shared_memory`` bytes.
    This process, which has one thread, keeps its own view. Raises ``OSError``.

    A process under Landlock cannot mount, but it can enter an existing view.
    """
    kept = os.open(_NAMESPACE, os.O_RDONLY)
    folder = os.open(".", os.O_PATH)  # by descriptor: it may have been removed
    try:
        open_paths(needed, user, group)
        if os.path.isdir(SHARED_MEMORY):
            _mount_empty(SHARED_MEMORY, 0o1777, max(shared_memory, _LEAST))
        with contextlib.suppress(OSError):  # before Linux 5.8, or where parts of /proc are covered
            call("mount", b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, b"hidepid=ptraceable")
        return os.open(_NAMESPACE, os.O_RDONLY)
    finally:
        enter(kept)
        os.fchdir(folder)
        os.close(folder)


def enter(view: int) -> None:
    """Enter a view, and close its descriptor. Raises ``OSError``."""
    call("setns", view, _CLONE_NEWNS)
    os.close(view)


def closed_folder(path: str, user: int, group: int) -> str | None:
    """Return the first folder of a path that the user may not enter; None without one."""
    return next(
        (str(folder) for folder in reversed(PurePath(path).parents) if not _may_enter(folder, user, group)), None
    )


def _may_enter(folder: PurePath, user: int, group: int) -> bool:
    status = os.stat(folder)
    if status.st_uid == user:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == group:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def open_paths(needed: Iterable[str], user: int, group: int) -> None:
    """Give the user access to the ``needed`` paths, in a mount namespace of this process. Raises ``OSError``."""
    call("unshare", _CLONE_NEWNS)
    call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    closed: dict[str, list[tuple[str, int]]] = {}
    for path in dict.fromkeys(each for name in needed for each in (os.path.abspath(name), os.path.realpath(name))):
        try:
            where = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            for each in dict.fromkeys((path, where)):
                if (folder := closed_folder(each, user, group)) is not None:
                    closed.setdefault(os.path.realpath(folder), []).append((each, os.open(path, os.O_PATH)))
        except FileNotFoundError:
            continue
    # The user passes the folders that lead to the needed paths, also where the server makes files for itself alone.
    mask = os.umask(0o022)
    try:
        for folder, below in closed.items():
            _mount_empty(folder, 0o755, _OF_FOLDERS)
            # Short paths first: one inside an earlier one needs no mount.
            for path, descriptor in sorted(below, key=lambda each: each[0].count("/")):
                _bind(path, descriptor)
                os.close(descriptor)
    finally:
        os.umask(mask)


def _bind(path: str, descriptor: int) -> None:
    if os.path.lexists(path):
        return
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    call("mount", f"/proc/self/fd/{descriptor}".encode(), os.fsencode(path), None, _MS_BIND | _MS_REC, None)


def _mount_empty(folder: str, mode: int, size: int) -> None:
    options = f"mode={mode:o},size={size},nr_inodes={size // _FOR_EACH_FILE}"
    call("mount", b"none", os.fsencode(folder), b"tmpfs", _MS_NOSUID | _MS_NODEV, options.encode())
