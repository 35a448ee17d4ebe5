"""A bar for work that takes long: on standard error, and in a terminal only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]

#: Seconds of work before it has a bar.
AFTER = 1.0


@contextlib.contextmanager
def bar(what: str, total: int | None) -> Iterator[Advance]:
    """A bar that grows with each call of what is given. ``total`` None: how much there is is not known."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True)
    task, began = progress.add_task(what, total=total), time.monotonic()

    def advance(number: int) -> None:
        progress.advance(task, number)
        if not progress.live.is_started and time.monotonic() - began >= AFTER:
            progress.start()

    try:
        yield advance
    finally:
        progress.stop()
