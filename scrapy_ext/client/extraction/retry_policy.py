"""Attempts at an extraction, by the kind of failure.

The table is plain data, and the setting EXTRACT_API_RETRY_POLICY is merged over it: ``{"/download/temporary-error":
5}`` sets the attempts of one problem type, ``{"network": {"attempts": 2, "wait": 1}}`` more of its row. A failure
without a row, such as every other 4xx, has one attempt: repeating a request that must fail costs money and earns bans.

A limit (429, 503, no connection) is no failure of the request. The service says when it ends and the limiter holds all
requests of that scope until then, so that limits have many attempts, each of which waits for its permit. Its way: the
error has the scope and the ``Retry-After`` of the answer (:mod:`.errors`), :class:`Failures` returns the wait and the
pause, :meth:`.Limiter.refused` holds the scope back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.client.extraction.errors import ExtractError, UnexpectedAnswerError, UnreachableServiceError
from scrapy_ext.client.retry import Backoff

#: Seconds. When the service requests a longer wait, its error is raised instead.
LONGEST_WAIT: Final = 3600.0

#: Attempts to connect to a service that has never answered: a wrong address is reported at once.
FIRST_ATTEMPTS: Final = 2

#: Rows besides the problem types: nothing was sent, no whole answer, not an answer of the service, a 5xx without a
#: problem type.
NO_CONNECTION: Final = "no-connection"
NETWORK: Final = "network"
UNEXPECTED: Final = "unexpected-answer"
OTHER_5XX: Final = "5xx"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table."""

    #: Number of all attempts, the first included.
    attempts: int = 1
    #: Seconds before the second attempt when the service names none, doubled for each further one up to ``longest``.
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
    "/problem/session-creation-error": Rule(3, 5.0),
    # Failed connections cost nothing; a restart of the service takes minutes.
    NO_CONNECTION: Rule(20, 1.0, 30.0),
    # Each attempt may have been billed.
    NETWORK: Rule(3, 1.0),
    UNEXPECTED: Rule(3, 1.0),
    OTHER_5XX: Rule(3, 2.0),
}
#: Rows of failures of the extraction itself: no limits, no failed connections.
FAILURES: Final = (
    "/server/internal",
    "/server/timed-out",
    "/download/temporary-error",
    "/problem/session-creation-error",
    NETWORK,
    UNEXPECTED,
    OTHER_5XX,
)
_ONCE: Final = Rule()

#: The type of an answer that names none.
_TYPE_BY_STATUS: Final[Mapping[int, str]] = {
    429: "/limits/over-domain-limit",
    500: "/server/internal",
    503: "/limits/over-global-limit",
    520: "/download/temporary-error",
    521: "/download/internal-error",
}


class RetryPolicy:
    """The table in force. ``later`` replaces it once the service has answered."""

    def __init__(self, rules: Mapping[str, Rule] = DEFAULT_RULES) -> None:
        self._rules = rules
        self.later = self

    @classmethod
    def merged(cls, overrides: Mapping[str, Any], setting: str = "EXTRACT_API_RETRY_POLICY") -> RetryPolicy:
        """Return the default table with rows replaced; raises :class:`ContractError` naming ``setting``."""
        return cls(DEFAULT_RULES).with_overrides(overrides, setting)

    def with_overrides(self, overrides: Mapping[str, Any], setting: str) -> RetryPolicy:
        """Return this table with rows replaced; raises :class:`ContractError` naming ``setting``."""
        rules = dict(self._rules)
        faults: list[Violation] = []
        for name, value in overrides.items():
            row = {"attempts": value} if isinstance(value, int) and not isinstance(value, bool) else value
            try:
                rules[name] = _merged(rules.get(name, _ONCE), row)
            except (msgspec.ValidationError, TypeError, ValueError):
                rule = "must be a number of attempts (at least 1), or a dict of attempts, wait and longest"
                remedy = "Write 5, or {'attempts': 5, 'wait': 2.0, 'longest': 60.0}."
                faults.append(Violation(f"{setting}[{name!r}]", rule, remedy))
        faults.extend(_unknown_rows(overrides, setting))
        if faults:
            raise ContractError(faults)
        return RetryPolicy(rules)

    def at_first(self) -> RetryPolicy:
        """Return the table to use until the service has answered: with few attempts to connect."""
        first = self.with_overrides({NO_CONNECTION: FIRST_ATTEMPTS}, "")
        first.later = self
        return first

    def attempts(self, row: str) -> int:
        return self._rules.get(row, _ONCE).attempts

    def wait(self, error: ExtractError, failures: int) -> float | None:
        """Return the seconds until the next attempt after this number of failures of the same row; None: there is
        none."""
        rule = self._rules.get(row_of(error), _ONCE)
        if failures >= rule.attempts or (error.retry_after or 0) > LONGEST_WAIT:
            return None
        return Backoff(rule.wait, rule.longest).wait(failures, error.retry_after)


class ConnectionRounds:
    """Counter of failed connections in a row, by rounds: requests that were sent together count as one."""

    def __init__(self) -> None:
        self._rounds = 0
        self._counted_at = float("-inf")

    def round(self, sent: float) -> int:
        """Return the number of the round of a request that was sent at this time of the loop, from 1."""
        if sent >= self._counted_at:
            self._rounds += 1
            self._counted_at = asyncio.get_running_loop().time()
        return self._rounds

    def end(self) -> None:
        """End the row: the service answered."""
        self._rounds = 0


class Failures:
    """Failures of one extraction, by row of the table. ``rounds``: failed connections of all extractions, which fail
    together, so that their rounds are counted and not the attempts of each."""

    def __init__(self, rounds: ConnectionRounds) -> None:
        self.total = 0
        self._rounds = rounds
        self._by_row: dict[str, int] = {}

    def wait(self, policy: RetryPolicy, error: ExtractError, sent: float) -> float | None:
        """Count a failure of a request that was sent at this time of the loop. Returns the seconds until the next
        attempt; None: there is none."""
        row = row_of(error)
        self.total += 1
        self._by_row[row] = self._by_row.get(row, 0) + 1
        if row != NO_CONNECTION:
            self._rounds.end()
            return policy.wait(error, self._by_row[row])
        rounds = self._rounds.round(sent)
        if isinstance(error, UnreachableServiceError):
            error.rounds = rounds
        return policy.wait(error, rounds)


def pause_of(error: ExtractError, wait: float | None) -> float:
    """Return the seconds for which the scope of a limit is held back, also where this request has no further
    attempt."""
    return min((error.retry_after if wait is None else wait) or 0.0, LONGEST_WAIT)


def row_of(error: ExtractError) -> str:
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
