"""``--output FILE``: records in a file, which an interrupted command continues when it is repeated.

Records are first kept as JSON lines in ``FILE.part``, and ``FILE.part.json`` has the selection of the command. A
repeated command with the same selection keeps the complete lines, reads the rest, and converts all lines to the format
of the file. So the file is the same however often the command was killed, and FILE itself is always complete.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from scrapy_ext.api.platform.formats import Format
from scrapy_ext.commands.options import AddOptions
from scrapy_ext.commands.output import bar, reading
from scrapy_ext.commands.output_files import MOVES_OPEN_FILES, FileLock, LockedError
from scrapy_ext.commands.subcommand import CommandError, View
from scrapy_ext.commands.text import counted
from scrapy_ext.formats import (
    TABLES,
    Compression,
    MissingLibraryError,
    Schema,
    Writer,
    check_installed,
    format_of_name,
    spool_schema,
)

#: Bytes that are written, or converted, at once.
_PIECE: Final = 256 * 1024
_SUFFIXES: Final = ("csv", "xlsx", "json", "jl", "jl.gz", "jl.zst", "xml", "parquet")

Record = dict[str, Any]
#: Chooses and changes lines of the part file.
Select = Callable[[Iterable[bytes]], Iterable[bytes]]

encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Download:
    """Records to save."""

    #: Name of one record, such as ``item``, and of where they are, such as ``job 1/2/3``.
    noun: str
    place: str
    #: Number of all records; None if it is unknown.
    total: int | None
    #: Options that the records depend on.
    selection: dict[str, Any]
    #: Reads the records after a number of them, the last of which is given.
    read: Callable[[int, Record | None], AsyncIterator[Record]]
    #: Chosen columns; empty for all fields.
    fields: Sequence[str] = ()
    select: Select | None = None


def download_options() -> AddOptions:
    """``--output`` and ``--format``."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--output",
            type=Path,
            metavar="FILE",
            help="write all records to this file, in the format of its suffix; repeat the command to continue",
        )
        parser.add_argument(
            "--format", type=_format, metavar="FORMAT", help=f"format of --output: {', '.join(_SUFFIXES)}"
        )

    return add


def _format(text: str) -> tuple[Format, Compression]:
    found = format_of_name(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(_SUFFIXES)}, got {text!r}")
    return found


def wants_file(view: View) -> bool:
    """Return true when the records go to a file; raises :class:`CommandError` for options that exclude each other."""
    options = view.options
    if options.output is None:
        if options.format is not None:
            raise CommandError("--format needs --output; for the form of standard output, use --json or --csv")
        return False
    if getattr(options, "follow", False):
        raise CommandError("--output and --follow cannot be combined; redirect standard output to a file")
    if getattr(options, "tail", None) is not None:
        raise CommandError("--output and --tail cannot be combined; use --start")
    return True


def _format_of(options: argparse.Namespace) -> tuple[Format, Compression]:
    if options.format is not None:
        chosen: tuple[Format, Compression] = options.format
        return chosen
    if getattr(options, "csv", False):
        return Format.CSV, Compression.NONE
    if options.json:
        return Format.JSON_LINES, Compression.NONE
    found = format_of_name(options.output.name) if "." in options.output.name else None
    if found is None:
        raise CommandError(
            f"the suffix of {options.output.name} names no format; add --format with one of {', '.join(_SUFFIXES)}"
        )
    return found


async def save(view: View, download: Download) -> None:
    """Write the records to the file of ``--output``; raises :class:`CommandError`."""
    file: Path = view.options.output
    kind, compression = _format_of(view.options)
    try:
        check_installed(kind, compression)
        # The address of a server that ends with its command is another one each time.
        selection = {"server": "" if view.embedded else view.client.urls.storage, **download.selection}
        with _Part.opened(file, selection) as part:
            await _complete(view, download, part)
            plain = kind is Format.JSON_LINES and not compression and download.select is None
            number = part.lines
            if not plain:
                number = await _convert(download, part, kind, compression)
            await asyncio.to_thread(part.finish, converted=not plain)
    except MissingLibraryError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or file}: {error.strerror or error}") from None
    view.say(f"{counted(number, download.noun)} of {download.place} in {file}")


