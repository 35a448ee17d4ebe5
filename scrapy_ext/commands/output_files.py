"""Files that one command at a time writes, and a repeated command continues.

A lock ends with its process in every case. On Windows, a lock is one of another file beside the first: a lock of the
file itself would keep its own readers out. No open file can be moved or replaced there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

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
        if sys.platform == "win32":
            self._path = Path(f"{path}.lock")
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
            try:
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            except PermissionError:
                os.close(self._descriptor)
                raise LockedError from None
        else:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockedError from None

    def release(self) -> None:
        """Release the lock. Elsewhere than on Windows, the end of the descriptor does it."""
        if sys.platform == "win32":
            os.close(self._descriptor)
            try:
                self._path.unlink()
            except OSError:
                return  # Another command has the file open.
