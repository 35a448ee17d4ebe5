"""``filter``, ``filterall`` and ``filterany``: conditions on the records of a read.

A condition is a JSON array ``["field", "operator", [arguments]]``. A record is selected when it meets every ``filter``
and ``filterall``, and at least one ``filterany``, if any. Records are checked one by one as they are read, so that a
condition takes no memory, and no check of a record can take long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.keys import MAX_NUMBER
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.call import Call

T = TypeVar("T")

_ALL: Final = ("filter", "filterall")
_ANY: Final = "filterany"

#: Maximum conditions of a request, and arguments of a condition.
_MAX_CONDITIONS: Final = 50
_MAX_ARGUMENTS: Final = 1000
#: Maximum characters of an expression, and seconds of a search in one value.
_MAX_PATTERN: Final = 256
_PATTERN_SECONDS: Final = 0.01
#: Nested counted repetitions multiply, so that a short expression may take all memory.
_COUNTED: Final = re.compile(r"(?<!\\)(?:\\\\)*\{")

_EXAMPLE: Final = 'Write ["price",">",[10]], for example.'

#: Test of a value with the arguments of a condition.
Test = Callable[[Any, Sequence[Any]], bool]

_decode: Final = decoder(dict[str, Any])


class _Condition(NamedTuple):
    field: str
    test: Test
    arguments: Sequence[Any]

    def met_by(self, record: Mapping[str, Any]) -> bool:
        return self.test(record.get(self.field, _ABSENT), self.arguments)


class RecordFilter:
    """The conditions of a request."""

    def __init__(self, every: Sequence[_Condition], some: Sequence[_Condition]) -> None:
        self._every = every
        self._some = some

    @classmethod
    def of(cls, call: Call) -> RecordFilter | None:
        """Return the filter of a call; None without conditions. Raises ``ContractError``."""
        every = [_condition(text, name) for name in _ALL for text in call.all(name)]
        some = [_condition(text, _ANY) for text in call.all(_ANY)]
        if len(every) + len(some) > _MAX_CONDITIONS:
            raise refused("filter", f"may be given {_MAX_CONDITIONS} times at most", "Use fewer conditions.")
        return cls(every, some) if every or some else None

    def chooses(self, line: bytes) -> bool:
        """Return true for a JSON record that is selected; raises :class:`Refusal` when an expression takes too long."""
        record = _decode(line)
        return all(condition.met_by(record) for condition in self._every) and (
            not self._some or any(condition.met_by(record) for condition in self._some)
        )

    def chosen(self, stored: Sequence[T], line_of: Callable[[T], bytes]) -> list[T]:
        return [each for each in stored if self.chooses(line_of(each))]


def refuse_filters(call: Call) -> None:
    """Raise ``ContractError`` for filters where they are not supported: ignoring them would affect more records."""
    for name in (*_ALL, _ANY):
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
        return bool(record) and _kind(record[0]) is float and bool(self._startts <= record[0] < self._endts)


class _Absent:
    """The value of a field that a record does not have."""


_ABSENT: Final = _Absent()


def _condition(text: str, name: str) -> _Condition:
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise refused(name, f"is not JSON: {error}", _EXAMPLE) from None
    if not isinstance(given, list) or len(given) not in (2, 3):
        raise refused(name, "must be an array of a field, an operator and an array of arguments", _EXAMPLE)
    field, operator, arguments = given if len(given) == 3 else [*given, []]
    if not isinstance(field, str):
        raise refused(name, "must begin with the name of a field", _EXAMPLE)
    known = _OPERATORS.get(operator) if isinstance(operator, str) else None
    if known is None:
        raise refused(name, f"must have one of the operators {', '.join(_OPERATORS)}, got {operator!r:.60}", _EXAMPLE)
    arguments = arguments if isinstance(arguments, list) else [arguments]
    if len(arguments) > _MAX_ARGUMENTS or (known.takes_arguments and not arguments):
        raise refused(name, f"with {operator} must have 1 to {_MAX_ARGUMENTS} arguments", _EXAMPLE)
    return _Condition(field, known.test, known.prepare(arguments, name))


def _as_given(arguments: Sequence[Any], _name: str) -> Sequence[Any]:
    return arguments


def _texts(arguments: Sequence[Any], name: str) -> Sequence[str]:
    if not all(isinstance(argument, str) for argument in arguments):
        raise refused(name, "must have text as the arguments of this operator", 'Write ["name","icontains",["x"]].')
    return arguments


def _lowered(arguments: Sequence[Any], name: str) -> Sequence[str]:
    return [text.lower() for text in _texts(arguments, name)]


def _patterns(arguments: Sequence[Any], name: str) -> Sequence[Any]:
    import regex  # two megabytes of memory, which most servers never need

    remedy = 'Write ["url","matches",["/item/\\\\d+$"]], for example.'
    for text in _texts(arguments, name):
        if len(text) > _MAX_PATTERN:
            raise refused(name, f"must have expressions of at most {_MAX_PATTERN} characters", remedy)
        if _COUNTED.search(text):
            raise refused(name, "must have expressions without braces", "Repeat with *, + or ?, and write \\{ as text.")
    try:
        return [regex.compile(text) for text in arguments]
    except (regex.error, RecursionError, OverflowError) as error:
        raise refused(name, f"is not a regular expression: {error}", remedy) from None


def _same(one: Any, other: Any) -> bool:
    # In JSON true is not 1.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _is_one_of(value: Any, arguments: Sequence[Any]) -> bool:
    return any(_same(value, argument) for argument in arguments)


def _ordered(compare: Callable[[Any, Any], bool]) -> Test:
    """Return a comparison of numbers with numbers or of text with text; other values are not ordered."""

    def test(value: Any, arguments: Sequence[Any]) -> bool:
        kind = _kind(value)
        return kind is not None and any(kind is _kind(argument) and compare(value, argument) for argument in arguments)

    return test


def _kind(value: Any) -> type | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None


def _contains(value: Any, arguments: Sequence[Any]) -> bool:
    if isinstance(value, str):
        return any(isinstance(argument, str) and argument in value for argument in arguments)
    return _has_element(value, arguments)


def _contains_lowered(value: Any, arguments: Sequence[str]) -> bool:
    if isinstance(value, str):
        lowered = value.lower()
        return any(argument in lowered for argument in arguments)
    return isinstance(value, list) and any(
        _contains_lowered(each, arguments) for each in value if isinstance(each, str)
    )


def _has_element(value: Any, arguments: Sequence[Any]) -> bool:
    return isinstance(value, list) and any(_is_one_of(element, arguments) for element in value)


def _is_empty(value: Any, _arguments: Sequence[Any]) -> bool:
    return value is _ABSENT or value is None or (isinstance(value, str | list | dict) and not value)


def _matches(value: Any, patterns: Sequence[Any]) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return any(pattern.search(value, timeout=_PATTERN_SECONDS) is not None for pattern in patterns)
    except (*TIMEOUT_ERRORS, MemoryError):
        fault = Violation("filter", "has an expression that takes too long on a record", "Use a simpler one.")
        raise Refusal(400, str(ContractError([fault]))) from None


def _not(test: Test) -> Test:
    return lambda value, arguments: not test(value, arguments)


class _Operator(NamedTuple):
    test: Test
    prepare: Callable[[Sequence[Any], str], Sequence[Any]] = _as_given
    takes_arguments: bool = True


#: One of several arguments must match; none with the negative operators.
_OPERATORS: Final = {
    "=": _Operator(_is_one_of),
    "!=": _Operator(_not(_is_one_of)),
    ">": _Operator(_ordered(lambda value, argument: bool(value > argument))),
    ">=": _Operator(_ordered(lambda value, argument: bool(value >= argument))),
    "<": _Operator(_ordered(lambda value, argument: bool(value < argument))),
    "<=": _Operator(_ordered(lambda value, argument: bool(value <= argument))),
    "contains": _Operator(_contains),
    "icontains": _Operator(_contains_lowered, _lowered),
    "matches": _Operator(_matches, _patterns),
    "haselement": _Operator(_has_element),
    "hasnotelement": _Operator(_not(_has_element)),
    "exists": _Operator(lambda value, _: value is not _ABSENT, takes_arguments=False),
    "notexists": _Operator(lambda value, _: value is _ABSENT, takes_arguments=False),
    "isempty": _Operator(_is_empty, takes_arguments=False),
    "isnotempty": _Operator(_not(_is_empty), takes_arguments=False),
}