async def _complete(view: View, download: Download, part: _Part) -> None:
    """Read the records that the part file has not yet."""
    total = download.total
    if total is not None and part.lines > total:
        part.clear()  # records were removed meanwhile
    if part.lines:
        view.say(f"{part.file}: continued after {counted(part.lines, download.noun)}")
    if part.lines == total:
        return
    with bar(f"{download.noun}s", total) as advance:
        advance(part.lines)
        lines: list[bytes] = []
        size = 0
        try:
            async with reading(download.read(part.lines, part.last)) as records:
                async for record in records:
                    lines.append(encode(record))
                    size += len(lines[-1])
                    if size >= _PIECE:
                        part.add(lines)
                        advance(len(lines))
                        lines, size = [], 0
        finally:  # also after Ctrl-C
            part.add(lines)


async def _convert(download: Download, part: _Part, kind: Format, compression: Compression) -> int:
    """Write the lines of the part file in another format, and return their number."""
    select = download.select or (lambda lines: lines)
    schema: Schema | None = None
    chosen = Schema.of(download.fields) if download.fields else None
    if kind in TABLES:
        schema = spool_schema(kind, chosen)
        if schema.typed or not schema.chosen:
            with bar("bytes, columns", part.size) as advance:
                async for page in _pages(part, select, advance):
                    await asyncio.to_thread(schema.add, page)
            schema.is_complete = True  # the part file is locked
    number = 0
    with (
        _removed_on_failure(part.converted),
        part.converted.open("wb") as sink,
        bar("bytes, converted", part.size) as advance,
    ):
        writer = Writer(kind, sink, schema=schema, compression=compression)
        async for page in _pages(part, select, advance):
            await asyncio.to_thread(writer.write, page)
            number += len(page)
        await asyncio.to_thread(writer.close)
        await asyncio.to_thread(_sync, sink)
    return number


@contextlib.contextmanager
def _removed_on_failure(file: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        file.unlink(missing_ok=True)
        raise


async def _pages(part: _Part, select: Select, advance: Callable[[int], None]) -> AsyncIterator[list[bytes]]:
    """Yield the selected lines of the part file in groups."""
    with part.path.open("rb") as stream:
        groups, place = _groups(select(line.rstrip(b"\n") for line in stream)), 0
        while group := await asyncio.to_thread(next, groups, None):
            yield group
            before, place = place, stream.tell()
            advance(place - before)


def _groups(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = 0
    for line in lines:
        group.append(line)
        size += len(line)
        if size >= _PIECE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


@dataclass
class _Part:
    """The part file: its complete lines, and the file that it becomes. It is locked against a second command."""

    file: Path
    path: Path
    selection: bytes
    stream: BinaryIO
    lines: int = 0
    size: int = 0
    #: The record of the last line.
    last: Record | None = field(default=None)

    @classmethod
    @contextlib.contextmanager
    def opened(cls, file: Path, selection: dict[str, Any]) -> Iterator[_Part]:
        """Open the part file of a file; its lines are kept if they are of the same selection."""
        if file.is_dir():
            raise CommandError(f"{file} is a folder; name a file in it")
        path = file.with_name(f"{file.name}.part")
        with path.open("a+b") as stream:
            try:
                lock = FileLock(stream.fileno(), str(path))
            except LockedError:
                raise CommandError(f"another command is writing {path}; wait for its end") from None
            try:
                part = cls(file, path, encode(selection), stream)
                part._resume()
                yield part
            finally:
                lock.release()

    @property
    def converted(self) -> Path:
        return self.file.with_name(f"{self.file.name}.new")

    @property
    def _about(self) -> Path:
        return self.file.with_name(f"{self.path.name}.json")

    def _resume(self) -> None:
        known = self._about.read_bytes() if self._about.exists() else b""
        if known != self.selection:
            self.clear()
            return
        self.stream.seek(0)
        last = b""
        for line in self.stream:
            if not line.endswith(b"\n"):
                break
            last = line
            self.lines += 1
            self.size += len(line)
        self.stream.truncate(self.size)
        self.last = msgspec.json.decode(last) if last else None

    def clear(self) -> None:
        """Start over."""
        self.stream.truncate(0)
        self.lines = self.size = 0
        self.last = None
        self._about.write_bytes(self.selection)

    def add(self, lines: Sequence[bytes]) -> None:
        if lines:
            data = b"".join(line + b"\n" for line in lines)
            self.stream.write(data)
            self.stream.flush()
            self.lines += len(lines)
            self.size += len(data)

    def finish(self, *, converted: bool) -> None:
        """Give the complete file its name."""
        if not converted:
            _sync(self.stream)
        if not MOVES_OPEN_FILES:
            self.stream.close()
        if converted:
            self.converted.replace(self.file)
            self.path.unlink()
        else:
            self.path.replace(self.file)
        self._about.unlink(missing_ok=True)
