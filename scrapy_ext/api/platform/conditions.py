"""Conditions on records: ``["field", "operator", [arguments]]``, as parameters of reads have them in JSON.

Records are checked one by one as they are read, so that a condition takes no memory, and no check of a record can take
long. Of a record, only the fields that the conditions name are decoded.

A field is the name of a member. A name with dots that the record does not have is a path: ``offers.0.price`` is the
member ``price`` of the first element of ``offers``. The field :data:`EVERYWHERE` stands for all values of a record, at
any depth, for the operators ``hastext`` and ``hasnottext``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.platform.expressions import MAX_EXPRESSIONS, Expression, SlowTime, compiled
from scrapy_ext.api.violations import refused

T = TypeVar("T")

#: Field that stands for all values of a record.
EVERYWHERE: Final = "*"
#: Maximum conditions of a read, arguments of a condition, and texts that a read searches for in its records: each is
#: searched in all of a record, which may have a megabyte.
MAX_CONDITIONS: Final = 50
_MAX_ARGUMENTS: Final = 1000
MAX_SEARCHED: Final = 1000
#: Seconds after which a step of a read ends, so that other reads have their turn.
STEP_SECONDS: Final = 0.1
#: Maximum characters of a text that may be a number, and parts of a path.
_MAX_NUMBER: Final = 40
_MAX_PATH: Final = 20

_EXAMPLE: Final = 'Write ["price","num>",[10]], for example.'

#: Test of a value with the arguments of a condition.
Test = Callable[[Any, Sequence[Any]], bool]


class _Absent:
    """The value of a field that a record does not have."""


ABSENT: Final = _Absent()


class Condition(NamedTuple):
    """``field``: None for all values of a record."""

    field: str | None
    test: Test
    arguments: Sequence[Any]


class RecordFilter:
    """Conditions of which a record must meet all of ``every``, and at least one of ``some``, if there are any."""

    def __init__(self, every: Sequence[Condition], some: Sequence[Condition] = ()) -> None:
        self._slow = SlowTime()
        for expression in _expressions_of(*every, *some):
            expression.slow = self._slow
        self._every = list(enumerate(every))
        self._some = list(enumerate(some, len(every)))
        self._reader = FieldReader([condition.field for condition in (*every, *some)])
        self._texts = [
            [msgspec.json.encode(text)[1:-1].decode().lower() for text in condition.arguments]
            for condition in every
            if condition.field is None and condition.test is _has_text
        ]

    @property
    def is_slow(self) -> bool:
        """True after a slow search of an expression."""
        return self._slow.is_any

    def chooses(self, line: bytes) -> bool:
        """Return true for a JSON record that is selected; raises ``ContractError`` when an expression takes too
        long."""
        if self._texts and not self._may_have_texts(line):
            return False
        values = self._reader.read(line)
        return all(condition.test(values[place], condition.arguments) for place, condition in self._every) and (
            not self._some or any(condition.test(values[place], condition.arguments) for place, condition in self._some)
        )

    def _may_have_texts(self, line: bytes) -> bool:
        """Return false if the JSON has not all texts: most records of a search are not decoded."""
        # The writer may have escaped letters differently.
        if b"\\u" in line or b"\\/" in line:
            return True
        lowered = line.decode().lower()
        return all(any(text in lowered for text in texts) for texts in self._texts)

    def chosen(self, stored: Sequence[T], line_of: Callable[[T], bytes], first: int = 0) -> tuple[list[T], int]:
        """Return the selected of some records from ``first`` on, and where to continue: a step takes a bounded time."""
        until, found = time.monotonic() + STEP_SECONDS, []
        for place in range(first, len(stored)):
            if self.chooses(line_of(stored[place])):
                found.append(stored[place])
            if time.monotonic() > until:
                return found, place + 1
        return found, len(stored)


def filter_of(every: Sequence[Condition], some: Sequence[Condition] = ()) -> RecordFilter | None:
    """Return the filter of some conditions, None without any; raises ``ContractError`` for too many."""
    check_number([*every, *some])
    return RecordFilter(every, some) if every or some else None


def check_number(conditions: Sequence[Condition]) -> None:
    """Raise ``ContractError`` for more conditions or expressions than a read may have."""
    if len(conditions) > MAX_CONDITIONS:
        raise refused("filter", f"may have {MAX_CONDITIONS} conditions at most", "Use fewer conditions.")
    if len(list(_expressions_of(*conditions))) > MAX_EXPRESSIONS:
        raise refused("filter", f"may have {MAX_EXPRESSIONS} regular expressions at most", "Join them with |.")
    if sum(len(condition.arguments) for condition in conditions if condition.test in _SEARCHES) > MAX_SEARCHED:
        raise refused("filter", f"may search for {MAX_SEARCHED} texts at most", "Search for fewer texts.")


def parse_condition(text: str, name: str) -> Condition:
    """Return the condition of a parameter; raises ``ContractError``."""
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise refused(name, f"is not JSON: {error}", _EXAMPLE) from None
    return condition_of(given, name)


def condition_of(given: object, name: str) -> Condition:
    """Return the condition of a decoded array; raises ``ContractError``."""
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
    everywhere = field == EVERYWHERE and known.test in (_has_text, _HAS_NOT_TEXT)
    return Condition(None if everywhere else field, known.test, known.prepare(arguments, name))


# ── reading fields ──

_decode: Final = decoder(dict[str, Any])
#: Characters that have an escape in JSON, which the names of a record type may not have.
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')


class FieldReader:
    """Reader of some fields of JSON records, which decodes no others."""

    def __init__(self, fields: Sequence[str | None]) -> None:
        paths = [field.split(".", _MAX_PATH) if field is not None and "." in field else [] for field in fields]
        names = sorted({name for field, path in zip(fields, paths, strict=True) for name in (field or "", *path[:1])})
        self._picked = None
        if None not in fields and all(name and not _ESCAPED.search(name) for name in names):
            self._picked = _picker(tuple(names))
        places = {name: f"f{place}" if self._picked else name for place, name in enumerate(names)}
        #: Of each field its place in a decoded record (None: all of the record), that of its path's first member, and
        #: the rest of the path.
        self._wanted = [
            (None if field is None else places[field], places[path[0]] if path else "", path[1:])
            for field, path in zip(fields, paths, strict=True)
        ]

    def read(self, line: bytes) -> list[Any]:
        """Return the value of each field, :data:`ABSENT` where the record has none, and the record for None."""
        if self._picked is None:
            return self._from_all(_decode(line))
        record, values = self._picked(line), []
        for place, root, path in self._wanted:
            value = getattr(record, place or "")
            values.append(_within(getattr(record, root), path) if path and value is ABSENT else value)
        return values

    def _from_all(self, record: dict[str, Any]) -> list[Any]:
        values: list[Any] = []
        for place, root, path in self._wanted:
            value = record if place is None else record.get(place, ABSENT)
            values.append(_within(record.get(root, ABSENT), path) if path and value is ABSENT else value)
        return values


@lru_cache(64)
def _picker(names: tuple[str, ...]) -> Callable[[bytes], Any]:
    """Return a decoder of records that skips all members but these, in half to a tenth of the time of all."""
    fields = [(f"f{place}", Any, ABSENT) for place in range(len(names))]
    rename = {f"f{place}": name for place, name in enumerate(names)}
    return decoder(msgspec.defstruct("Picked", fields, rename=rename, gc=False))


def _within(value: object, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(value, dict):
            value = value.get(part, ABSENT)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and len(part) < 8 and int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value


# ── numbers and text ──

#: A number in a text, with a currency or a unit of up to four characters before or behind it.
_NUMBER_TEXT: Final = re.compile(
    r"\s{0,4}(?:[^\W\d_]{1,4}\.?|[$€£¥₹₽])?\s{0,2}([+-]?[0-9][0-9.,]{0,30})\s{0,2}(?:[^\W\d_]{1,4}\.?|[$€£¥₹₽%])?\s{0,4}"
)
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_GROUPED: Final = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_GROUPED_BY_POINTS: Final = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?[0-9]+,[0-9]{1,2}")


def number_in(value: object) -> float | int | None:
    """Return a number, or that of a text such as ``37.50``, ``$1,299.00``, ``59,90 €`` or ``5 kg``; None for others.

    A comma before exactly three digits groups them, a point never does unless a comma follows.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > _MAX_NUMBER:
        return None
    found = _NUMBER_TEXT.fullmatch(value)
    if found is None:
        return None
    text = found[1]
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _GROUPED.fullmatch(text):
        return float(text.replace(",", ""))
    if _GROUPED_BY_POINTS.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    return float(text.replace(",", ".")) if _DECIMAL_COMMA.fullmatch(text) else None


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts of a value at any depth; of other values, their JSON. The keys of objects are not among them."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
        elif each is not ABSENT and each is not None:
            yield msgspec.json.encode(each).decode()


