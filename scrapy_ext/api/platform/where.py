"""Conditions on records as people type them: ``price > 20 and name ~ kettle``.

::

    conditions = condition *( "and" condition )
    condition  = field operator value *( "," value )
               / field [ "is" ] [ "not" ] ( "missing" / "present" / "empty" )
    operator   = "=" / "!=" / ">" / ">=" / "<" / "<=" / "~" / "!~" / "matches"
    field      = word / quoted / "*"
    value      = quoted / 1*word
    quoted     = DQUOTE *( character / backslash DQUOTE / backslash backslash ) DQUOTE

A text becomes conditions of the form that reads of the API have (``conditions``), so that both have one meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from scrapy_ext.api.platform.conditions import EVERYWHERE, MAX_CONDITIONS, Condition, condition_of
from scrapy_ext.api.violations import ContractError, refused

#: Maximum characters of a text.
MAX_WHERE: Final = 2000
#: Name of the parameter in errors.
_PARAMETER: Final = "where"

#: The operators of numbers where the value is a number, and of text elsewhere.
_COMPARISONS: Final = {each: (f"num{each}", each) for each in ("=", "!=", ">", ">=", "<", "<=")}
_TEXT: Final = {"~": "hastext", "!~": "hasnottext", "matches": "matches"}
#: States of a field by their word, and the same after "not".
_STATES: Final = {
    "missing": ("notexists", "exists"),
    "present": ("exists", "notexists"),
    "empty": ("isempty", "isnotempty"),
}
#: Operators with a value, and without one.
OPERATORS: Final = (*_COMPARISONS, *_TEXT)
STATES: Final = ("is missing", "is present", "is empty", "is not empty")

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*") | (?P<open>") | (?P<symbol>!=|>=|<=|!~|=|>|<|~) | (?P<comma>,)
        | (?P<word>[^\s",=<>~!][^\s",]*))""",
    re.VERBOSE | re.DOTALL,
)
#: The name of a field ends before an operator; a value, such as a URL, may contain one.
_NAME: Final = re.compile(r"\s*(?P<word>[^\s\",=<>~!]+)")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_SEVERAL: Final = "Write color = red, blue for several values of a field."
_EXAMPLE: Final = 'Write price > 20 and name ~ "desk lamp", for example.'


class Clause(NamedTuple):
    """A condition: the text that it was written as, its form in the API, and the test."""

    text: str
    form: list[Any]
    condition: Condition


def parse_where(text: str) -> list[Clause]:
    """Return the conditions of a text, at least one; raises ``ContractError`` that names the parameter ``where``."""
    if len(text) > MAX_WHERE:
        raise refused(_PARAMETER, f"must be {MAX_WHERE} characters at most", "Use fewer conditions.")
    return _Parser(text).clauses()


def written(field: str, operator: str, value: str) -> str:
    """Return the text of a condition whose parts were chosen in a form; raises ``ContractError`` for an operator that
    does not exist."""
    if operator in STATES:
        return f"{_quoted(field, _NAME)} {operator}"
    if operator not in OPERATORS:
        raise refused("operator", f"must be one of {', '.join((*OPERATORS, *STATES))}", "Choose one of them.")
    # A number is compared as one, so it stays without quotes.
    typed = operator in _COMPARISONS and (_NUMBER.fullmatch(value) or value.lower() in _CONSTANTS)
    shown = value if typed else _quoted(value, _TOKEN)
    return f"{_quoted(field, _NAME)} {operator} {shown}"


