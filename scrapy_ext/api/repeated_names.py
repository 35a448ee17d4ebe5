"""Names that an object of a JSON text has more than once. Decoders take the last one without a word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from scrapy_ext.api.violations import Violation

_LONGEST: Final = 60


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, as often as they are in it."""


#: Numbers are not looked at: Python refuses those of many digits.
_AS_PAIRS: Final = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=float)


def repeated_names(text: str, most: int = 1, *, place: str = "", verbatim: str = "") -> Iterator[Violation]:
    """Yield at most ``most`` names that are repeated in a JSON text, each with its place below ``place``.

    ``verbatim``: a member whose value is not looked at. Raises ``RecursionError``, and ``ValueError`` for another text.
    """
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)

    json.JSONDecoder(object_pairs_hook=look, parse_int=float).decode(text)
    if found:
        yield from islice(_repeated_in(_AS_PAIRS.decode(text), place, verbatim), most)


def _repeated_in(value: Any, place: str, verbatim: str) -> Iterator[Violation]:
    if isinstance(value, _Pairs):
        names = set[str]()
        for name, member in value:
            path = f"{place}.{_shown(name)}" if place else _shown(name)
            if name in names:
                yield Violation(path, "is given more than once", "Send it once.")
            names.add(name)
            if path != verbatim:
                yield from _repeated_in(member, path, verbatim)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _repeated_in(member, f"{place}[{number}]", verbatim)


def _shown(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
