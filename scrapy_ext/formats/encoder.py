"""Interface of the formats: records in, bytes of a file out, in steps of bounded memory.

Records are the stored bytes of JSON values. All calls block; a server makes them in a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.json_decoder import decoder

Page = Sequence[bytes]

decode: Final = decoder(Any)
encode: Final = msgspec.json.Encoder().encode


class Encoder(ABC):
    """One file in one format. Its bytes are those of ``begin``, of each ``page``, and of ``end``, in this order."""

    #: True for a format that decodes records, which takes long for large ones.
    decodes = True
    #: Maximum bytes of output: ``growth`` per byte of a record, and ``columns`` per record.
    growth, columns = 1, 0
    #: Bytes of memory that are kept between pages.
    kept = 0

    def begin(self) -> bytes:
        return b""

    @abstractmethod
    def page(self, records: Page) -> bytes:
        """Return the output that is complete with these records, at least one."""

    def end(self) -> bytes:
        return b""


class ColumnsChangedError(ValueError):
    """A record has a field or a type that the schema has not: it was stored after the schema was found."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"The records changed after their columns were found: {detail}. Write the file again.")


class MissingLibraryError(RuntimeError):
    """A format needs a library that is not installed."""

    def __init__(self, name: str, library: str, extra: str) -> None:
        super().__init__(f"{name} needs {library}. Install it: pip install 'scrapy-ext[{extra}]'.")


def plain(value: object) -> str:
    """Return a value as the text of a cell: strings unchanged, None as "", other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()
