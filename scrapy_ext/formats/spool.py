"""Records in a temporary file, compressed, so that the columns of all of them are known before the first is written.

The file has no name: it is gone with its process, however that ends.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from scrapy_ext.api.compression import pack, unpack
from scrapy_ext.formats.columns import blocks
from scrapy_ext.formats.encoder import Page
from scrapy_ext.formats.schema import Schema

#: Bytes of records that are compressed at once, at least.
_BLOCK: Final = 256 * 1024
_HEAD: Final = struct.Struct(">I")


class SpoolLimitError(ValueError):
    """The records take more room than is allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The records take more than {limit} compressed bytes. Choose fewer, or another format.")


class Spool:
    """``limit``: maximum bytes of the temporary file; None: no limit."""

    def __init__(self, schema: Schema | None = None, *, limit: int | None = None) -> None:
        self.schema = Schema() if schema is None else schema
        self.size = 0
        self._limit = limit
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._lines: list[bytes] = []
        self._length = 0

    def add(self, lines: Page) -> None:
        """Add records; raises :class:`SpoolLimitError`."""
        self.schema.add(lines)
        for block in blocks(lines):
            self._lines += block
            self._length += sum(map(len, block)) + len(block)
            if self._length >= _BLOCK:
                self._flush()

    def pages(self) -> Iterator[list[bytes]]:
        """Yield all records, in their order."""
        self._flush()
        self.schema.is_complete = True
        self._file.seek(0)
        while head := self._file.read(_HEAD.size):
            yield b"".join(unpack(self._file.read(*_HEAD.unpack(head)))).split(b"\n")

    def close(self) -> None:
        self._file.close()

    def _flush(self) -> None:
        if not self._lines:
            return
        block = pack(b"\n".join(self._lines))
        self.size += _HEAD.size + len(block)
        if self._limit is not None and self.size > self._limit:
            raise SpoolLimitError(self._limit)
        self._file.write(_HEAD.pack(len(block)) + block)
        self._lines, self._length = [], 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
