"""Progress of an import on standard error: a bar for the jobs of a project in a terminal, lines in a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from scrapy_ext.commands.importing.context import Row
from scrapy_ext.commands.text import size

#: Seconds between two lines in a pipe.
_EVERY: Final = 10.0


class LineDisplay:
    """A line every ten seconds, also while the source is waited for."""

    def __init__(self) -> None:
        #: None until the source has responded.
        self._project: int | None = None
        self._rows: Sequence[Row] = ()
        self._done, self._total = 0, 0

    def show(self, project: int, rows: Sequence[Row]) -> None:
        self._project, self._rows = project, rows

    def jobs(self, project: int, number: int, total: int | None) -> None:
        """Set the number of jobs that are done, and of all."""
        if total is not None:
            self._total, self._rows = total, ()
        self._project, self._done = project, number

    async def write(self) -> None:
        """Write the lines, until it is cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            sys.stderr.write(f"{self.line()}\n")
            sys.stderr.flush()

    def line(self) -> str:
        """Return the line of now."""
        if self._project is None:
            return "waiting for the source; nothing is copied yet"
        jobs = f"{self._done} of {self._total} finished jobs compared"
        return f"project {self._project}: {jobs}; copied so far: {copied_text(self._rows)}"


class BarDisplay:
    """A bar for each project."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[int, TaskID] = {}

    def show(self, project: int, rows: Sequence[Row]) -> None:
        self._progress.update(self._bar(project), copied=copied_text(rows))

    def jobs(self, project: int, number: int, total: int | None) -> None:
        """Set the number of jobs that are done, and of all."""
        bar = self._bar(project)
        self._progress.update(bar, completed=number)
        if total is not None:
            self._progress.update(bar, total=total)

    def _bar(self, project: int) -> TaskID:
        if project not in self._bars:
            self._bars[project] = self._progress.add_task(f"project {project}", total=None, copied="")
        return self._bars[project]


def copied_text(rows: Sequence[Row]) -> str:
    """Return what was copied in one line, such as ``3 jobs, 1505 items (1.2 MB)``."""
    copied = [row for row in rows if row.copied]
    amount = f" ({size(sum(row.bytes for row in copied))})" if any(row.bytes for row in copied) else ""
    return (", ".join(f"{row.copied} {row.part}" for row in copied) or "nothing new") + amount


@contextlib.asynccontextmanager
async def display() -> AsyncIterator[LineDisplay | BarDisplay]:
    """Show the progress until the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = LineDisplay()
        writing = asyncio.create_task(lines.write())
        try:
            yield lines
        finally:
            writing.cancel()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[copied]}"), console=console, transient=True) as progress:
        yield BarDisplay(progress)
