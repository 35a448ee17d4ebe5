"""Inspection of an uploaded archive in a process with bounded memory and time.

The process (``inspection_process``) reads the archive from a descriptor and writes one line of JSON.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.child import Child, run
from scrapy_ext.server.jobs.versions.contents import ArchiveError, Contents
from scrapy_ext.server.jobs.versions.variables import bare_environment

#: Seconds of processor time per archive, and of elapsed time on a busy machine.
CPU_SECONDS: Final = 60
_SECONDS: Final = 300.0
#: Maximum concurrent inspections.
_AT_ONCE: Final = 2
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
            command = [sys.executable, "-I", "-c", program("inspection_process"), str(descriptor)]
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


def _flushed(file: BinaryIO) -> int:
    descriptor = file.fileno()  # a spooled file is written to disk
    file.flush()
    return descriptor