def _as_given(arguments: Sequence[Any], _name: str) -> Sequence[Any]:
    return arguments


def _numbers(arguments: Sequence[Any], name: str) -> Sequence[Any]:
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in arguments):
        raise refused(name, "must have numbers as the arguments of this operator", 'Write ["price","num>",[20]].')
    return arguments


def _texts(arguments: Sequence[Any], name: str) -> Sequence[str]:
    if not all(isinstance(argument, str) for argument in arguments):
        raise refused(name, "must have text as the arguments of this operator", 'Write ["name","icontains",["x"]].')
    return arguments


def _lowered(arguments: Sequence[Any], name: str) -> Sequence[str]:
    return [text.lower() for text in _texts(arguments, name)]


def _expressions_of(*conditions: Condition) -> Iterator[Expression]:
    return (each for condition in conditions for each in condition.arguments if isinstance(each, Expression))


def _same(one: object, other: object) -> bool:
    # In JSON true is not 1.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _is_one_of(value: object, arguments: Sequence[Any]) -> bool:
    return any(_same(value, argument) for argument in arguments)


def _ordered(compare: Callable[[Any, Any], bool]) -> Test:
    """Return a comparison of numbers with numbers or of text with text; other values are not ordered."""

    def test(value: object, arguments: Sequence[Any]) -> bool:
        kind = kind_of(value)
        return kind is not None and any(
            kind is kind_of(argument) and compare(value, argument) for argument in arguments
        )

    return test


