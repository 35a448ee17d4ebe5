"""Lenient reader of JSON in pages: with comments, trailing commas, bare quotes, or cut off in the middle.

One pass from left to right, in linear time, with bounded nesting. Faulty parts are skipped, missing ends are assumed.
Numbers stay text, as the page has them.
"""

from __future__ import annotations

import json
import re
from typing import Final

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | bool | None

#: Values nested deeper are dropped, and what follows them.
MAX_DEPTH: Final = 60

_SPACE = re.compile(r"(?:\s+|<!--|-->|<!\[CDATA\[|\]\]>|;)+")
_BARE_WORD = re.compile(r"[^\s,:;\[\]{}\"]+")
_QUOTE_OR_ESCAPE = re.compile(r'["\\]')
#: What follows a quote that closes a string: the sign that goes on, the end, or the next name where a comma
#: is missing. Any other quote is part of the text.
_AFTER_CLOSING = re.compile(r'\s*(?:[,:}\]]|$|"[^"\n]{1,60}"\s*:)')
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_WORDS: Final[dict[str, bool | None]] = {"null": None, "undefined": None, "true": True, "false": False}


def loads(text: str) -> list[JsonValue]:
    """Return the objects and arrays of a text, valid or not: usually one, several when they follow each other."""
    try:
        return [json.loads(text, strict=False, parse_float=str, parse_int=str, parse_constant=_nothing)]
    except (ValueError, RecursionError):
        return _Reader(text).values()


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
        if character == '"':
            return self._string()
        return self._bare_word()

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
                name = str(self._string() if character == '"' else self._bare_word())
                if self._next() == ":":
                    self._at += 1
                    members[name] = self._value(depth + 1)
        return members

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
        start = at = self._at + 1
        while (found := _QUOTE_OR_ESCAPE.search(self._text, at)) is not None:
            if found.group() == "\\":
                at = found.end() + 1
            elif _AFTER_CLOSING.match(self._text, found.end()):
                self._at = found.end()
                return _unescape(self._text[start : found.start()])
            else:
                at = found.end()
        self._at = len(self._text)
        return _unescape(self._text[start:])

    def _bare_word(self) -> str | bool | None:
        word = _BARE_WORD.match(self._text, self._at)
        if word is None:
            return None
        self._at = word.end()
        return _WORDS.get(word.group(), word.group().strip("'"))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Two escapes may be the halves of one character.
    return _ESCAPED.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)
