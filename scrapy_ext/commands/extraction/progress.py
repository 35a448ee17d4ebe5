"""What a person sees of a run: a bar in a terminal, a line now and then elsewhere. All of it on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scrapy_ext.commands.extraction.numbers import Numbers
from scrapy_ext.commands.terminal.output import one_line

_BAR_SECONDS: Final = 0.25
_LINE_SECONDS: Final = 30.0


class Progress:
    """Shows the numbers until it is closed. ``quiet``: nothing on the way."""

    def __init__(self, numbers: Numbers, *, quiet: bool) -> None:
        self.numbers = numbers
        self._quiet = quiet
        self._waiting: Callable[[], str] = lambda: ""
        self._live: Live | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to show; called in an event loop."""
        if self._quiet:
            return
        console = Console(stderr=True)
        if console.is_terminal:
            # Records go past it: they are not for rich.
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._task = asyncio.create_task(self._show())

    def wait_for(self, what: Callable[[], str]) -> None:
        """Show what is waited for, as it is told each time; nothing: the numbers."""
        self._waiting = what
        self._refresh()

    @property
    def is_bar(self) -> bool:
        """Whether there is a bar to see."""
        return self._live is not None

    def say(self, message: str) -> None:
        """A line that stays."""
        if self._live is not None:
            text = Text(_line(message).rstrip("\n"))
            self._live.console.print(text, soft_wrap=True)
        else:
            say(message)

    def hide(self) -> None:
        """Take the bar away, for good."""
        self._quiet = True
        if self._live is not None:
            self._refresh()
            self._live.stop()
            self._live = None

    def close(self) -> None:
        """Show no more."""
        self.hide()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _show(self) -> None:
        while not self._quiet:
            self._refresh()
            await asyncio.sleep(_BAR_SECONDS if self._live is not None else _LINE_SECONDS)
            if self._live is None and not self._quiet:
                say(", ".join(self.numbers.parts()))

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._bar(), refresh=True)

    def _bar(self) -> RenderableType:
        waiting = self._waiting() or ("waiting for the answer ..." if self.numbers.total == 1 else "")
        words = Text(waiting or "  ".join(self.numbers.parts()), no_wrap=True, overflow="ellipsis")
        if waiting or not self.numbers.total:
            return words
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(ratio=1)
        table.add_column(no_wrap=True)
        table.add_row(ProgressBar(total=self.numbers.total, completed=self.numbers.done), words)
        return table


class ToldByProgress(logging.Handler):
    """Warnings of the package as lines of the command."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        self._progress.say(record.getMessage())


@contextlib.contextmanager
def waiting(what: str, *, quiet: bool) -> Iterator[None]:
    """Show what is waited for, in a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def say(message: str) -> None:
    """A line for people."""
    sys.stderr.write(_line(message))
    sys.stderr.flush()


def _line(message: str) -> str:
    return f"scrapy extract: {one_line(message)}\n"
