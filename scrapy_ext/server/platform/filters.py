"""``filter``, ``filterall``, ``filterany`` and ``where``: conditions on the records of a read (``api.platform``).

A record is selected when it meets every ``filter``, ``filterall`` and ``where``, and at least one ``filterany``, if
there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from scrapy_ext.api.platform.conditions import (
    Condition,
    RecordFilter,
    check_number,
    filter_of,
    kind_of,
    parse_condition,
)
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.platform.where import parse_where
from scrapy_ext.api.violations import refused
from scrapy_ext.server.computing.threads import in_data_thread, in_slow_thread
from scrapy_ext.server.http.call import Call

T = TypeVar("T")

_ALL: Final = ("filter", "filterall")
_ANY: Final = "filterany"
_WHERE: Final = "where"
_NAMES: Final = frozenset((*_ALL, _ANY, _WHERE))


def filter_of_call(call: Call) -> RecordFilter | None:
    """Return the filter of a call; None without conditions. Raises ``ContractError``."""
    if call.query.keys().isdisjoint(_NAMES):
        return None
    every: list[Condition] = []
    for name in _ALL:
        every += _parsed(call.all(name), name)
    for text in call.all(_WHERE):
        every += [clause.condition for clause in parse_where(text)]
        check_number(every)
    return filter_of(every, _parsed(call.all(_ANY), _ANY))


def _parsed(texts: Sequence[str], name: str) -> list[Condition]:
    """Return the conditions of parameters, up to the first that is too many: an expression takes milliseconds."""
    found: list[Condition] = []
    for text in texts:
        found.append(parse_condition(text, name))
        check_number(found)
    return found


async def chosen_of(conditions: RecordFilter, stored: Sequence[T], line_of: Callable[[T], bytes]) -> list[T]:
    """Return the selected of some records, in steps of which none keeps a thread for long."""
    found, at = list[T](), 0
    while at < len(stored):
        run = in_slow_thread if conditions.is_slow else in_data_thread
        more, at = await run(conditions.chosen, stored, line_of, at)
        found += more
    return found


def refuse_filters(call: Call) -> None:
    """Raise ``ContractError`` for filters where they are not supported: ignoring them would affect more records."""
    for name in (*_ALL, _ANY, _WHERE):
        if name in call.query:
            raise refused(name, "is not supported here", "Leave it out.")


class TimeWindow:
    """``startts`` (included) and ``endts`` (excluded) where records are arrays that begin with a time (ms)."""

    def __init__(self, startts: int, endts: int) -> None:
        self._startts = startts
        self._endts = endts

    @classmethod
    def of(cls, call: Call) -> TimeWindow | None:
        """Return the window of a call; None without parameters. Raises ``ContractError``."""
        startts, endts = call.number("startts"), call.number("endts")
        if startts is None and endts is None:
            return None
        return cls(startts or 0, MAX_NUMBER if endts is None else endts)

    def chooses(self, line: bytes) -> bool:
        """Return true for a JSON array that begins with a time in the window."""
        record: list[Any] = msgspec.json.decode(line)
        return bool(record) and kind_of(record[0]) is float and bool(self._startts <= record[0] < self._endts)
