"""Records on standard output, as a table in a terminal, JSON lines in a pipe, CSV with ``--csv``; and bars of progress.

Records are written in pieces as they arrive, so that a million of them need no more memory than a screenful. A thread
writes them, so that a slow reader does not block the client's connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, TypeVar

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrapy_ext.api.platform.formats import CsvOptions
from scrapy_ext.commands.text import columns_of_terminal, is_url, printable, printable_json, shortened, shown
from scrapy_ext.formats.csv import CsvRows

Record = Mapping[str, Any]
T = TypeVar("T")

#: Records shown in a terminal without ``--count``.
SCREENFUL: Final = 50
#: Rows that determine the columns and widths; rows are also printed in groups of this size.
_SAMPLE: Final = 50
#: Maximum and minimum width of a column in terminal cells, while others need the room.
_WIDEST: Final = 60
_NARROWEST: Final = 4
#: Width below which a column with longer text is left out.
_READABLE: Final = 16
#: First columns of a table of items, if present.
_FIRST: Final = ("_key", "name", "headline", "title", "price", "currency", "sku", "url")
_CELL_CHARACTERS: Final = 400
_PIECE_CHARACTERS: Final = 64 * 1024
_FLUSH_SECONDS: Final = 0.3


class OutputError(Exception):
    """Standard output cannot be written, as on a full disk."""


@contextlib.asynccontextmanager
async def reading(records: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a generator at the end of its reader, which ends its connection also after Ctrl-C."""
    try:
        yield records
    finally:
        if isinstance(records, AsyncGenerator):
            await records.aclose()


async def each_of(rows: Iterable[object]) -> AsyncIterator[Record]:
    """Yield the records of a list: mappings, and structs as dicts."""
    for row in rows:
        yield row if isinstance(row, Mapping) else msgspec.to_builtins(row)


