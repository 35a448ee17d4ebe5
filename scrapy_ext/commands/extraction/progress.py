"""Progress of ``scrapy extract`` on standard error: a bar in a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scrapy_ext.commands.extraction.resume import Done
from scrapy_ext.commands.output import one_line
from scrapy_ext.commands.text import counted, length

#: Seconds over which the rate is measured, and between its samples.
_RATE_SECONDS: Final = 20.0
_SAMPLE_SECONDS: Final = 1.0
#: Maximum kinds of errors in the summary.
_KINDS: Final = 5
_SINGULAR: Final = {"items": "item", "entries": "entry"}


class Numbers:
    """Counts of processed lines. ``total`` is None if unknown; ``done`` has the lines of earlier runs."""

    def __init__(self, total: int | None, done: Done) -> None:
        self.total = total
        self.answered = done.answered
        self.failed = done.failed
        self.earlier = len(done)
        self.kinds: Counter[str] = Counter()
        #: Cost of the answers of this run; None without prices.
        self.cost: float | None = None
        #: Items and entries that were left out of the answers of this run.
        self.left_out: Mapping[str, int] = {}
        self._last_error = ""
        self._started = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque([(self._started, self.done)])

    @property
    def done(self) -> int:
        """The number of lines with a record, of this run and earlier ones."""
        return self.answered + self.failed

    @property
    def is_all(self) -> bool:
        """Return true when all lines are known to be processed."""
        return self.total is not None and self.done >= self.total

    @property
    def seconds(self) -> float:
        """Seconds since this run began."""
        return time.monotonic() - self._started

    def add_failure(self, kind: str, error: str) -> None:
        """Count a failed line, by the kind of its error."""
        self.failed += 1
        self._last_error = error
        # The kinds come from the service, so their number is limited.
        self.kinds[kind if kind in self.kinds or len(self.kinds) < 100 else "other"] += 1

    def rate(self) -> float:
        """Return the current number of lines per second."""
        now = time.monotonic()
        if now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, self.done))
        while len(self._samples) > 1 and now - self._samples[0][0] > _RATE_SECONDS:
            self._samples.popleft()
        since, done = self._samples[0]
        return (self.done - done) / (now - since) if now > since else 0.0

    def parts(self) -> list[str]:
        rate = self.rate()
        parts = [f"{self.done}/{self.total}" if self.total is not None else counted(self.done, "line"), f"{rate:.1f}/s"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.cost is not None:
            parts.append(f"cost {self.cost:.4g}")
        if self.total is not None and rate > 0 and self.total > self.done:
            parts.append(f"{_time((self.total - self.done) / rate)} left")
        return parts

    def summary(self) -> str:
        """Return the summary of a finished run."""
        if self.total == 1 and self._last_error:
            return self._last_error
        outcome = f"{self.answered} answered, {self.failed} failed"
        if self.kinds:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common(_KINDS))
            # Rarer kinds, and lines of earlier runs, so that the numbers add up.
            others = self.failed - sum(count for _, count in self.kinds.most_common(_KINDS))
            outcome += f" ({kinds}{f', {others} others' if others > 1 else ', 1 other' if others else ''})"
        earlier = f", {self.earlier} of them before" if 0 < self.earlier < self.done else ""
        cost = f", cost {self.cost:.4g}" if self.cost is not None else ""
        ended = "all of them before" if self.earlier == self.done > 0 else f"in {_time(self.seconds)}"
        left_out = "".join(
            f", {count} {_SINGULAR[name] if count == 1 else name} left out" for name, count in self.left_out.items()
        )
        return f"{counted(self.done, 'line')}{earlier}: {outcome}{left_out}, {ended}{cost}"


def _time(seconds: float) -> str:
    """Format an estimated time in whole seconds."""
    return f"{math.ceil(seconds)}s" if seconds <= 59 else length(1000 * seconds)


#: Seconds between two updates of the bar, and between two lines.
_BAR_SECONDS: Final = 0.25
_LINE_SECONDS: Final = 30.0


class ProgressDisplay:
    """Display of the counts. ``quiet``: only messages are shown."""

    def __init__(self, numbers: Numbers, *, quiet: bool) -> None:
        self.numbers = numbers
        self._quiet = quiet
        self._waiting: Callable[[], str] = lambda: ""
        self._live: Live | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start the display, in a running event loop."""
        if self._quiet:
            return
        console = Console(stderr=True)
        if console.is_terminal:
            # Records are written to standard output without rich.
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._task = asyncio.create_task(self._show())

    def wait_for(self, reason: Callable[[], str]) -> None:
        """Show the text of a function instead of the counts, while it is not empty."""
        self._waiting = reason
        self._refresh()

    @property
    def is_bar(self) -> bool:
        return self._live is not None

    def say(self, message: str) -> None:
        """Write a line above the bar."""
        if self._live is not None:
            text = Text(_line(message).rstrip("\n"))
            self._live.console.print(text, soft_wrap=True)
        else:
            say(message)

    def hide(self) -> None:
        """Remove the bar, and show no further progress."""
        self._quiet = True
        if self._live is not None:
            self._refresh()
            self._live.stop()
            self._live = None

    def close(self) -> None:
        """Remove the bar, and end the display."""
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


class ProgressHandler(logging.Handler):
    """Handler that writes warnings of the package above the bar."""

    def __init__(self, progress: ProgressDisplay) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message of a record."""
        self._progress.say(record.getMessage())


def say(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(_line(message))
    sys.stderr.flush()


def _line(message: str) -> str:
    return f"scrapy extract: {one_line(message)}\n"
