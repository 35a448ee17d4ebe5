"""Progress of long work: on standard error, and in a terminal only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

#: Seconds of work before its bar appears.
AFTER: Final = 1.0


@contextlib.contextmanager
def bar(unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar that grows by the number of each call. ``total`` is None when it is unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True)
    task, began = progress.add_task(unit, total=total), time.monotonic()

    def advance(number: int) -> None:
        progress.advance(task, number)
        if not progress.live.is_started and time.monotonic() - began >= AFTER:
            progress.start()

    try:
        yield advance
    finally:
        progress.stop()


@contextlib.contextmanager
def status(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a text, which each call changes."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as shown:
        yield lambda new: shown.update(new[: max(console.width - 10, 10)])