def one_line(message: str) -> str:
    return printable(" ".join(part.strip() for part in message.splitlines() if part.strip()))


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, the text of a record, and its layout.

    ``wrap``: long text continues in the next line. ``least``: minimum width, for later rows with longer text.
    """

    title: str
    value: Callable[[Record], str]
    right: bool = False
    wrap: bool = False
    least: int = 0

    @classmethod
    def field(cls, name: str, title: str | None = None, *, right: bool = False, least: int = 0) -> Column:
        return cls(printable(title or name), lambda record: shown(record.get(name)), right, least=least)


class _Writer(ABC):
    """Converts records to text, which may be returned by a later call."""

    @abstractmethod
    def add(self, record: Record) -> str: ...

    def flush(self) -> str:
        return ""

    def close(self) -> str:
        return self.flush()


class StandardOutput:
    """Standard output in one of the three forms."""

    def __init__(self, form: Literal["table", "json", "csv"], stream: BinaryIO, *, terminal: bool) -> None:
        self.form = form
        self.terminal = terminal
        self._stream = stream

    @classmethod
    def of(cls, options: argparse.Namespace) -> StandardOutput:
        """Choose the form by the options; without one, a terminal gets a table and a pipe gets JSON."""
        terminal = sys.stdout.isatty()
        csv_wanted = getattr(options, "csv", False)
        form: Literal["table", "json", "csv"] = (
            "csv" if csv_wanted else "table" if terminal and not options.json else "json"
        )
        return cls(form, sys.stdout.buffer, terminal=terminal)

    def count(self, options: argparse.Namespace) -> int | None:
        """Return the number of records to show; None for all."""
        if options.count is not None:
            wanted: int = options.count
            return wanted
        return SCREENFUL if self.form == "table" else None

    async def records(
        self,
        records: AsyncIterator[Record],
        columns: Sequence[Column] | None = None,
        csv_fields: Sequence[str] = (),
    ) -> int:
        """Write the records and return their number; without ``columns``, a table has their fields."""
        writer = self._writer(columns, csv_fields)
        number, pending, written = 0, [], time.monotonic()
        size = 0
        async with reading(records) as each:
            async for record in each:
                number += 1
                piece = writer.add(record)
                pending.append(piece)
                size += len(piece)
                if size >= _PIECE_CHARACTERS or time.monotonic() - written > _FLUSH_SECONDS:
                    await self._write("".join(pending))
                    pending, size, written = [], 0, time.monotonic()
        await self._write("".join(pending) + writer.close())
        if isinstance(writer, TableWriter) and writer.left_out:
            await self.note(f"columns without room: {', '.join(writer.left_out)}")
        return number

    async def live(
        self,
        groups: AsyncIterator[Sequence[Record]],
        columns: Sequence[Column] | None = None,
        csv_fields: Sequence[str] = (),
    ) -> int:
        """Write each group of records when it arrives, and return the number of records."""
        writer = self._writer(columns, csv_fields)
        if isinstance(writer, TableWriter):
            writer.roomy = True
        number = 0
        async with reading(groups) as each:
            async for group in each:
                number += len(group)
                await self._write("".join(map(writer.add, group)) + writer.flush())
        await self._write(writer.close())
        return number

    async def note(self, message: str) -> None:
        """Write a line below a table; nothing in the other forms, which programs read."""
        if self.form == "table":
            await self._write(f"{printable(message)}\n")

    def _writer(self, columns: Sequence[Column] | None, csv_fields: Sequence[str]) -> _Writer:
        if self.form == "csv":
            return _CsvWriter(csv_fields, escape=self.terminal)
        if self.form == "json":
            return _JsonWriter(escape=self.terminal)
        return TableWriter(columns, columns_of_terminal())

    async def _write(self, text: str) -> None:
        if text:
            await asyncio.to_thread(self._write_all, text.encode("utf-8", "backslashreplace"))

    def _write_all(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"standard output cannot be written: {error.strerror}; write it to another place"
            ) from None


class _JsonWriter(_Writer):
    def __init__(self, *, escape: bool) -> None:
        self._escape = escape

    def add(self, record: Record) -> str:
        line = msgspec.json.encode(record).decode()
        return f"{printable_json(line) if self._escape else line}\n"


class _CsvWriter(_Writer):
    def __init__(self, fields: Sequence[str], *, escape: bool) -> None:
        self._fields = fields
        self._escape = escape
        self._rows = CsvRows(CsvOptions(()), quote_lone=True)
        #: The header line, until it is returned.
        self._header = self._row(fields)

    def add(self, record: Record) -> str:
        return self.close() + self._row([shown(record.get(name)) for name in self._fields])

    def close(self) -> str:
        header, self._header = self._header, ""
        return header

    def _row(self, cells: Sequence[str]) -> str:
        return self._rows.row([printable(cell) for cell in cells] if self._escape else cells)


class TableWriter(_Writer):
    """Table whose columns and widths are determined by the first rows."""

    def __init__(self, columns: Sequence[Column] | None, width: int) -> None:
        self._columns = columns
        self._width = width
        self._rows: list[Record] = []
        self._widths: list[int] = []
        #: Columns share the whole width, for later rows with longer text.
        self.roomy = False
        #: Titles of columns with text that have no room.
        self.left_out: list[str] = []

    def add(self, record: Record) -> str:
        """Add a record, and return the text of completed rows."""
        self._rows.append(record)
        return self._printed() if len(self._rows) >= _SAMPLE else ""

    def flush(self) -> str:
        """Return the text of the other rows."""
        return self._printed() if self._rows else ""

    def _printed(self) -> str:
        columns = self._columns = self._columns or _columns_of(self._rows)
        cells = [[_cell(column, row) for column in columns] for row in self._rows]
        first = not self._widths
        if first:
            self._widths = _widths(columns, cells, self._width)
            if self.roomy:
                _give_room(columns, self._widths, self._width)
            self.left_out = [
                column.title
                for index, column in enumerate(columns[len(self._widths) :], start=len(self._widths))
                if any(row[index] for row in cells)
            ]
        table = Table(
            box=SIMPLE_HEAD,
            show_header=first,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            header_style="bold",
        )
        for column, width in zip(columns, self._widths, strict=False):
            table.add_column(
                # A string is read as markup, and the titles of items' columns are names of fields.
                Text(column.title),
                width=width,
                justify="right" if column.right else "left",
                no_wrap=not column.wrap,
                overflow="fold" if column.wrap else "ellipsis",
            )
        for row in cells:
            table.add_row(*map(_fitted, columns, self._widths, row))
        self._rows = []
        return _render(table, self._width)


def _render(table: Table, width: int) -> str:
    sink = io.StringIO()
    Console(file=sink, width=width, force_terminal=True, legacy_windows=False, highlight=False).print(table)
    return sink.getvalue()


def _cell(column: Column, row: Record) -> str:
    text = column.value(row)
    if column.wrap:
        return printable(text, newlines=True)
    return printable(shortened(text, _CELL_CHARACTERS) if is_url(text) else text[:_CELL_CHARACTERS])


def _fitted(column: Column, width: int, cell: str) -> Text:
    return Text(shortened(cell, width) if is_url(cell) and not column.wrap else cell)


def _columns_of(rows: Sequence[Record]) -> list[Column]:
    """Return a column for each field: those of ``_FIRST``, then plain values, then lists and objects."""
    names = dict.fromkeys(name for row in rows for name in row)
    nested = {name for row in rows for name, value in row.items() if isinstance(value, dict | list)}

    def place(name: str) -> tuple[bool, int]:
        return name in nested, _FIRST.index(name) if name in _FIRST else len(_FIRST)

    return [Column.field(name) for name in sorted(names, key=place)]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], available: int) -> list[int]:
    """Return the widths of as many columns as fit, from the left; the widest shrink first."""
    wanted = [
        max(cell_len(column.title), column.least, *(cell_len(line) for row in cells for line in row[index].split("\n")))
        for index, column in enumerate(columns)
    ]
    # A wrapping column gets the rest of the width.
    widths = [width if column.wrap else min(width, _WIDEST) for width, column in zip(wanted, columns, strict=True)]
    while len(widths) > 1 and _total(_readable(columns, widths)) > available:
        widths.pop()
    # Columns with a minimum width, such as times, shrink after all others.
    for firm in ([column.least for column in columns], [0] * len(columns)):
        while _total(widths) > available:
            room = [width - max(_NARROWEST, least) for width, least in zip(widths, firm, strict=False)]
            if max(room) <= 0:
                break
            widest = max(range(len(widths)), key=lambda index: (room[index] > 0, widths[index]))
            widths[widest] -= min(_total(widths) - available, room[widest], max(1, widths[widest] // 8))
    return widths


def _readable(columns: Sequence[Column], widths: Sequence[int]) -> list[int]:
    return [min(width, max(_READABLE, column.least)) for column, width in zip(columns, widths, strict=False)]


def _give_room(columns: Sequence[Column], widths: list[int], available: int) -> None:
    """Share the free width among the columns whose text may be longer in later rows."""
    growing = [index for index in range(len(widths)) if not columns[index].right] or [len(widths) - 1]
    wrapping = [index for index in growing if columns[index].wrap]
    growing = wrapping or growing
    left = max(available - _total(widths), 0)
    for place, index in enumerate(growing):
        widths[index] += left // len(growing) + (place < left % len(growing))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


# ── progress of long work: on standard error, and in a terminal only ──

#: Seconds of work before its bar appears.
AFTER: Final = 1.0


@contextlib.contextmanager
def bar(unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar that grows by the number of each call. ``total`` is None when it is unknown."""
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
    """Show a text, which each call changes; the texts are not read as markup."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as shown:
        yield lambda new: shown.update(Text(new[: max(console.width - 10, 10)]))
