"""Lenient reader of JSON in pages: with comments, trailing commas, other quotes, or cut off in the middle.

One pass of tokens from left to right, in linear time, with bounded nesting. Only the reader of a string decides where
it ends, so no sign inside of a string is taken for a comment, a quote or a comma. Faulty parts are skipped, missing
ends are assumed. Numbers stay text, as the page has them; one whose end is not clear (``19,90``) is nothing.
"""

from __future__ import annotations

import json
import re
from typing import Final

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | bool | None

#: Values nested deeper are dropped, and what follows them.
MAX_DEPTH: Final = 60

#: A comment of HTML in one line; without its end, it is a mark around the whole script.
_MARK: Final = r"<!--[^\n{\[]{0,500}?-->"
#: White space, comments of HTML, and marks around scripts.
_SPACE = re.compile(rf"(?:[\s\ufeff]+|{_MARK}|<!--|-->|<!\[CDATA\[|\]\]>|;)+")
_QUOTES: Final = "\"'"
_QUOTE_OR_ESCAPE: Final = {quote: re.compile(rf"[{quote}\\]") for quote in _QUOTES}
#: The text after a quote that closes a string: the sign that goes on, the end, or the next name where a comma
#: is missing; comments may stand before it. Any other quote is part of the text.
_AFTER_CLOSING = re.compile(
    r"""[,:}\]]|;?\s*$|"[^"\n]{1,60}"\s{0,60}:|'[^'\n]{1,60}'\s{0,60}:|[^\W\d]\w{0,60}\s{0,60}:(?!//)"""
)
_WHITE = re.compile(r"\s*")
_COMMENT_ENDS: Final = {"//": "\n", "/*": "*/", "<!": "-->"}
#: Comments between a string and the sign after it, and the longest: bounds that keep the time linear.
MAX_COMMENTS: Final = 5
MAX_COMMENT_LENGTH: Final = 2_000
_NAME = re.compile(r"[^\s,:;\[\]{}\"']+")
#: A value without quotes, which may have white space inside.
_BARE_VALUE = re.compile(r"(?:(?!//|/\*|<!--)[^,\[\]{}\"'\n;])+")
#: Decimals after a comma, where a comma ends a number: no name begins with a digit.
_DECIMALS = re.compile(r",\d+(?=\s*(?:[,}\]]|//|/\*|$))")
_NUMBER = re.compile(r"-?[\d.]+")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "", "\n": ""}
_WORDS: Final[dict[str, bool | None]] = {
    "null": None, "undefined": None, "NaN": None, "Infinity": None, "true": True, "false": False,
}  # fmt: skip


def loads(text: str) -> list[JsonValue]:
    """Return the objects and arrays of a text, valid or not: usually one, several when they follow each other."""
    try:
        value = json.loads(text, strict=False, parse_float=str, parse_int=str, parse_constant=_nothing)
    except (ValueError, RecursionError):
        return _Reader(text).values()
    # Some templates encode twice.
    return _Reader(value).values() if isinstance(value, str) else [value]


def _nothing(_: str) -> None:
    return None


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def values(self) -> list[JsonValue]:
        found: list[JsonValue] = []
        while (character := self._next()) is not None:
            if character in "{[":
                found.append(self._value(0))
            else:
                self._at += 1
        return found

    def _next(self) -> str | None:
        """Return the next character that is neither white space nor comment, without consuming it."""
        while self._at < len(self._text):
            space = _SPACE.match(self._text, self._at)
            if space:
                self._at = space.end()
            elif self._text.startswith("//", self._at):
                self._skip_to("\n")
            elif self._text.startswith("/*", self._at):
                self._skip_to("*/")
            else:
                return self._text[self._at]
        return None

    def _skip_to(self, end: str) -> None:
        at = self._text.find(end, self._at)
        self._at = len(self._text) if at < 0 else at + len(end)

    def _value(self, depth: int) -> JsonValue:
        character = self._next()
        if depth > MAX_DEPTH:
            self._at = len(self._text)
            return None
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._array(depth)
        if character is not None and character in _QUOTES:
            return self._string()
        return self._bare_value()

    def _object(self, depth: int) -> dict[str, JsonValue]:
        self._at += 1
        members: dict[str, JsonValue] = {}
        while (character := self._next()) is not None and character != "]":
            if character == "}":
                self._at += 1
                break
            if character in ",:":
                self._at += 1
            elif character in "{[":
                # A value without a name is dropped.
                self._value(depth + 1)
            else:
                name = self._string() if character in _QUOTES else self._name()
                if self._next() == ":":
                    self._at += 1
                    members[name] = self._member(depth + 1)
        return members

    def _member(self, depth: int) -> JsonValue:
        value = self._value(depth)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            decimals = _DECIMALS.match(self._text, self._at)
            if decimals is not None:
                self._at = decimals.end()
                return None
        return value

    def _array(self, depth: int) -> list[JsonValue]:
        self._at += 1
        members: list[JsonValue] = []
        while (character := self._next()) is not None and character != "}":
            if character == "]":
                self._at += 1
                break
            if character in ",:":
                self._at += 1
            else:
                members.append(self._value(depth + 1))
        return members

    def _string(self) -> str:
        quotes = _QUOTE_OR_ESCAPE[self._text[self._at]]
        start = at = self._at + 1
        while (found := quotes.search(self._text, at)) is not None:
            if found.group() == "\\":
                at = found.end() + 1
            elif self._closes(found.end()):
                self._at = found.end()
                return _unescape(self._text[start : found.start()])
            else:
                at = found.end()
        self._at = len(self._text)
        return _unescape(self._text[start:])

    def _closes(self, at: int) -> bool:
        """Return whether a quote that ends here ends its string."""
        for _ in range(MAX_COMMENTS):
            white = _WHITE.match(self._text, at)
            at = white.end() if white else at
            end = _COMMENT_ENDS.get(self._text[at : at + 2])
            found = self._text.find(end, at, at + MAX_COMMENT_LENGTH) if end else -1
            if not end or found < 0:
                break
            at = found + len(end)
        return _AFTER_CLOSING.match(self._text, at) is not None

    def _name(self) -> str:
        name = _NAME.match(self._text, self._at)
        # A sign that begins nothing is skipped.
        self._at = name.end() if name else self._at + 1
        return name.group() if name else ""

    def _bare_value(self) -> str | bool | None:
        value = _BARE_VALUE.match(self._text, self._at)
        if value is None:
            return None
        self._at = value.end()
        word = value.group().strip()
        return _WORDS.get(word, word or None)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Two escapes may be the halves of one character.
    return _ESCAPED.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)
