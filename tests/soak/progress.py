"""The progress of a run: a bar in a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from scrapy_ext.compatibility.python import Self

#: Seconds between two lines where there is no terminal.
_EVERY = 15.0


class Show:
    """A context manager; :meth:`update` may be called as often as one likes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = -_EVERY
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            columns = (TimeElapsedColumn(), BarColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task("starting", total=seconds)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, seconds: float, text: str, *, now: bool = False) -> None:
        """Show how far the run is; ``now``: in any case."""
        if self._bar is not None:
            self._bar.update(self._task, completed=min(seconds, self._seconds), description=text)
        elif now or time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            print(f"[{seconds:5.0f} s] {text}", file=sys.stderr, flush=True)
