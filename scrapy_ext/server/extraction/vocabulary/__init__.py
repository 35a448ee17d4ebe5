"""Vocabularies: the words, phrases and names that extraction searches on pages, as TOML files beside this module.

A list is a list of words, or of alternatives of one regular expression. A text is a regular expression; line breaks in
it, with the spaces around them, are ignored. ``{name}`` in either stands for another entry of the file. A table has
such entries by name, in a significant order.

A file is read when the first module that uses it is imported, so that a process reads only those of its kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from scrapy_ext.compatibility.toml import tomllib

_REFERENCE: Final = re.compile(r"\{([a-z_]+)\}")
#: The letters beyond ASCII that equal one of ASCII without regard to case.
_ASCII_BY_EQUAL: Final = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
#: Parts of the source of a regular expression that are no letters, and capital letters.
_CAPITAL: Final = re.compile(r"\\.|\(\?P|[A-Z]")
#: Capital letters and their like by their codes, and ranges from a capital to a small letter: they have another meaning
#: in lower case.
_NOT_IN_LOWER_CASE: Final = re.compile(r"\\(?:x|u00)[45]|\\u(?:013[01]|017[fF]|212[aA])|\\[UN]|\[[^\]]*[A-Z]-[a-z]")


class VocabularyError(ValueError):
    """A fault in a vocabulary file, or a name that it does not have."""


class CaselessPattern:
    """A regular expression without regard to case, for many texts of which few match.

    With regard to case, the first letter of a text rules out most alternatives. So texts of ASCII are first searched
    in lower case: of a long list of phrases, in a fifth of the time.
    """

    def __init__(self, source: str) -> None:
        if match := _NOT_IN_LOWER_CASE.search(source):
            raise VocabularyError(f"{match.group()!r} has no form in lower case. Write the letters themselves.")
        self._exact = re.compile(source, re.IGNORECASE)
        self._of_lower = re.compile(
            _CAPITAL.sub(
                lambda match: match.group().lower() if len(match.group()) == 1 else match.group(),
                source.translate(_ASCII_BY_EQUAL),
            )
        )

    def search(self, text: str) -> re.Match[str] | None:
        if text.isascii() and not self._of_lower.search(text.lower()):
            return None
        return self._exact.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._exact.finditer(text) if self.search(text) else iter(())

    def fullmatch(self, text: str) -> re.Match[str] | None:
        if text.isascii() and not self._of_lower.fullmatch(text.lower()):
            return None
        return self._exact.fullmatch(text)


class Vocabulary:
    """The entries of one file."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._entries: dict[str, Any] = tomllib.loads(source)
        for name, entry in self._entries.items():
            for key, value in entry.items() if isinstance(entry, dict) else [(name, entry)]:
                self._check(key, value)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def words(self, name: str) -> tuple[str, ...]:
        """Return the members of a list."""
        entry = self._entry(name)
        if not isinstance(entry, list):
            raise VocabularyError(f"{self._file}: {name!r} is not a list. Write a list of texts.")
        return tuple(entry)

    def text(self, name: str) -> str:
        """Return an entry as the source of a regular expression."""
        return self._text(self._entry(name))

    def pattern(self, name: str, flags: re.RegexFlag | int = 0) -> re.Pattern[str]:
        """Return an entry as a regular expression."""
        try:
            return re.compile(self.text(name), flags)
        except re.error as error:
            raise VocabularyError(f"{self._file}: {name!r} is not a regular expression: {error}.") from error

    def patterns(self, *names: str, flags: re.RegexFlag | int = 0) -> list[re.Pattern[str]]:
        """Return several entries as regular expressions, in the order of their names."""
        return [self.pattern(name, flags) for name in names]

    def caseless(self, name: str) -> CaselessPattern:
        """Return an entry as a regular expression without regard to case, for many texts of which few match."""
        return CaselessPattern(self.pattern(name, re.IGNORECASE).pattern)

    def table(self, name: str) -> dict[str, str]:
        """Return the entries of a table, each as :meth:`text` returns it, in the order of the file."""
        return {key: self._text(value) for key, value in self._table(name).items()}

    def groups(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the lists of a table."""
        return {key: tuple(members) for key, members in self._table(name).items()}

    def _table(self, name: str) -> dict[str, Any]:
        entry = self._entry(name)
        if not isinstance(entry, dict):
            raise VocabularyError(f"{self._file}: {name!r} is not a table. Write [name] with members.")
        return entry

    def _entry(self, name: str) -> Any:
        try:
            return self._entries[name]
        except KeyError:
            raise VocabularyError(f"{self._file}: there is no {name!r}. Add it, or use another name.") from None

    def _text(self, entry: str | list[str]) -> str:
        text = "".join(map(str.strip, entry.splitlines())) if isinstance(entry, str) else "|".join(entry)
        return _REFERENCE.sub(lambda match: self.text(match.group(1)), text) if "{" in text else text

    def _check(self, name: str, value: object) -> None:
        members = value if isinstance(value, list) else [value]
        if not members or not all(isinstance(member, str) and member for member in members):
            raise VocabularyError(f"{self._file}: {name!r} is neither a text nor a list of texts. Write one of them.")
        if len(set(members)) < len(members):
            raise VocabularyError(f"{self._file}: {name!r} names a member twice. Remove one.")


@cache
def load_vocabulary(name: str) -> Vocabulary:
    """Read a vocabulary, once in a process; raises :class:`VocabularyError` for a faulty file."""
    file = f"{name}.toml"
    return Vocabulary(file, Path(__file__).with_name(file).read_text("utf-8"))
