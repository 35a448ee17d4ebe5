"""A bar for work that takes long: on standard error, and in a terminal only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


@contextlib.contextmanager
def bar(what: str, total: int | None) -> Iterator[Advance]:
    """A bar that grows with each call of what is given. ``total`` None: how much there is is not known."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda number: progress.advance(task, number)
