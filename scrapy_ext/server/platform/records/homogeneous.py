"""Check of homogeneous records: most bodies have objects that all have the same fields, which is cheaper to check.

A type that is generated for these fields decodes a line and verifies in one step that it has exactly these, so that
only the size remains to count. A block with any other line is checked like every other block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from scrapy_ext.server.store.records.chunks import Record

#: Maximum fields of a type; the decoder searches them one by one, which is too slow for more.
_MAX_FIELDS: Final = 200
#: Cached types; generating one takes longer than decoding a block.
_CACHED: Final = 64
#: Errors of a line with other fields, or of an invalid one.
_OTHER: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)

_encode: Final = msgspec.msgpack.Encoder().encode


class HomogeneousRecords:
    """The common fields of the records of one body so far."""

    def __init__(self) -> None:
        #: The common fields; empty when unknown or different.
        self.names: tuple[str, ...] = ()
        self._given_up = False

    def sizes(self, lines: Sequence[bytes]) -> list[int] | None:
        """Return the sizes of the records of these lines in stats; None when any has other fields."""
        decode = _decoder(self.names) if self.names else None
        if decode is not None:
            try:
                # Each record is freed before the next is created, so that their memory stays in the processor's cache.
                return list(map(len, map(_encode, map(decode, lines))))
            except _OTHER:
                pass
        if self.names:  # the rest of the body is probably as mixed
            self.names, self._given_up = (), True
        return None

    def learn(self, records: Sequence[Record]) -> None:
        """Record the common fields of these decoded objects, if they have the same."""
        if self._given_up or not records:
            return
        fields = records[0].keys()
        if len(fields) <= _MAX_FIELDS and all(record.keys() == fields for record in records):
            self.names = tuple(fields)
        else:
            self._given_up = True


@lru_cache(maxsize=_CACHED)
def _decoder(names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
    """Return a decoder of objects with exactly these fields; None if no type can have them."""
    rename = {f"f{place}": name for place, name in enumerate(names)}
    try:
        shape = msgspec.defstruct(
            "Shape", [(field, Any) for field in rename], rename=rename, forbid_unknown_fields=True, gc=False
        )
    except ValueError:  # a name with a quote or a control character
        return None
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shape)
    return decoder.decode
