"""Questions before what cannot be undone."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from scrapy_ext.commands.subcommand import CommandError, View
from scrapy_ext.commands.terminal.output import one_line


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    """``--yes``, which answers beforehand."""
    parser.add_argument("--yes", action="store_true", help="do not ask")


async def confirm(view: View, question: str) -> None:
    """Ask at the terminal, unless ``--yes`` is given; raises :class:`CommandError` for any answer but yes."""
    if view.options.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(f"{question} Nobody can be asked here: add --yes")
    sys.stderr.write(f"{one_line(question)} [y/N] ")
    sys.stderr.flush()
    if (await _line()).strip().lower() not in ("y", "yes"):
        raise CommandError("nothing is done")


async def _line() -> str:
    # Not in a thread: Ctrl-C could not end its reading.
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    loop.add_reader(stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(stdin)
    return os.read(stdin, 1024).decode(errors="replace")
