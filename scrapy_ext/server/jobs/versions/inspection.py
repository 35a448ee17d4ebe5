"""Inspection of an uploaded archive in a process with bounded memory and time.

The process runs :func:`main`, which reads the archive from a descriptor (``archives``) and writes one line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgspec

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.child import Child, die_with_parent, run
from scrapy_ext.server.jobs.versions.variables import bare_environment

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

WHEEL: Final = "wheel"
EGG: Final = "egg"
SDIST: Final = "sdist"
#: A packed folder with ``scrapy.cfg``.
FOLDER: Final = "folder"

#: Maximum bytes of address space of a process that reads an archive. The interpreter needs a quarter of it.
MAX_MEMORY: Final = 256 * 1024 * 1024


class ArchiveError(Exception):
    """The archive cannot be used; the message has the reason."""


class Contents(NamedTuple):
    """The kind of an archive, and the file name that pip requires."""

    format: str
    filename: str


#: Seconds of processor time per archive, and of elapsed time on a busy machine.
CPU_SECONDS: Final = 60
_SECONDS: Final = 300.0
#: Maximum concurrent inspections.
_AT_ONCE: Final = 2
#: Maximum characters of a message, so that ``run`` does not cut its line of JSON.
_MAX_MESSAGE: Final = 400

#: The folder from which the package is imported.
PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[4])


def program(module: str, function: str = "main", root: str = PACKAGE_ROOT) -> str:
    """Return the code that runs a function of a module of this folder in a new Python process, which imports nothing
    from its working directory."""
    name = f"{__package__}.{module}"
    return f"import sys; sys.path = [{root!r}, *filter(None, sys.path)]; from {name} import {function}; {function}()"


class Inspector:
    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def inspect(self, file: BinaryIO) -> Contents:
        """Return the kind of the archive in an open file, whose position is kept; raise :class:`ArchiveError`."""
        async with self._slots:
            descriptor = await asyncio.to_thread(_flushed, file)
            command = [sys.executable, "-I", "-c", program("inspection"), str(descriptor)]
            try:
                starting = Child.start(
                    command,
                    folder=Path(tempfile.gettempdir()),
                    environment=bare_environment(),
                    given=b"",
                    descriptors=[descriptor],
                )
                ended = await run(starting, seconds=_SECONDS)
            except TIMEOUT_ERRORS:
                raise ArchiveError(f"reading it takes over {_SECONDS:g} s. Leave out files that are not code") from None
        if ended.status in (-signal.SIGXCPU, -signal.SIGKILL):
            raise ArchiveError(
                f"reading it takes over {CPU_SECONDS} s of processor time. Leave out files that are not code"
            )
        try:
            answer = msgspec.json.decode(ended.output.rpartition("\n")[2], type=dict[str, str])
            if "error" in answer:
                raise ArchiveError(answer["error"])
            return Contents(**answer)
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
            raise ArchiveError(f"reading it ended with status {ended.status}") from None


def main() -> None:
    """Inspect the archive of the descriptor in the command line."""
    die_with_parent()
    # Not in the server, which reads no archive.
    from scrapy_ext.server.jobs.versions import archives

    _bound_this_process()
    try:
        answer = archives.inspect(io.BufferedReader(_Descriptor(int(sys.argv[1]))))._asdict()
    except ArchiveError as error:
        answer = {"error": str(error)[:_MAX_MESSAGE]}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode(errors="backslashreplace"))
    sys.stdout.flush()


@contextlib.contextmanager
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


def _flushed(file: BinaryIO) -> int:
    descriptor = file.fileno()  # a spooled file is written to disk
    file.flush()
    return descriptor
