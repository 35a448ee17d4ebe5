"""Checks of monitors: one comparison of a measure of a job with a limit, as text, such as ``items >= 0.8 x median``.

The grammar::

    check    = measure [name] operator limit
    measure  = items | requests | errors | warnings | duration | outcome
             | status CODES | share CODES | coverage FIELD | stat NAME
    operator = >= | <= | ==
    limit    = NUMBER [% | s | m | h | d] | TEXT
             | [NUMBER x] median [of N runs] [after M runs]

A name with spaces, quotes or comparison signs is written as a JSON string. ``str(check)`` is the canonical text, which
parses to an equal check.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from scrapy_ext.api.violations import ContractError, Violation

MAX_CHECK: Final = 500
#: Earlier runs that a median is of, and the fewest with which it is compared.
DEFAULT_RUNS: Final = 10
MAX_RUNS: Final = 100
DEFAULT_LEAST: Final = 3

#: Measures without a name, and those with one: the word for their name in messages.
PLAIN: Final = ("items", "requests", "errors", "warnings", "duration", "outcome")
NAMED: Final[Mapping[str, str]] = {"status": "CODES", "share": "CODES", "coverage": "FIELD", "stat": "NAME"}
MEASURES: Final = (*PLAIN, *NAMED)
OPERATORS: Final = (">=", "<=", "==")
#: Measures that are a part of a whole, from 0 to 1.
SHARES: Final = ("share", "coverage")
#: Seconds of the units of a duration.
SECONDS: Final[Mapping[str, float]] = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Compares the floats of decimal fractions, such as 0.1 + 0.2.
_TOLERANCE: Final = 1e-9
_NUMBER: Final = r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?"
_LIMIT: Final = re.compile(rf"({_NUMBER})\s*(%|[smhd]?)", re.ASCII)
_MEDIAN: Final = re.compile(
    rf"(?:({_NUMBER})\s*[x×*]\s*)?median(?:\s+of\s+([0-9]{{1,4}})(?:\s+runs?)?)?"
    r"(?:\s+after\s+([0-9]{1,4})(?:\s+runs?)?)?",
    re.ASCII,
)
_CODES: Final = re.compile(r"(?:[1-9]xx|[1-9][0-9][0-9])(?:\+(?:[1-9]xx|[1-9][0-9][0-9])){0,19}", re.ASCII)
_BARE: Final = re.compile(r'[^\s"<>=]+')
_EXAMPLES: Final = 'Write one such as "items >= 100", "coverage price >= 95%" or "items >= 0.8 x median".'


class Check(msgspec.Struct, frozen=True):
    """A parsed check. ``limit``: a number, or text of ``outcome``; None: ``factor`` times the median."""

    measure: str
    operator: str
    of: str = ""
    #: Shares are fractions, durations seconds.
    limit: float | str | None = None
    factor: float = 1.0
    runs: int = DEFAULT_RUNS
    least: int = DEFAULT_LEAST

    @property
    def uses_median(self) -> bool:
        return self.limit is None

    @property
    def subject(self) -> str:
        """The measure with its name: ``coverage price``."""
        return f"{self.measure} {quoted(self.of)}" if self.of else self.measure

    def holds(self, value: float | str, limit: float | str) -> bool:
        """Compare a value with a limit of the same type."""
        if isinstance(value, str) or isinstance(limit, str):
            return value == limit
        near = math.isclose(value, limit, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        return near or (value > limit if self.operator == ">=" else value < limit if self.operator == "<=" else False)

    def __str__(self) -> str:
        if isinstance(self.limit, str):
            limit = quoted(self.limit)
        elif self.limit is not None:
            limit = shown(self.measure, self.limit)
        else:
            limit = "median" if self.factor == 1 else f"{_plain(self.factor)} x median"
            limit += "" if self.runs == DEFAULT_RUNS else f" of {_runs(self.runs)}"
            limit += "" if self.least == min(DEFAULT_LEAST, self.runs) else f" after {_runs(self.least)}"
        return f"{self.subject} {self.operator} {limit}"


def parse_check(text: str, field: str = "checks") -> Check:
    """Return the check that a text describes; raise :class:`ContractError`."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHECK or "\0" in text:
        raise _wrong(field, f"must be text of 1 to {MAX_CHECK} characters", _EXAMPLES)
    measure, rest = _word(text.strip())
    if measure not in MEASURES:
        raise _wrong(field, f"has no measure {measure[:40]!r}", f"The measures are {', '.join(MEASURES)}.")
    of = ""
    if measure in NAMED:
        of, rest = _name(rest, field, f"{measure} {NAMED[measure]}")
        _check_name(measure, of, field)
    operator = rest[:2]
    if operator not in OPERATORS:
        raise _wrong(field, f"must have {', '.join(OPERATORS)} after {measure} {of}".rstrip()[:120], _EXAMPLES)
    limit = rest[2:].strip()
    if measure == "outcome":
        return _of_outcome(operator, limit, field)
    if match := _MEDIAN.fullmatch(limit):
        return _with_median(Check(measure, operator, of), match, field)
    return msgspec.structs.replace(Check(measure, operator, of), limit=_number(measure, limit, field))


