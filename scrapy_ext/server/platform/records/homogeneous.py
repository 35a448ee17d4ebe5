"""Records of one shape: most bodies hold objects that all have the same fields, and that is cheaper to check.

A type that is made for these fields decodes a line and says in one go that it has just these, so that nothing is left
to count but the size. Where a line differs, nothing is said of it: its block is looked at as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from scrapy_ext.server.store.records.chunks import Record

#: Fields of a shape; more are found one after the other, and too slowly.
_MAX_FIELDS: Final = 200
#: Shapes that are remembered; each is a type, which takes longer to make than a block to decode.
_REMEMBERED: Final = 64
#: What a line can be that is not of the shape, or not correct.
_OTHER: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)

_encode: Final = msgspec.msgpack.Encoder().encode


class Shapes:
    """The shape that the records of one body have had so far."""

    def __init__(self) -> None:
        #: The fields that all have; none: not known, or not the same.
        self.names: tuple[str, ...] = ()
        self._given_up = False

    def sizes(self, lines: Sequence[bytes]) -> list[int] | None:
        """The sizes of the records on these lines in stats, one on each; None when any is of another shape."""
        decode = _decoder(self.names) if self.names else None
        if decode is not None:
            try:
                # Each record is gone before the next one is made: what they take is still in the processor's cache.
                return list(map(len, map(_encode, map(decode, lines))))
            except _OTHER:
                pass
        if self.names:  # the rest of the body will be as mixed
            self.names, self._given_up = (), True
        return None

    def learn(self, records: Sequence[Record]) -> None:
        """See whether these objects, which were decoded without knowing, are all of one shape."""
        if self._given_up or not records:
            return
        fields = records[0].keys()
        if len(fields) <= _MAX_FIELDS and all(record.keys() == fields for record in records):
            self.names = tuple(fields)
        else:
            self._given_up = True


@lru_cache(maxsize=_REMEMBERED)
def _decoder(names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
    """Decodes an object that has just these fields; None where there can be none."""
    rename = {f"f{place}": name for place, name in enumerate(names)}
    try:
        shape = msgspec.defstruct(
            "Shape", [(field, Any) for field in rename], rename=rename, forbid_unknown_fields=True, gc=False
        )
    except ValueError:  # a name with a quote or a control character
        return None
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shape)
    return decoder.decode
