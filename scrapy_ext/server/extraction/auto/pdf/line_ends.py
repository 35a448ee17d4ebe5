"""Joining of the end of a line with the next one: with a space, without one, or without the hyphen between them.

A hyphen at the end of a line may divide a word, or belong to it. The rest of the document decides: whether the word
stands in it with or without its hyphen, else whether this is so for more of the words at other ends of lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

#: What only divides words.
SOFT_HYPHEN: Final = "\u00ad"
#: What may divide a word, with the two codes that PDFium has for a hyphen at the end of a line.
HYPHENS: Final = "-\u2010\x02\ufffe"
#: Ends of lines after which a word may go on.
OPEN_ENDS: Final = SOFT_HYPHEN + HYPHENS
#: What is written for the codes of PDFium.
_SHOWN: Final = {"\x02": "-", "\ufffe": "-", SOFT_HYPHEN: ""}
#: Share of lines with such a hyphen from which a document divides words, where none of them stands elsewhere in it.
DIVIDES: Final = 0.04
_LONGEST_WORD: Final = 100

_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LAST_PART = re.compile(r"[^\W\d_]+$")
_FIRST_PART = re.compile(r"[^\W\d_]+")
#: Scripts that have no spaces between words: Han, kana and Thai.
_NO_SPACE = re.compile(r"[\u0e00-\u0e7f\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")


class _Divided(NamedTuple):
    """The two parts of a word at the end of a line and at the begin of the next one."""

    first: str
    second: str

    @classmethod
    def of(cls, line: str, after: str) -> _Divided | None:
        """Return the parts; None where they are surely two words."""
        first, second = _LAST_PART.search(line[-_LONGEST_WORD:-1]), _FIRST_PART.match(after[:_LONGEST_WORD])
        if first is None or second is None or not second[0][0].islower() or first[0][1:] != first[0][1:].lower():
            return None
        return cls(first[0].casefold(), second[0])


class LineEnds:
    """The words of a document, by which the ends of its lines are joined."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: set[str] = set()
        divided: Counter[_Divided] = Counter()
        count, before = 0, ""
        for line in lines:
            count += 1
            words = _WORD.findall(line)
            is_open = bool(line) and line[-1] in OPEN_ENDS
            # The last word of such a line may be a part of one.
            self._words.update(word.casefold().replace("\u2010", "-") for word in (words[:-1] if is_open else words))
            if before and (parts := _Divided.of(before, line)):
                divided[parts] += 1
            before = line if is_open else ""
        whole = sum(number for parts, number in divided.items() if self._is_whole(parts))
        compound = sum(number for parts, number in divided.items() if self._is_compound(parts))
        self._divides = whole > compound if whole or compound else divided.total() >= DIVIDES * count

    def text_of(self, lines: Sequence[str]) -> str:
        """Return lines as one text."""
        parts = [self._ended(line, after) for line, after in pairwise(lines)]
        last = lines[-1] if lines else ""
        return "".join((*parts, last[:-1] + _SHOWN.get(last[-1:], last[-1:])))

    def _ended(self, line: str, after: str) -> str:
        """Return a line with what is between it and the next one."""
        last, first = line[-1:], after[:1]
        if last == SOFT_HYPHEN:
            return line[:-1]
        if last in HYPHENS and line[-2:-1].isalnum():
            return line[:-1] + (_SHOWN.get(last, last) if self._keeps_hyphen(line, after) else "")
        return line if _NO_SPACE.match(last) and _NO_SPACE.match(first) else f"{line} "

    def _keeps_hyphen(self, line: str, after: str) -> bool:
        parts = _Divided.of(line, after)
        if parts is None:
            return True
        return not self._is_whole(parts) and (not self._divides or self._is_compound(parts))

    def _is_whole(self, parts: _Divided) -> bool:
        return parts.first + parts.second in self._words

    def _is_compound(self, parts: _Divided) -> bool:
        return f"{parts.first}-{parts.second}" in self._words
