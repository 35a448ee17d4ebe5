"""One broken rule of a contract, told so that its reader can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """A field that breaks a rule.

    ``status`` is the HTTP status that the contract gives the fault: 400 for input that is malformed by
    itself, 413 for input that is too large, 422 for input that is well formed but incompatible.
    """

    field: str
    rule: str
    remedy: str
    status: int = 400

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}. {self.remedy}"


#: Broken rules that the message of an error shows.
_SHOWN: Final = 100


class ContractError(ValueError):
    """Input that breaks a contract; ``violations`` lists every broken rule, not only the first. Its message shows some.

    Raised before anything is sent (client) or stored (server).
    """

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(self.told(_SHOWN))

    def told(self, most: int) -> str:
        """The first broken rules, one a line."""
        lines = [str(violation) for violation in self.violations[:most]]
        return "\n".join(lines if len(self.violations) <= most else [*lines, "And others."])

    @property
    def status(self) -> int:
        """The HTTP status of the answer: that of the first violation with the lowest status."""
        return min((violation.status for violation in self.violations), default=400)


def refused(field: str, rule: str, remedy: str) -> ContractError:
    """The error of one field that breaks one rule."""
    return ContractError([Violation(field, rule, remedy)])
