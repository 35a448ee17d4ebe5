"""Broken rules of a contract: the field, the rule, and how to correct it; control characters are escaped in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

# ── control characters of terminals and text direction, escaped where people read foreign text ──

#: All control characters but tabs and line breaks, and those that change the direction of text.
CONTROL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""Return the text with control characters as ``\u001b``, like Python and JSON write them."""
    return CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def encodable(text: str) -> str:
    """Return the text with ``?`` for halves of surrogate pairs, which a page may have and no encoding can hold."""
    return text.encode("utf-8", "replace").decode()


class Violation(msgspec.Struct, frozen=True):
    """A field that breaks a rule.

    ``status`` is the HTTP status of the contract: 400 for malformed input, 413 for too large input, 422 for well-formed
    but incompatible input.
    """

    field: str
    rule: str
    remedy: str
    status: int = 400

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}. {self.remedy}"


#: Maximum violations in the message of an error.
_SHOWN: Final = 100


class ContractError(ValueError):
    """Input that breaks a contract; ``violations`` lists every broken rule, the message only the first ones.

    Raised before anything is sent (client) or stored (server).
    """

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(self.summary(_SHOWN))

    def summary(self, most: int) -> str:
        """Return the first ``most`` violations, one per line."""
        lines = [str(violation) for violation in self.violations[:most]]
        return "\n".join(lines if len(self.violations) <= most else [*lines, "And others."])

    @property
    def status(self) -> int:
        """The lowest status of the violations, 400 without any."""
        return min((violation.status for violation in self.violations), default=400)


class Checks:
    """Checks of several fields, whose violations are raised together."""

    def __init__(self) -> None:
        self._wrong: list[Violation] = []

    def passed(self, read: Callable[[], T]) -> T | None:
        """Return the result of a check; None if it raises ``ContractError``, which is kept."""
        try:
            return read()
        except ContractError as error:
            self._wrong.extend(error.violations)
            return None

    def end(self) -> None:
        """Raise ``ContractError`` with all violations, if there are any."""
        if self._wrong:
            raise ContractError(self._wrong)


def refused(field: str, rule: str, remedy: str) -> ContractError:
    """Return the error of one field that breaks one rule."""
    return ContractError([Violation(field, rule, remedy)])