def _quoted(text: str, plain: re.Pattern[str]) -> str:
    found = plain.fullmatch(text)
    if found is not None and found["word"] == text and text.lower() not in _RESERVED:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_RESERVED: Final = frozenset(("and", "or", "is", "not", "matches", *_STATES, *_CONSTANTS))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Parser:
    """A text and the place that was reached in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def clauses(self) -> list[Clause]:
        clauses = [self._clause()]
        while (token := self._next(_TOKEN)) is not None:
            if token.kind != "word" or token.text.lower() != "and":
                raise self._wrong(
                    token.start, f"has {_shown(token.text)} where the next condition begins", _joined(token)
                )
            if len(clauses) == MAX_CONDITIONS:
                raise refused(_PARAMETER, f"may have {MAX_CONDITIONS} conditions at most", "Use fewer conditions.")
            clauses.append(self._clause())
        return clauses

    def _clause(self) -> Clause:
        field = self._peek(_TOKEN)
        start = len(self._text) if field is None else field.start
        if field is not None and field.kind != "quoted":
            field = self._peek(_NAME)
        if field is None:
            raise self._wrong(start, "must have the name of a field here", _EXAMPLE)
        self._at = field.end
        name = _unquoted(field.text) if field.kind == "quoted" else field.text
        token = self._next(_TOKEN)
        if token is None:
            raise self._wrong(field.end, f"must have an operator after {_shown(name)}", _EXAMPLE)
        form = [name, *self._state(token)] if token.kind == "word" and token.text.lower() != "matches" else None
        if form is None:
            form = [name, *self._comparison(token)]
        if name == EVERYWHERE and form[1] not in ("hastext", "hasnottext"):
            raise self._wrong(start, "has * with an operator other than ~ and !~", "Write * ~ kettle, for example.")
        try:
            return Clause(self._text[start : self._at].strip(), form, condition_of(form, _PARAMETER))
        except ContractError as error:
            (fault,) = error.violations
            raise self._wrong(start, fault.rule, fault.remedy) from None

    def _state(self, token: _Token) -> tuple[str, list[Any]]:
        """Return the operator of ``is missing`` and the like, whose first word was read."""
        found: _Token | None = token
        if token.text.lower() == "is":
            found = self._next(_TOKEN)
        negative = found is not None and found.text.lower() == "not"
        if negative:
            found = self._next(_TOKEN)
        states = None if found is None or found.kind != "word" else _STATES.get(found.text.lower())
        if states is None:
            rule = f"must have an operator before {_shown(token.text)}: one of {', '.join((*OPERATORS, *STATES))}"
            raise self._wrong(token.start, rule, _EXAMPLE)
        return states[negative], []

    def _comparison(self, token: _Token) -> tuple[str, list[Any]]:
        operator = token.text.lower()
        if token.kind not in ("symbol", "word"):
            rule = f"must have an operator before {_shown(token.text)}: one of {', '.join((*OPERATORS, *STATES))}"
            raise self._wrong(token.start, rule, _EXAMPLE)
        values = [self._value(operator)]
        while (comma := self._peek(_TOKEN)) is not None and comma.kind == "comma":
            self._at = comma.end
            values.append(self._value(operator))
        if operator in _TEXT:
            return _TEXT[operator], [text for text, _ in values]
        numbers = [_number(text) for text, is_quoted in values if not is_quoted and _NUMBER.fullmatch(text)]
        of_numbers, of_text = _COMPARISONS[operator]
        if len(numbers) == len(values):
            return of_numbers, numbers
        return of_text, [each for text, is_quoted in values for each in _values(text, quoted=is_quoted)]

    def _value(self, operator: str) -> tuple[str, bool]:
        """Return the next value, and true if it was quoted."""
        first = self._next(_TOKEN)
        if first is None or first.kind == "comma" or (first.kind == "word" and first.text.lower() == "and"):
            raise self._wrong(
                self._at if first is None else first.start, f"must have a value after {operator}", _EXAMPLE
            )
        if first.kind == "quoted":
            return _unquoted(first.text), True
        if first.kind == "symbol":
            raise self._wrong(first.start, f"has {first.text} where a value begins", 'Quote such text: name ~ "=x".')
        words = [first.text]
        while (token := self._peek(_TOKEN)) is not None and token.kind == "word" and token.text.lower() != "and":
            if token.text.lower() == "or":
                raise self._wrong(
                    token.start, 'has "or", which does not exist', "Write color = red, blue for several values."
                )
            words.append(token.text)
            self._at = token.end
        if token is not None and token.kind == "symbol":
            raise self._wrong(
                token.start, f"has {token.text} within a value", 'Put "and" between conditions, or quote text.'
            )
        return " ".join(words), False

    def _peek(self, pattern: re.Pattern[str]) -> _Token | None:
        """Return the next token without passing it; None at the end."""
        found = pattern.match(self._text, self._at)
        if found is None:
            if pattern is _NAME or not self._text[self._at :].strip():
                return None
            raise self._wrong(self._at, "has a character that cannot stand here", _EXAMPLE)
        kind = found.lastgroup or ""
        if kind == "open":
            raise self._wrong(found.start(kind), "has a quote without its end", "Add the closing quote.")
        return _Token(kind, found[kind], found.start(kind), found.end())

    def _next(self, pattern: re.Pattern[str]) -> _Token | None:
        token = self._peek(pattern)
        if token is not None:
            self._at = token.end
        return token

    def _wrong(self, place: int, rule: str, remedy: str) -> ContractError:
        return refused(_PARAMETER, f"{rule} (at character {place + 1})", remedy)


def _joined(token: _Token) -> str:
    if token.text.lower() == "or":
        return _SEVERAL
    return 'Put "and" between conditions, and text with other characters in quotes.'


def _shown(text: str) -> str:
    return repr(text[:40])


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _values(text: str, *, quoted: bool) -> Sequence[Any]:
    """Return the values that a text stands for: without quotes, ``true`` is also the value, and 5 also the number."""
    if quoted:
        return (text,)
    if text.lower() in _CONSTANTS:
        return (_CONSTANTS[text.lower()], text)
    return (_number(text), text) if _NUMBER.fullmatch(text) else (text,)
