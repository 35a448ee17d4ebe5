"""How often an extraction is tried, by what went wrong.

The table is plain data, and the setting EXTRACT_API_RETRY_POLICY is merged over it:
``{"/download/temporary-error": 5}`` sets the attempts of one problem type,
``{"network": {"attempts": 2, "wait": 1}}`` more of its row. What is not in the table, and every other 4xx, is
attempted once: repeating a request that must fail costs money and earns bans.

A limit is no failure of the request. The service says when to come back and the limiter holds all requests of
that scope until then, so that limits have many attempts, each of which waits its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.errors import ExtractError, UnexpectedAnswerError, UnreachableServiceError
from scrapy_ext.client.retry import Backoff

#: Seconds. A service that says to come back later than this is not waited for: the caller hears of it instead.
LONGEST_WAIT: Final = 3600.0

#: How often a service that has never answered may take no connection: a wrong address is to be told at once, not after
#: the patience that a service in use deserves.
FIRST_PATIENCE: Final = 2

#: Rows beside the problem types: nothing was sent, no whole answer, an answer of something else, a 5xx without a
#: type of its own.
NO_CONNECTION: Final = "no-connection"
NETWORK: Final = "network"
UNEXPECTED: Final = "unexpected-answer"
OTHER_5XX: Final = "5xx"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: ``attempts`` in all, the first being one of them; ``wait`` seconds before the second when the
    service does not say, doubled each time up to ``longest``."""

    attempts: int = 1
    wait: float = 1.0
    longest: float = 60.0


DEFAULT_RULES: Final[Mapping[str, Rule]] = {
    "/limits/over-user-limit": Rule(30, 2.0),
    "/limits/over-domain-limit": Rule(30, 2.0),
    "/limits/over-org-domain-limit": Rule(30, 2.0),
    "/limits/over-global-limit": Rule(30, 5.0),
    "/server/internal": Rule(3, 2.0),
    "/server/timed-out": Rule(3, 2.0),
    "/download/temporary-error": Rule(4, 5.0),
    # A service that is away for some minutes costs nothing but these.
    NO_CONNECTION: Rule(20, 1.0, 30.0),
    # It may have been done, and billed, each time.
    NETWORK: Rule(3, 1.0),
    UNEXPECTED: Rule(3, 1.0),
    OTHER_5XX: Rule(3, 2.0),
}
#: Rows of what may have been done, and failed: neither a limit, nor a service that takes no connection.
FAILURES: Final = (
    "/server/internal",
    "/server/timed-out",
    "/download/temporary-error",
    NETWORK,
    UNEXPECTED,
    OTHER_5XX,
)
_ONCE: Final = Rule()

#: The type to assume when an answer has none.
_TYPE_BY_STATUS: Final[Mapping[int, str]] = {
    429: "/limits/over-domain-limit",
    500: "/server/internal",
    503: "/limits/over-global-limit",
    520: "/download/temporary-error",
    521: "/download/internal-error",
}


class RetryPolicy:
    """The table in force. ``later`` is the one that replaces it once the service has answered."""

    def __init__(self, rules: Mapping[str, Rule] = DEFAULT_RULES) -> None:
        self._rules = rules
        self.later = self

    @classmethod
    def merged(cls, overrides: Mapping[str, Any], setting: str = "EXTRACT_API_RETRY_POLICY") -> RetryPolicy:
        """The default table with rows replaced; raises :class:`ContractError` naming ``setting``."""
        return cls(DEFAULT_RULES).with_overrides(overrides, setting)

    def with_overrides(self, overrides: Mapping[str, Any], setting: str) -> RetryPolicy:
        """This table with rows replaced; raises :class:`ContractError` naming ``setting``."""
        rules = dict(self._rules)
        faults: list[Violation] = []
        for name, value in overrides.items():
            row = {"attempts": value} if isinstance(value, int) and not isinstance(value, bool) else value
            try:
                rules[name] = _merged(rules.get(name, _ONCE), row)
            except (msgspec.ValidationError, TypeError, ValueError):
                faults.append(
                    Violation(
                        f"{setting}[{name!r}]",
                        "must be a number of attempts (at least 1), or a dict of attempts, wait and longest",
                        "Write 5, or {'attempts': 5, 'wait': 2.0, 'longest': 60.0}.",
                    )
                )
        faults.extend(_unknown_rows(overrides, setting))
        if faults:
            raise ContractError(faults)
        return RetryPolicy(rules)

    def at_first(self) -> RetryPolicy:
        """This table until the service has answered: with little patience for one that takes no connection."""
        first = self.with_overrides({NO_CONNECTION: FIRST_PATIENCE}, "")
        first.later = self
        return first

    def attempts(self, row: str) -> int:
        """How often at most something is tried that fails in this way."""
        return self._rules.get(row, _ONCE).attempts

    def wait(self, error: ExtractError, failures: int) -> float | None:
        """Seconds until the next attempt after so many failures of the same row; None: there is none."""
        rule = self._rules.get(row_of(error), _ONCE)
        if failures >= rule.attempts or (error.retry_after or 0) > LONGEST_WAIT:
            return None
        return Backoff(rule.wait, rule.longest).wait(failures, error.retry_after)


def row_of(error: ExtractError) -> str:
    """The row of the table that an error belongs to."""
    if isinstance(error, UnreachableServiceError):
        return NETWORK if error.ambiguous else NO_CONNECTION
    if isinstance(error, UnexpectedAnswerError):
        return UNEXPECTED
    status = error.status or 0
    if error.type in PROBLEM_TYPES:
        return error.type
    return _TYPE_BY_STATUS.get(status, OTHER_5XX if status >= 500 else error.type)


def _merged(rule: Rule, row: Mapping[str, Any]) -> Rule:
    merged = msgspec.convert({**msgspec.structs.asdict(rule), **row}, Rule)
    if merged.attempts < 1 or merged.wait < 0 or merged.longest < 0:
        raise ValueError("out of range")
    return merged


def _unknown_rows(overrides: Mapping[str, Any], setting: str) -> list[Violation]:
    known = {*PROBLEM_TYPES, *DEFAULT_RULES}
    return [
        Violation(f"{setting}[{name!r}]", "is not a problem type", f"Use one of {', '.join(sorted(known))}.")
        for name in overrides
        if name not in known
    ]
