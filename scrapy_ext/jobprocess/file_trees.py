"""Walk and removal of folders that untrusted code may have filled.

Such a tree can be deeper than the longest path, than Python's recursion limit and than the limit of descriptors, and it
can change meanwhile. Invariants:

- A folder is opened only by its name in an open folder, and never through a symbolic link.
- There is neither recursion nor a descriptor for each level.

It needs the standard library alone, because supervisors use it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Generator, Iterator
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_OWN: Final = 0o700


def remove(path: Path | str, deadline: float = inf) -> None:
    """Remove a file, or a folder with its content, if it exists; also folders that their owner may not write.

    Raises the first ``OSError`` of entries that remain, after all others were removed; ``TimeoutError`` when it is not
    done at the ``deadline`` (of ``time.monotonic``). A further call continues.
    """
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(path)
        return
    top = _opened(path)
    try:
        _Removal(top, deadline).run()
    finally:
        os.close(top)
    os.rmdir(path)


def walk(path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield each entry below a folder: the descriptor of its folder, open until the next entry, and its name. Raises
    ``OSError`` when a folder is moved meanwhile."""
    folder = os.open(path, _FOLDER)
    above: list[tuple[os.stat_result, list[str]]] = []
    try:
        while True:
            rest = yield from _entries(folder)
            while not rest:
                if not above:
                    return
                known, rest = above.pop()
                folder = _replaced(folder, "..")
                if not os.path.samestat(os.fstat(folder), known):
                    raise OSError(f"{path}: a folder in it was moved while it was walked")
            name = rest.pop()
            above.append((os.fstat(folder), rest))
            folder = _replaced(folder, name)
    finally:
        os.close(folder)


def change_mode(folder: int, name: str, mode: int) -> None:
    """Change the mode of a file in an open folder, unless it is a symbolic link; raises ``OSError``."""
    _change_mode(name, mode, folder)


class _Removal:
    """Empties one folder. The folders inside its folders are moved up into it, so that none is ever deeper."""

    def __init__(self, top: int, deadline: float) -> None:
        self._top = top
        self._deadline = deadline
        self._error: OSError | None = None
        self._has_moved_on = False
        #: Random: an existing name would prevent the move.
        self._prefix = os.urandom(8).hex()
        self._moved = 0

    def run(self) -> None:
        """Raise ``OSError`` when something is left."""
        while True:
            self._error, self._has_moved_on = None, False
            with os.scandir(self._top) as entries:
                for entry in entries:
                    self._try(entry)
            if not self._has_moved_on:
                break
        if self._error is not None:
            raise self._error

    def _try(self, entry: os.DirEntry[str]) -> None:
        if not entry.is_dir(follow_symlinks=False):
            self._unlink(entry.name, self._top)
            return
        with self._noting():
            folder = _opened(entry.name, self._top)
            try:
                with os.scandir(folder) as entries:
                    for each in entries:
                        if each.is_dir(follow_symlinks=False):
                            self._move_up(each.name, folder)
                        else:
                            self._unlink(each.name, folder)
            finally:
                os.close(folder)
            os.rmdir(entry.name, dir_fd=self._top)

    def _unlink(self, name: str, folder: int) -> None:
        with self._noting():
            os.unlink(name, dir_fd=folder)

    def _move_up(self, name: str, folder: int) -> None:
        with self._noting():
            self._moved += 1
            new = f"{self._prefix}-{self._moved}"
            try:
                os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
            except PermissionError:  # the owner may move only a folder that it may write
                os.close(_opened(name, folder))
                os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """Note the success of a step, or the first error."""
        if time.monotonic() > self._deadline:
            raise TimeoutError("there is more in it than could be removed in the time for that")
        try:
            yield
            self._has_moved_on = True
        except TimeoutError:
            raise
        except OSError as error:
            self._error = self._error or error


def _entries(folder: int) -> Generator[tuple[int, str], None, list[str]]:
    """Yield the entries of an open folder; returns the names of the folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            yield folder, entry.name
    return folders


def _replaced(folder: int, name: str) -> int:
    """Open a folder by its name in an open folder, and close that one."""
    opened = os.open(name, _FOLDER, dir_fd=folder)
    os.close(folder)
    return opened


def _opened(name: Path | str, folder: int | None = None) -> int:
    """Open a folder, and allow its owner to empty it."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        _change_mode(name, _OWN, folder)
        opened = os.open(name, _FOLDER, dir_fd=folder)
    with contextlib.suppress(OSError):  # another's folder: it may be possible to empty it all the same
        os.fchmod(opened, _OWN)
    return opened


def _change_mode(name: Path | str, mode: int, folder: int | None) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    # Linux has no call for this before 6.6: by its name, a link in its place would be followed.
    found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{found}", mode)
    finally:
        os.close(found)