def _as_number(compare: Callable[[Any, Any], bool]) -> Test:
    """Return a comparison of numbers, also in text (:func:`number_in`); other values do not compare."""

    def test(value: object, arguments: Sequence[Any]) -> bool:
        number = number_in(value)
        return number is not None and any(compare(number, argument) for argument in arguments)

    return test


def kind_of(value: object) -> type | None:
    """Return the type as which a value is ordered: float, str, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None


def _contains(value: object, arguments: Sequence[Any]) -> bool:
    if isinstance(value, str):
        return any(isinstance(argument, str) and argument in value for argument in arguments)
    return _has_element(value, arguments)


def _contains_lowered(value: object, arguments: Sequence[str]) -> bool:
    if isinstance(value, list):
        return _in_any((each for each in value if isinstance(each, str)), arguments)
    return isinstance(value, str) and _in_any((value,), arguments)


def _has_text(value: object, arguments: Sequence[str]) -> bool:
    return _in_any(texts_in(value), arguments)


def _in_any(texts: Iterable[str], arguments: Sequence[str]) -> bool:
    """Return whether one of the texts, in lower case, has one of the arguments; the time grows with their sum."""
    # No JSON has a text with half of a surrogate pair, so nothing is found across two texts.
    joined = "\udc00".join(("", *texts)).lower()
    return bool(joined) and any(argument in joined for argument in arguments)


def _has_element(value: object, arguments: Sequence[Any]) -> bool:
    if not isinstance(value, list):
        return False
    known = set(map(_hashable, arguments))
    return any(_hashable(element) in known for element in value)


def _hashable(value: object) -> tuple[object, ...]:
    """Return what is equal for values that :func:`_same` takes for equal."""
    return isinstance(value, bool), _frozen(value)


def _frozen(value: object) -> object:
    """Return a value of JSON as one that has a hash."""
    if isinstance(value, list):
        return (list, *map(_frozen, value))
    if isinstance(value, dict):
        return (dict, frozenset((name, _frozen(each)) for name, each in value.items()))
    return value


def _is_empty(value: object, _arguments: Sequence[Any]) -> bool:
    return value is ABSENT or value is None or (isinstance(value, str | list | dict) and not value)


def _matches(value: object, patterns: Sequence[Expression]) -> bool:
    return isinstance(value, str) and any(pattern.is_in(value) for pattern in patterns)


def _not(test: Test) -> Test:
    return lambda value, arguments: not test(value, arguments)


class _Operator(NamedTuple):
    test: Test
    prepare: Callable[[Sequence[Any], str], Sequence[Any]] = _as_given
    takes_arguments: bool = True


_HAS_NOT_TEXT: Final = _not(_has_text)
#: The tests that search for each argument in all of a value.
_SEARCHES: Final = frozenset({_contains, _contains_lowered, _has_text, _HAS_NOT_TEXT})
_EQUAL: Final = _as_number(lambda number, argument: bool(number == argument))

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
    "matches": _Operator(_matches, lambda arguments, name: compiled(_texts(arguments, name), name)),
    "haselement": _Operator(_has_element),
    "hasnotelement": _Operator(_not(_has_element)),
    "exists": _Operator(lambda value, _: value is not ABSENT, takes_arguments=False),
    "notexists": _Operator(lambda value, _: value is ABSENT, takes_arguments=False),
    "isempty": _Operator(_is_empty, takes_arguments=False),
    "isnotempty": _Operator(_not(_is_empty), takes_arguments=False),
    # Beyond the contract: data of pages has numbers as text, and values at any depth.
    "num=": _Operator(_EQUAL, _numbers),
    "num!=": _Operator(_not(_EQUAL), _numbers),
    "num>": _Operator(_as_number(lambda number, argument: bool(number > argument)), _numbers),
    "num>=": _Operator(_as_number(lambda number, argument: bool(number >= argument)), _numbers),
    "num<": _Operator(_as_number(lambda number, argument: bool(number < argument)), _numbers),
    "num<=": _Operator(_as_number(lambda number, argument: bool(number <= argument)), _numbers),
    "hastext": _Operator(_has_text, _lowered),
    "hasnottext": _Operator(_HAS_NOT_TEXT, _lowered),
}
