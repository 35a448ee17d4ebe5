"""Regular expressions of conditions: bounded in number, length and time, since users write them.

A search keeps the interpreter's lock, so that no other work of a server goes on meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final, Protocol

from scrapy_ext.api.violations import refused
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS

#: Maximum regular expressions of a read, and characters of one.
MAX_EXPRESSIONS: Final = 10
MAX_LENGTH: Final = 256
#: Seconds of a search in one value. Processor time above which a search is slow, and of all slow searches of a read.
SECONDS: Final = 0.01
_SLOW: Final = 0.001
SLOW_SECONDS: Final = 5.0
#: Nested counted repetitions multiply, so that a short expression may take all memory.
_COUNTED: Final = re.compile(r"(?<!\\)(?:\\\\)*\{")
#: Maximum nested groups of an expression: each repetition of a repetition doubles the time that compiling takes, to
#: 18 seconds for 20 of them (regex 2026, 63 characters), and 15 ms for 10.
_MAX_NESTED: Final = 8


class SlowTime:
    """Processor time of the slow searches of a read."""

    def __init__(self) -> None:
        self._spent = 0.0

    @property
    def is_any(self) -> bool:
        return self._spent > 0

    def add(self, seconds: float) -> None:
        """Raise ``ContractError`` when a read has spent too much."""
        if seconds > _SLOW:
            self._spent += seconds
        if self._spent > SLOW_SECONDS:
            raise refused("filter", f"has spent {SLOW_SECONDS:g} s in slow expressions", "Use simpler ones.") from None


class _Pattern(Protocol):
    """An expression of the library ``regex``, which is imported late."""

    def search(self, string: str, *, timeout: float) -> object: ...


class Expression:
    """A compiled regular expression. ``slow``: the slow searches of the read that it belongs to."""

    def __init__(self, compiled: _Pattern) -> None:
        self._compiled = compiled
        self.slow = SlowTime()

    def is_in(self, value: str) -> bool:
        began = time.thread_time()
        try:
            found = self._compiled.search(value, timeout=SECONDS) is not None
        except (*TIMEOUT_ERRORS, MemoryError):
            raise refused("filter", "has an expression that takes too long on a record", "Use a simpler one.") from None
        self.slow.add(time.thread_time() - began)
        return found


def compiled(texts: Sequence[str], name: str) -> list[Expression]:
    """Compile expressions of the parameter ``name``; raises ``ContractError``."""
    remedy = 'Write ["url","matches",["/item/\\\\d+$"]], for example.'
    if len(texts) > MAX_EXPRESSIONS:
        raise refused(name, f"must have at most {MAX_EXPRESSIONS} expressions", "Join them with |.")
    for text in texts:
        if len(text) > MAX_LENGTH:
            raise refused(name, f"must have expressions of at most {MAX_LENGTH} characters", remedy)
        if _COUNTED.search(text):
            raise refused(name, "must have expressions without braces", "Repeat with *, + or ?, and write \\{ as text.")
        if _nested(text) > _MAX_NESTED:
            raise refused(name, f"must have expressions with at most {_MAX_NESTED} groups in one another", remedy)
    try:
        import regex  # two megabytes of memory, which most servers never need
    except ImportError:
        raise refused(
            name, "has a regular expression, for which a library is missing here", "Run pip install regex."
        ) from None
    try:
        return [Expression(regex.compile(text)) for text in texts]
    except (regex.error, RecursionError, OverflowError) as error:
        raise refused(name, f"is not a regular expression: {error}", remedy) from None


def _nested(pattern: str) -> int:
    """Return how many groups of an expression are in one another at most."""
    depth = most = 0
    for mark in re.findall(r"\\.|[()]", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(mark, 0)
        most = max(most, depth)
    return most
