"""Arrow's types of columns, and stored records as Arrow's tables.

Arrow's JSON parser takes a tenth of the time of decoding to Python's objects. It gives the same values, or an error,
except for numbers in columns of doubles, which are compared here: ``-0`` is the integer 0, and an integer that a double
does not have exactly is not of the column. Its time and memory grow with records times columns, which callers bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pj

from scrapy_ext.formats.column_types import EXACT, ColumnType, Seen
from scrapy_ext.formats.encoder import encode

#: Maximum records times types of records that are parsed at once.
CELLS: Final = 250_000
#: The integer zero with a sign.
_NEGATIVE_ZERO: Final = re.compile(rb"-0[\s,\]}]")

Convert = Callable[[Any], Any]
#: Returns true for values that all are exact in a double.
Check = Callable[[pa.Array], bool]


class Parser:
    """Parser of records that have certain columns.

    ``checks``: checks of columns whose values the parser might change. ``ignores_others``: passes over other fields,
    and over other members of objects.
    """

    def __init__(self, columns: pa.Schema, checks: Mapping[str, Check], *, ignores_others: bool = False) -> None:
        self._options = pj.ParseOptions(
            explicit_schema=columns, unexpected_field_behavior="ignore" if ignores_others else "error"
        )
        self._names = columns.names
        self._checks = checks
        self._has_doubles = any(_has(kind, pa.types.is_float64) for kind in columns.types)
        #: True when new members of the columns' objects are passed over.
        self.ignores_members = ignores_others and any(_has(kind, pa.types.is_struct) for kind in columns.types)

    def table(self, lines: Sequence[bytes], *, is_checked: bool = False) -> pa.Table | None:
        """Return the records as a table; None when the parser does not give exactly their values.

        ``is_checked``: the records were checked before.
        """
        # The parser ends the process at a null in place of an object (pyarrow 26.0.1).
        if {line[:1] for line in lines} != {b"{"}:
            return None
        text = b"\n".join(lines)
        if self._has_doubles and _NEGATIVE_ZERO.search(text):
            return None
        # One block: a record is never split.
        options = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            table = pj.read_json(pa.BufferReader(text), options, self._options, pa.system_memory_pool())
            table.validate()
        except pa.ArrowException:
            return None
        if table.num_rows != len(lines) or table.column_names != self._names:
            return None
        return table if is_checked or self._is_exact(table) else None

    def _is_exact(self, table: pa.Table) -> bool:
        return all(check(chunk) for name, check in self._checks.items() for chunk in table.column(name).chunks)


def exact_checks(columns: Mapping[str, ColumnType]) -> dict[str, Check]:
    """Return checks of columns of doubles."""
    checks = {name: _check(column) for name, column in columns.items()}
    return {name: check for name, check in checks.items() if check is not None}


def _check(column: ColumnType) -> Check | None:
    match column.kind:
        case Seen.FLOAT:
            return _is_exact
        case Seen.LIST:
            check = _check(column.element or ColumnType())
            return None if check is None else lambda values: check(values.flatten())
        case Seen.OBJECT:
            members = exact_checks(column.members)
            if not members:
                return None
            return lambda values: all(check(values.field(name)) for name, check in members.items())
        case _:
            return None


def _is_exact(values: pa.Array) -> bool:
    data = values.buffers()[1]
    if data is None or not len(values):
        return True
    # pyarrow.compute does the same, and takes 9 MB of memory. Nulls are zeros.
    view = memoryview(data).cast("B")
    numbers = (view.cast("d") if pa.types.is_float64(values.type) else view.cast("q"))[values.offset :][: len(values)]
    least, greatest = min(numbers), max(numbers)
    return bool(least > -EXACT and greatest < EXACT)


def _has(kind: pa.DataType, of: Callable[[pa.DataType], bool]) -> bool:
    """Return true for a type, or one with an element or member, for which ``of`` is true."""
    return of(kind) or any(_has(kind.field(index).type, of) for index in range(kind.num_fields))


def arrow_type(column: ColumnType) -> tuple[pa.DataType, Convert | None]:
    """Return Arrow's type of a column, and the function that converts its values, if they need it."""
    match column.kind:
        case Seen.BOOLEAN:
            return pa.bool_(), None
        case Seen.INTEGER:
            return pa.int64(), None
        case Seen.FLOAT:
            return pa.float64(), None
        case Seen.NOTHING | Seen.STRING:
            return pa.string(), None
        case Seen.LIST:
            return _list(column.element or ColumnType())
        case Seen.OBJECT:
            return _struct(column.members)
        case _:
            return pa.string(), as_json


def as_json(value: object) -> str | None:
    return None if value is None else encode(value).decode()


def _list(element: ColumnType) -> tuple[pa.DataType, Convert | None]:
    kind, convert = arrow_type(element)
    if convert is None:
        return pa.list_(kind), None
    return pa.list_(kind), lambda values: None if values is None else [convert(value) for value in values]


def _struct(members: dict[str, ColumnType]) -> tuple[pa.DataType, Convert | None]:
    types = {name: arrow_type(member) for name, member in members.items()}
    converts = {name: convert for name, (_, convert) in types.items() if convert is not None}
    kind = pa.struct([pa.field(name, kind) for name, (kind, _) in types.items()])
    if not converts:
        return kind, None

    def convert(value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        return value | {name: change(value.get(name)) for name, change in converts.items()}

    return kind, convert
