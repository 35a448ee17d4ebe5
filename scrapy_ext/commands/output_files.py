"""Files that one command at a time writes, and a repeated command continues.

A lock ends with its process in every case. On Windows, a lock is one of another file beside the first: a lock of the
file itself would keep its own readers out. No open file can be moved or replaced there. Where Python has neither of the
modules for locks, nothing keeps a second command out.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:
    _HAS_FCNTL = False
else:
    _HAS_FCNTL = True
try:
    import msvcrt
except ImportError:
    _HAS_MSVCRT = False
else:
    _HAS_MSVCRT = True

#: Flag of ``os.open`` for bytes as they are; Windows would write each end of a line in its own way.
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
#: True where an open file can be moved, replaced and removed.
MOVES_OPEN_FILES: Final = sys.platform != "win32"


class LockedError(Exception):
    """Another process writes the file."""


class FileLock:
    """Lock of the file ``path``, open as ``descriptor``, until :meth:`release`.

    Raises :class:`LockedError`, and ``OSError`` where the file system has no locks.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        #: The file that has the lock instead, and its descriptor.
        self._beside: tuple[Path, int] | None = None
        if _HAS_FCNTL:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockedError from None
        elif _HAS_MSVCRT:
            beside = Path(f"{path}.lock")
            lock = os.open(beside, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
            try:
                msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # seen from Linux
            except PermissionError:
                os.close(lock)
                raise LockedError from None
            self._beside = beside, lock

    def release(self) -> None:
        """Release the lock. Elsewhere than on Windows, the end of the descriptor does it."""
        if self._beside is not None:
            beside, lock = self._beside
            os.close(lock)
            try:
                beside.unlink()
            except OSError:
                return  # Another command has the file open.
