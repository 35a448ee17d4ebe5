"""How records are shown: a table in a terminal, JSON lines in a pipe, CSV when asked for.

Records come one by one and go out in pieces, so that a million of them need no more memory than a screenful.
Writing happens in a thread: a reader that stops reading must not stop the client's connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import shutil
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, Protocol, TypeVar

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrapy_ext.commands.terminal.text import is_url, printable, printable_json, shortened, shown

Record = Mapping[str, Any]
T = TypeVar("T")

#: Records shown in a terminal when no count is given.
SCREENFUL: Final = 50
#: Rows that are looked at to choose columns and widths, and printed together.
_SAMPLE: Final = 50
#: Widest a column gets before its neighbours have what they need, in terminal cells.
_WIDEST: Final = 60
_NARROWEST: Final = 4
#: What a column needs to be worth its place, if its text is that long.
_READABLE: Final = 16
#: Fields by which people know an item; its table begins with them.
_FIRST: Final = ("_key", "name", "headline", "title", "price", "currency", "sku", "url")
_CELL_CHARACTERS: Final = 400
_PIECE_CHARACTERS: Final = 64 * 1024
_FLUSH_SECONDS: Final = 0.3


@contextlib.asynccontextmanager
async def reading(records: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a generator with its reader, however that ends: Ctrl-C must not leave a connection half read."""
    try:
        yield records
    finally:
        if isinstance(records, AsyncGenerator):
            await records.aclose()


async def each_of(rows: Iterable[Record]) -> AsyncIterator[Record]:
    """Records that are there already."""
    for row in rows:
        yield row


def one_line(message: str) -> str:
    """A message as one line that is safe to show."""
    return printable(" ".join(part.strip() for part in message.splitlines() if part.strip()))


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, what it shows of a record, and whether long text goes on in the next line.

    ``least``: cells that it has at least, for what later rows may hold.
    """

    title: str
    value: Callable[[Record], str]
    right: bool = False
    wrap: bool = False
    least: int = 0

    @classmethod
    def field(cls, name: str, title: str | None = None, *, right: bool = False, least: int = 0) -> Column:
        """A column that shows a field."""
        return cls(printable(title or name), lambda record: shown(record.get(name)), right, least=least)


class _Writer(Protocol):
    """Turns records into text, some of it later than others."""

    def add(self, record: Record) -> str: ...
    def flush(self) -> str: ...
    def close(self) -> str: ...


class Output:
    """Where records go, and in which form."""

    def __init__(self, form: Literal["table", "json", "csv"], stream: BinaryIO, *, terminal: bool) -> None:
        self.form = form
        self.terminal = terminal
        self._stream = stream

    @classmethod
    def of(cls, options: argparse.Namespace) -> Output:
        """What the options and the kind of standard output ask for."""
        terminal = sys.stdout.isatty()
        csv_wanted = getattr(options, "csv", False)
        form: Literal["table", "json", "csv"] = (
            "csv" if csv_wanted else "table" if terminal and not options.json else "json"
        )
        return cls(form, sys.stdout.buffer, terminal=terminal)

    def count(self, options: argparse.Namespace) -> int | None:
        """How many records to show; None: all."""
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
        """Show the records; without ``columns``, those of the fields they have. How many there were."""
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
            await self.note(f"not shown, for lack of room: {', '.join(writer.left_out)}")
        return number

    async def live(
        self,
        groups: AsyncIterator[Sequence[Record]],
        columns: Sequence[Column] | None = None,
        csv_fields: Sequence[str] = (),
    ) -> int:
        """Show groups of records, each as soon as it comes. How many records there were."""
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
        """A line below a table; nothing in the other forms, which programs read."""
        if self.form == "table":
            await self._write(f"{printable(message)}\n")

    def _writer(self, columns: Sequence[Column] | None, csv_fields: Sequence[str]) -> _Writer:
        if self.form == "csv":
            return _CsvWriter(csv_fields, escape=self.terminal)
        if self.form == "json":
            return _JsonWriter(escape=self.terminal)
        return TableWriter(columns, shutil.get_terminal_size().columns)

    async def _write(self, text: str) -> None:
        if text:
            await asyncio.to_thread(self._write_all, text.encode("utf-8", "backslashreplace"))

    def _write_all(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()


class _JsonWriter:
    """A record a line."""

    def __init__(self, *, escape: bool) -> None:
        self._escape = escape

    def add(self, record: Record) -> str:
        line = msgspec.json.encode(record).decode()
        return f"{printable_json(line) if self._escape else line}\n"

    def flush(self) -> str:
        return ""

    def close(self) -> str:
        return ""


class _CsvWriter:
    """The named fields of each record, under a header line."""

    def __init__(self, fields: Sequence[str], *, escape: bool) -> None:
        self._fields = fields
        self._escape = escape
        self._buffer = io.StringIO()
        self._csv = csv.writer(self._buffer, lineterminator="\n")
        self._csv.writerow(self._cells(dict(zip(fields, fields, strict=True))))

    def add(self, record: Record) -> str:
        self._csv.writerow(self._cells(record))
        return self._taken()

    def flush(self) -> str:
        return ""

    def close(self) -> str:
        return self._taken()

    def _cells(self, record: Record) -> list[str]:
        cells = [shown(record.get(name)) for name in self._fields]
        return [printable(cell) for cell in cells] if self._escape else cells

    def _taken(self) -> str:
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text


class TableWriter:
    """A table whose columns are chosen from the first rows, and keep their widths."""

    def __init__(self, columns: Sequence[Column] | None, width: int) -> None:
        self._columns = columns
        self._width = width
        self._rows: list[Record] = []
        self._widths: list[int] = []
        #: Whether columns get the room that the first rows leave: later ones may be longer.
        self.roomy = False
        #: Titles of columns that hold something, and for which there is no room.
        self.left_out: list[str] = []

    def add(self, record: Record) -> str:
        """Keep the record; the text of those that are complete."""
        self._rows.append(record)
        return self._printed() if len(self._rows) >= _SAMPLE else ""

    def flush(self) -> str:
        """The text of what was kept."""
        return self.close()

    def close(self) -> str:
        """The text of the rest."""
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
                column.title,
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
    """A column for each field: first what an item is known by, then plain values, then what holds others."""
    names = dict.fromkeys(name for row in rows for name in row)
    nested = {name for row in rows for name, value in row.items() if isinstance(value, dict | list)}

    def place(name: str) -> tuple[bool, int]:
        return name in nested, _FIRST.index(name) if name in _FIRST else len(_FIRST)

    return [Column.field(name) for name in sorted(names, key=place)]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], available: int) -> list[int]:
    """The widths of as many columns as fit, from the left, shrinking the widest first."""
    wanted = [
        max(cell_len(column.title), column.least, *(cell_len(line) for row in cells for line in row[index].split("\n")))
        for index, column in enumerate(columns)
    ]
    # A wrapping column takes what the others leave.
    widths = [width if column.wrap else min(width, _WIDEST) for width, column in zip(wanted, columns, strict=True)]
    while len(widths) > 1 and _total(_readable(columns, widths)) > available:
        widths.pop()
    # What has a width that it needs, as times have, keeps it as long as others can give.
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
    """Share what is left of a line among the columns whose text may grow."""
    growing = [index for index in range(len(widths)) if not columns[index].right] or [len(widths) - 1]
    wrapping = [index for index in growing if columns[index].wrap]
    growing = wrapping or growing
    left = max(available - _total(widths), 0)
    for place, index in enumerate(growing):
        widths[index] += left // len(growing) + (place < left % len(growing))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)
