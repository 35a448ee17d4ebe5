"""Columns of a table, and their types, found in the records.

A type is a set of flags that only grows, so the order of the records does not change it. Records of one shape (the same
names with the same types) are examined once, except integers, lists and objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scrapy_ext.formats.column_types import EXACT, ColumnType, Seen
from scrapy_ext.formats.encoder import ColumnsChangedError, decode
from scrapy_ext.formats.recognizer import Recognizer, is_faster

#: Maximum columns. Further fields are members of the JSON object in the last column.
MAX_COLUMNS: Final = 1000
#: Maximum depth of nested types, members of an object, and nested types in all; what exceeds them is JSON text.
MAX_DEPTH: Final = 8
MAX_MEMBERS: Final = 200
MAX_NESTED: Final = 10_000
#: Names in all shapes that are remembered.
_SHAPES: Final = 20_000
#: Column of further fields.
OTHER: Final = "_other"
#: Column of records that are not objects.
VALUE: Final = "value"


_KINDS: Final[Mapping[type, int]] = {
    bool: Seen.BOOLEAN,
    int: Seen.INTEGER,
    # A column of fractions has integers too, so these are not a new type of it.
    float: Seen.FLOAT | Seen.INTEGER,
    str: Seen.STRING,
    list: Seen.LIST,
    dict: Seen.OBJECT,
}
_NESTED: Final = Seen.LIST | Seen.OBJECT


class Schema:
    """The columns of records, in order of first appearance. It grows with each :meth:`add`."""

    def __init__(self, *, typed: bool = True) -> None:
        self.columns: dict[str, ColumnType] = {}
        #: True when records have fields beyond the columns.
        self.has_other = False
        #: True when the columns were chosen, so that other fields are left out.
        self.chosen = False
        #: True when the schema was found in exactly the records that are written, which then need no check.
        self.is_complete = False
        #: Grows with every change.
        self.version = 0
        #: True when the columns have types, which Parquet needs.
        self.typed = typed
        self._nested = 0
        self._remembered = 0
        self._shapes: dict[object, tuple[str, ...]] = {}
        #: Recognizer of records that leave this version as it is.
        self._recognizer: Recognizer | None = None
        self._recognized = 0

    @classmethod
    def of(cls, names: Iterable[str], *, typed: bool = False) -> Schema:
        """Return chosen columns: other fields of the records are left out."""
        schema = cls(typed=typed)
        schema.chosen = True
        schema.columns = {name: ColumnType() for name in names}
        return schema

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> Schema:
        """Return the columns of a job by its stats, the most frequent first. It has no types, which Parquet needs."""
        schema = cls(typed=False)
        names = sorted(counts, key=lambda name: (-counts[name], name))
        schema.columns = {name: ColumnType() for name in names[:MAX_COLUMNS]}
        schema.has_other = len(names) > MAX_COLUMNS
        return schema

    @property
    def names(self) -> list[str]:
        """The names of all columns; with :attr:`has_other`, the last is that of further fields."""
        return [*self.columns, self.other] if self.has_other else list(self.columns)

    @property
    def other(self) -> str:
        name = OTHER
        while name in self.columns:
            name += "_"
        return name

    @property
    def types(self) -> int:
        """The number of types of columns, elements and members, at most."""
        return len(self.columns) + self._nested

    def add(self, lines: Sequence[bytes]) -> None:
        """Add the fields of stored records, and their types."""
        if self.chosen and not self.typed:
            return
        if not self._recognizes(lines):
            self.observe(map(decode, lines))

    def observe(self, records: Iterable[Any]) -> None:
        """Add the fields of decoded records, and their types."""
        for record in records:
            fields = as_fields(record)
            shape: object = (*fields, *map(type, fields.values())) if self.typed else tuple(fields)
            names = self._shapes.get(shape)
            if names is None:
                names = self._new_shape(shape, fields)
            for name in names:
                if name in self.columns:
                    self._see(self.columns[name], fields[name], 0)

    def row(self, record: object) -> list[Any]:
        """Return the values of a decoded record by column; raises :class:`ColumnsChangedError` for another field."""
        fields = as_fields(record)
        cells = list(map(fields.get, self.columns))
        if self.has_other:
            rest = {name: value for name, value in fields.items() if name not in self.columns}
            cells.append(rest or None)
        elif not self.chosen and not fields.keys() <= self.columns.keys():
            new = [name for name, value in fields.items() if name not in self.columns and value is not None]
            if new:
                raise ColumnsChangedError(f"{new[0][:60]!r} is new")
        return cells

    def _recognizes(self, lines: Sequence[bytes]) -> bool:
        """Return true when it is certain that the records add nothing."""
        if not is_faster(lines, self.types):
            return False
        if self._recognizer is None or self._recognized != self.version:
            self._recognizer = Recognizer(self.columns, typed=self.typed, passes_others=self.chosen)
            self._recognized = self.version
        return self._recognizer.recognizes(lines)

    def _new_shape(self, shape: object, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Add the fields of a new shape; return those to examine in each record."""
        for name, value in fields.items():
            if name not in self.columns and not self._add_column(name):
                continue
            if self.typed:
                self._see(self.columns[name], value, 0)
        varying = (int, list, dict) if self.typed else ()
        names = tuple(name for name, value in fields.items() if type(value) in varying)
        self._remembered += len(fields) + 1
        if self._remembered <= _SHAPES:
            self._shapes[shape] = names
        return names

    def _add_column(self, name: str) -> bool:
        if self.chosen:
            return False
        if len(self.columns) >= MAX_COLUMNS:
            self.version += not self.has_other
            self.has_other = True
            return False
        self.columns[name] = ColumnType()
        self.version += 1
        return True

    def _see(self, column: ColumnType, value: Any, depth: int) -> None:
        if value is None:
            return
        seen: int = _KINDS[type(value)]
        if seen == Seen.INTEGER and not -EXACT <= value <= EXACT:
            seen |= Seen.LONG if -(2**63) <= value < 2**63 else Seen.HUGE
        if seen & ~column.seen:
            column.seen |= seen
            self.version += 1
        if not seen & _NESTED or (column.kind == Seen.JSON and column.seen != Seen.OBJECT):
            return  # its nested types do not matter
        if seen == Seen.LIST:
            self._see_list(column, value, depth)
        else:
            self._see_object(column, value, depth)

    def _see_list(self, column: ColumnType, values: list[Any], depth: int) -> None:
        if column.element is None:
            if not self._may_nest(column, depth):
                return
            column.element = ColumnType()
        for value in values:
            self._see(column.element, value, depth + 1)

    def _see_object(self, column: ColumnType, members: dict[str, Any], depth: int) -> None:
        for name, value in members.items():
            member = column.members.get(name)
            if member is None:
                if len(column.members) >= MAX_MEMBERS or not self._may_nest(column, depth):
                    column.seen |= Seen.JSON
                    column.members.clear()
                    return
                member = column.members[name] = ColumnType()
                self.version += 1
            self._see(member, value, depth + 1)

    def _may_nest(self, column: ColumnType, depth: int) -> bool:
        if depth >= MAX_DEPTH or self._nested >= MAX_NESTED:
            column.seen |= Seen.JSON
            self.version += 1
            return False
        self._nested += 1
        return True


def as_fields(record: object) -> Mapping[str, Any]:
    """Return the fields of a record; one that is not an object has the field ``value`` alone."""
    return record if isinstance(record, dict) else {VALUE: record}
