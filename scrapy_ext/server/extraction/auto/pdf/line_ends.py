"""Joining of the end of a line with the next one: with a space, without one, or without the hyphen between them.

A hyphen at the end of a line may divide a word, or belong to it. The rest of the document decides: whether the word
stands in it with or without its hyphen, else whether the document divides words at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

#: What PDFs have in place of a hyphen that divides a word: a soft hyphen, or a code for one.
SOFT_HYPHENS: Final = "\u00ad\x02\ufffe"
HYPHENS: Final = "-\u2010"
#: Share of the lines with a hyphen at their end from which a document divides words.
DIVIDES: Final = 0.02
_LONGEST_WORD: Final = 100

_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LAST_PART = re.compile(r"[^\W\d_]+$")
_FIRST_PART = re.compile(r"[^\W\d_]+")
#: Scripts that have no spaces between words: Han, kana and Thai.
_NO_SPACE = re.compile(r"[\u0e00-\u0e7f\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")


class LineEnds:
    """The words of a document, by which the ends of its lines are joined."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: set[str] = set()
        ends = count = 0
        for line in lines:
            count += 1
            ends += line[-1:] in HYPHENS and line[-2:-1].isalpha()
            words = _WORD.findall(line)
            # The last word of such a line may be a part of one.
            self._words.update(word.casefold() for word in (words[:-1] if line[-1:] in HYPHENS else words))
        self._divides = ends >= DIVIDES * count and ends > 0

    def text_of(self, lines: Sequence[str]) -> str:
        """Return lines as one text."""
        parts = [self._ended(line, after) for line, after in pairwise(lines)]
        return "".join((*parts, *lines[-1:]))

    def _ended(self, line: str, after: str) -> str:
        """Return a line with what is between it and the next one."""
        last, first = line[-1:], after[:1]
        if last and last in SOFT_HYPHENS:
            return line.rstrip(SOFT_HYPHENS)
        if last and last in HYPHENS and line[-2:-1].isalnum():
            return line if self._keeps_hyphen(line, after) else line[:-1]
        return line if _NO_SPACE.match(last) and _NO_SPACE.match(first) else f"{line} "

    def _keeps_hyphen(self, line: str, after: str) -> bool:
        start, end = _LAST_PART.search(line[-_LONGEST_WORD:-1]), _FIRST_PART.match(after[:_LONGEST_WORD])
        if start is None or end is None or not end[0][0].islower():
            return True
        first, second = start[0].casefold(), end[0].casefold()
        if first + second in self._words:
            return False
        return not self._divides or any(f"{first}{hyphen}{second}" in self._words for hyphen in HYPHENS)
