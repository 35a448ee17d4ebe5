"""The process that inspects an archive: ``inspection`` starts it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Final

from scrapy_ext.jobprocess.child import die_with_parent
from scrapy_ext.server.jobs.versions.archives import MAX_MEMORY, inspect
from scrapy_ext.server.jobs.versions.contents import ArchiveError
from scrapy_ext.server.jobs.versions.inspection import CPU_SECONDS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Maximum characters of a message, so that ``run`` does not cut its line of JSON.
_MAX_MESSAGE: Final = 400


def main() -> None:
    """Inspect the archive of the descriptor in the command line."""
    die_with_parent()
    _bound_this_process()
    try:
        answer = inspect(io.BufferedReader(_Descriptor(int(sys.argv[1]))))._asdict()
    except ArchiveError as error:
        answer = {"error": str(error)[:_MAX_MESSAGE]}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode(errors="backslashreplace"))
    sys.stdout.flush()


def _bound_this_process() -> None:
    """Bound the resources of this process, which writes to a pipe and reads the archive only."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on every platform

        for kind, most in (
            (resource.RLIMIT_AS, MAX_MEMORY),
            (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, 32),
        ):
            resource.setrlimit(kind, (most, most))


class _Descriptor(io.RawIOBase):
    """File with its own position, since the server uses the position of the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = (0, self._at, os.fstat(self._descriptor).st_size)[whence]
        if start + offset < 0:
            raise OSError("seek before the beginning of the file")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = os.pread(self._descriptor, len(view), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
