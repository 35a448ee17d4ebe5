"""Recognition of records that would not change a schema, in a fourth of the time of decoding them to Python's objects.

They are decoded to a type that has the columns of the schema and, if it is typed, the kinds of values that these have.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.formats.column_types import EXACT, ColumnType, Seen
from scrapy_ext.formats.columns import blocks
from scrapy_ext.formats.encoder import Page

#: Columns of a record, or members of an object, up to which decoding is faster: each name is compared with all.
_MAX_NAMES: Final = 200
#: Maximum types of a schema, and records and bytes of a call per type, for which a decoder is made.
_MAX_TYPES: Final = 2000
_MIN_RECORDS: Final = 16
_TYPES_PER_RECORD: Final = 16
#: Bytes of a record per type from which recognition is faster: each absent field is set to null.
_BYTES_PER_TYPE: Final = 8

_Exact = Annotated[int, msgspec.Meta(ge=-EXACT, le=EXACT)]
_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def is_faster(lines: Page, types: int) -> bool:
    """Return true when recognition of records, with so many types in all, takes less time than to decode them."""
    if not 0 < types <= _MAX_TYPES or len(lines) < max(_MIN_RECORDS, types // _TYPES_PER_RECORD):
        return False
    return sum(map(len, lines)) >= _BYTES_PER_TYPE * types * len(lines)


class Recognizer:
    """Recognizer of records that leave columns as they are.

    ``typed``: the columns have types. ``passes_others``: other fields are passed over.
    """

    def __init__(self, columns: Mapping[str, ColumnType], *, typed: bool = True, passes_others: bool = False) -> None:
        kinds = {name: _type_of(column) if typed else msgspec.Raw for name, column in columns.items()}
        record = _object(kinds, passes_others=passes_others)
        self._decode = None if record is None else decoder(list[record])  # type: ignore[valid-type]

    def recognizes(self, lines: Page) -> bool:
        """Return true when it is certain that the records add nothing."""
        if self._decode is None:
            return False
        try:
            for block in blocks(lines):
                self._decode(b"[" + b",".join(block) + b"]")
        except msgspec.ValidationError:
            return False
        return True


def _type_of(column: ColumnType) -> Any:
    """Return a type whose values do not change a column; None if there is none but null."""
    seen = column.seen
    is_json = column.kind == Seen.JSON and seen != Seen.OBJECT  # nested types do not matter
    kinds: list[Any] = []
    if seen & Seen.BOOLEAN:
        kinds.append(bool)
    if seen & Seen.INTEGER:
        kinds.append(_Long if seen & Seen.LONG else _Exact)
    if seen & Seen.FLOAT:
        kinds.append(float)
    if seen & Seen.STRING:
        kinds.append(str)
    if seen & Seen.LIST:
        kinds.append(list[Any] if is_json else list[_type_of(column.element or ColumnType())])  # type: ignore[misc]
    if seen & Seen.OBJECT:
        kinds.append(
            dict[str, Any]
            if is_json
            else _object(dict(zip(column.members, map(_type_of, column.members.values()), strict=True)))
        )
    return reduce(or_, [kind for kind in kinds if kind is not None], None)


def _object(kinds: Mapping[str, Any], *, passes_others: bool = False) -> Any:
    """Return the type of objects with members of these types; None when their number or names are not for one."""
    if len(kinds) > _MAX_NAMES:
        return None
    fields = {f"field_{place}": name for place, name in enumerate(kinds)}
    members = [(field, kinds[name], None) for field, name in fields.items()]
    try:
        return msgspec.defstruct("Object", members, rename=fields, gc=False, forbid_unknown_fields=not passes_others)
    except ValueError:  # a name that is escaped in JSON
        return None
