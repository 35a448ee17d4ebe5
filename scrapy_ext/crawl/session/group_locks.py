"""Lock files of the workers of a job on one machine, in ``groups`` of the project's data directory.

Each worker has a shared lock on ``{job}``. Who has an exclusive one knows that no worker lives: a run that resumes the
job, and the last worker at its end, which removes the files of a finished job. The worker that runs the embedded
server, the *keeper*, has an exclusive lock on ``{job}.keeper``. Each worker has one on ``{job}.{attempt}`` since it has
joined: a file with its process ID that can be locked is that of an ended process. The system releases a lock when its
process ends, however that happens. Programs that a worker starts do not inherit it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from scrapy_ext.api.platform import JobKey
from scrapy_ext.jobprocess.proc import table

try:
    import fcntl
except ImportError:  # where no process can be forked either
    fcntl = None  # type: ignore[assignment]

_FOLDER: Final = "groups"
#: Word in a file, beside process IDs.
_FINISHED: Final = "finished"


class GroupLocks:
    """The locks of one worker. ``folder``: the data directory. All calls return at once."""

    def __init__(self, folder: Path, job: JobKey) -> None:
        name = str(job).replace("/", "-")
        self._member = _LockFile(folder / _FOLDER / name)
        self._keeper = _LockFile(folder / _FOLDER / f"{name}.keeper")
        self._attempt: _LockFile | None = None

    def exist(self) -> bool:
        """Return true if several workers have run the job on this machine, and have not finished it."""
        return self._member.path.exists()

    def join(self) -> None:
        """Lock as one of the workers; raises ``BlockingIOError`` while another process knows that it is the last."""
        if self._member.is_locked:
            self._member.clear()
            for path in self._of_attempts():
                path.unlink(missing_ok=True)
        self._member.lock(exclusive=False)
        self._member.note(str(os.getpid()))

    def hold(self, attempt: int) -> None:
        """Lock as the process of an attempt."""
        self._attempt = self._file_of(attempt)
        self._attempt.lock(exclusive=True)
        self._attempt.note(str(os.getpid()))

    def is_gone(self, attempt: int) -> bool:
        """Return true if the process of an attempt was on this machine, and has ended."""
        return self._file_of(attempt).was_released()

    def is_last(self) -> bool:
        """Return true if no other worker lives."""
        try:
            self._member.lock(exclusive=True)
        except BlockingIOError:
            with contextlib.suppress(BlockingIOError):
                self._member.lock(exclusive=False)
            return False
        return True

    def others(self) -> list[int]:
        """Return the process IDs of other workers: those that have joined and have not ended."""
        joined = {int(word) for word in self._member.words() if word.isdecimal()}
        return sorted((joined & set(table())) - {os.getpid()})

    def keep(self) -> bool:
        """Lock as the keeper; false if another worker is it."""
        try:
            self._keeper.lock(exclusive=True)
        except BlockingIOError:
            return False
        return True

    def note_finished(self) -> None:
        """Note that the job is finished."""
        self._member.note(_FINISHED)

    def release(self) -> None:
        """Release all. The last worker of a finished job removes the files."""
        if self.is_last() and _FINISHED in self._member.words():
            for path in (*self._of_attempts(), self._keeper.path, self._member.path):
                path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Release all."""
        if self._attempt is not None:
            self._attempt.close()
        self._keeper.close()
        self._member.close()

    def _file_of(self, attempt: int) -> _LockFile:
        return _LockFile(self._member.path.with_name(f"{self._member.path.name}.{attempt}"))

    def _of_attempts(self) -> list[Path]:
        return list(self._member.path.parent.glob(f"{self._member.path.name}.[0-9]*"))


class _LockFile:
    """A file that is made for its lock. Raises ``OSError`` where it cannot be made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    @property
    def is_locked(self) -> bool:
        return self._descriptor >= 0

    def lock(self, *, exclusive: bool) -> None:
        """Lock the file, or change the lock; raises ``BlockingIOError`` if another process has one that excludes it."""
        mode = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
        while True:
            if self._descriptor < 0:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            fcntl.flock(self._descriptor, mode)
            if self._is_the_file():
                return
            # The last worker of another run has removed it meanwhile.
            self.close()

    def _is_the_file(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)

    def note(self, word: str) -> None:
        os.write(self._descriptor, f"{word}\n".encode())

    def words(self) -> list[str]:
        try:
            return self.path.read_text().split()
        except FileNotFoundError:
            return []

    def was_released(self) -> bool:
        """Return true if the process that has noted something in the file has its exclusive lock no more.

        An empty file is not touched: its process is about to lock it.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError:  # it does not exist, or this process has too many open files
            return False
        try:
            if os.fstat(descriptor).st_size == 0:
                return False
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
