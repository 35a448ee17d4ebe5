"""Records of a collection, written from JSON lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from scrapy_ext.commands.subcommand import CommandError, View
from scrapy_ext.commands.terminal.progress import bar
from scrapy_ext.commands.terminal.text import counted

_RECORDS: Final = 1000
_BYTES: Final = 4 * 2**20
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def put_lines(view: View, kind: str, file: Path | None) -> int:
    """Write the records of a file, or of standard input; returns how many. Raises :class:`CommandError` for a line
    that is none, when those before it are written."""
    written = 0
    try:
        stream, size = (sys.stdin.buffer, None) if file is None else await asyncio.to_thread(_opened, file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None
    try:
        with bar("bytes", size) as advance:
            groups = _groups(stream)
            while True:
                group, length, fault = await asyncio.to_thread(next, groups, ([], 0, None))
                if group:
                    body = b"".join(line + b"\n" for line in group)
                    await view.client.collections.write(view.project, kind, view.options.collection, body)
                written += len(group)
                advance(length)
                if fault is not None:
                    are = "is" if written == 1 else "are"
                    told = f"{counted(written, 'record')} before it {are} written; correct it and put the file again"
                    raise CommandError(f"{file or 'standard input'}, {fault}; {told}")
                if not group:
                    return written
    finally:
        if file is not None:
            stream.close()


def _opened(file: Path) -> tuple[BinaryIO, int | None]:
    return file.open("rb"), file.stat().st_size


def _groups(stream: BinaryIO) -> Iterator[tuple[list[bytes], int, str | None]]:
    """Lines to write together, how many bytes they took, and what is wrong with the one behind them."""
    group: list[bytes] = []
    length = 0
    for number, line in enumerate(stream, 1):
        text = line.strip()
        fault = _fault(text) if text else None
        if fault is not None:
            yield group, length, f"line {number}: {fault}"
            return
        length += len(line)
        if text:
            group.append(text)
        if len(group) == _RECORDS or length >= _BYTES:
            yield group, length, None
            group, length = [], 0
    if group:
        yield group, length, None


def _fault(line: bytes) -> str | None:
    try:
        record = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"not a JSON object ({error})"
    key = record.get("_key")
    return None if isinstance(key, str) and key else "a record needs a _key, which is text"
