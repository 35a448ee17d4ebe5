"""The progress of a run: its numbers, shown in a bar in a terminal, in a line now and then elsewhere.

All of it goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scrapy_ext.commands.extraction.resume import Done
from scrapy_ext.commands.terminal.output import one_line
from scrapy_ext.commands.terminal.text import length

#: The rate is that of the last so many seconds,
_RATE_SECONDS: Final = 20.0
#: looked at so often.
_SAMPLE_SECONDS: Final = 1.0
#: Kinds of errors that the summary names.
_KINDS: Final = 5


class Numbers:
    """Lines that are done, and how. ``total`` is None where it is not known; ``done`` are those that an earlier run
    has done."""

    def __init__(self, total: int | None, done: Done) -> None:
        self.total = total
        self.answered = done.answered
        self.failed = done.failed
        self.earlier = len(done)
        self.kinds: Counter[str] = Counter()
        #: What the answers of this run cost; None where there are no prices.
        self.cost: float | None = None
        self._last_error = ""
        self._started = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque([(self._started, self.done)])

    @property
    def done(self) -> int:
        """Lines with a record, of this run and those before."""
        return self.answered + self.failed

    @property
    def is_all(self) -> bool:
        """Whether no line is left, as far as is known."""
        return self.total is not None and self.done >= self.total

    @property
    def seconds(self) -> float:
        """How long this run has taken."""
        return time.monotonic() - self._started

    def add_answer(self) -> None:
        """A line was answered."""
        self.answered += 1

    def add_failure(self, kind: str, told: str) -> None:
        """A line failed."""
        self.failed += 1
        self._last_error = told
        # The names are the service's: it cannot make more of them than one remembers.
        self.kinds[kind if kind in self.kinds or len(self.kinds) < 100 else "other"] += 1

    def rate(self) -> float:
        """Lines a second, of late."""
        now = time.monotonic()
        if now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, self.done))
        while len(self._samples) > 1 and now - self._samples[0][0] > _RATE_SECONDS:
            self._samples.popleft()
        since, done = self._samples[0]
        return (self.done - done) / (now - since) if now > since else 0.0

    def parts(self) -> list[str]:
        """What there is to tell on the way."""
        rate = self.rate()
        told = [f"{self.done}/{self.total}" if self.total is not None else lines(self.done), f"{rate:.1f}/s"]
        if self.failed:
            told.append(f"{self.failed} failed")
        if self.cost is not None:
            told.append(f"cost {self.cost:.4g}")
        if self.total is not None and rate > 0 and self.total > self.done:
            told.append(f"{_time((self.total - self.done) / rate)} left")
        return told

    def summary(self) -> str:
        """What there is to tell at the end."""
        if self.total == 1 and self._last_error:
            return self._last_error
        told = f"{self.answered} answered, {self.failed} failed"
        if self.kinds:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common(_KINDS))
            told += f" ({kinds}{', …' if len(self.kinds) > _KINDS else ''})"
        earlier = f", {self.earlier} of them before" if 0 < self.earlier < self.done else ""
        cost = f", cost {self.cost:.4g}" if self.cost is not None else ""
        ended = "all of them before" if self.earlier == self.done > 0 else f"in {_time(self.seconds)}"
        return f"{lines(self.done)}{earlier}: {told}, {ended}{cost}"


def lines(number: int) -> str:
    """A number of lines."""
    return f"{number} line" if number == 1 else f"{number} lines"


def _time(seconds: float) -> str:
    """In whole seconds: of an estimate nothing more can be believed."""
    return f"{math.ceil(seconds)}s" if seconds <= 59 else length(1000 * seconds)


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