def quoted(name: str) -> str:
    """Return a name as it is written in a check: bare if possible, else as a JSON string."""
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def shown(measure: str, value: float | str) -> str:
    """Return a value in the unit of its measure: ``95%``, ``300s``, ``12``."""
    if isinstance(value, str):
        return value
    if measure in SHARES:
        return f"{_plain(value * 100)}%"
    return f"{_plain(value)}s" if measure == "duration" else _plain(value)


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _plain(number: float) -> str:
    """Return a number without an exponent and without zeros at its end."""
    text = f"{round(number, 9):.9f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _word(text: str) -> tuple[str, str]:
    match = re.match(r"[a-z]*", text)
    word = match[0] if match else ""
    return word or text[:40], text[len(word) :].strip()


def _name(text: str, field: str, form: str) -> tuple[str, str]:
    """Return the name that a text begins with, and the rest."""
    if text.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(text)
            name.encode()
        except (ValueError, UnicodeEncodeError):
            raise _wrong(field, "has a name whose quotes are not closed", "Write it as a JSON string.") from None
        return str(name), text[end:].strip()
    match = _BARE.match(text)
    if match is None:
        raise _wrong(field, f"needs a name: {form}", _EXAMPLES)
    return match[0], text[match.end() :].strip()


def _check_name(measure: str, of: str, field: str) -> None:
    if NAMED[measure] == "CODES":
        if not _CODES.fullmatch(of):
            raise _wrong(field, f"has {of[:40]!r}, which are no status codes", "Write 404, 5xx or 4xx+5xx.")
    elif not of or "\0" in of:
        raise _wrong(field, f"needs a name: {measure} {NAMED[measure]}", _EXAMPLES)


def _of_outcome(operator: str, limit: str, field: str) -> Check:
    if operator != "==":
        raise _wrong(field, "can only compare the outcome by ==", 'Write "outcome == finished".')
    name, rest = _name(limit, field, "outcome == finished")
    if rest or not 0 < len(name) <= 200 or "\0" in name:
        raise _wrong(field, "must compare the outcome with one close reason", 'Write "outcome == finished".')
    return Check("outcome", operator, limit=name)


def _with_median(check: Check, match: re.Match[str], field: str) -> Check:
    factor = 1.0 if match[1] is None else float(match[1])
    runs = DEFAULT_RUNS if match[2] is None else int(match[2])
    least = min(DEFAULT_LEAST, runs) if match[3] is None else int(match[3])
    if not 1 <= runs <= MAX_RUNS:
        raise _wrong(field, f"must have a median of 1 to {MAX_RUNS} runs", 'Write "items >= 0.8 x median of 7".')
    if not 1 <= least <= runs:
        raise _wrong(
            field,
            f"must apply after 1 to {runs} runs, those of the median",
            'Write "items >= 0.8 x median of 7 after 3".',
        )
    if factor < 0:
        raise _wrong(field, "must multiply the median by a number of 0 or more", 'Write "items >= 0.8 x median".')
    return msgspec.structs.replace(check, factor=factor, runs=runs, least=least)


def _number(measure: str, text: str, field: str) -> float:
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise _wrong(field, f"has no limit that is a number or a median: {text[:60]!r}", _EXAMPLES)
    number, unit = float(match[1]), match[2]
    if measure in SHARES:
        number = number / 100 if unit == "%" else number
        if unit not in ("", "%") or not 0 <= number <= 1:
            raise _wrong(field, f"must compare {measure} with 0% to 100%", f'Write "{measure} … >= 95%".')
        return round(number, 11)
    if measure == "duration" and unit in ("", *SECONDS):
        number *= SECONDS[unit or "s"]
    elif unit:
        raise _wrong(field, f"must compare {measure} with a number without {unit}", _EXAMPLES)
    if number < 0 and measure != "stat":
        raise _wrong(
            field, f"must compare {measure} with 0 or more", f"Write 0, or a number above it, after {measure}."
        )
    return number


def _wrong(field: str, rule: str, remedy: str) -> ContractError:
    return ContractError([Violation(field, rule, remedy)])
