"""Rules about finished jobs: the form that rules of retention and of delivery share.

Not part of the hosted platform's API. A rule of a project covers that project, a rule of the server every project. A
rule is off until it is enabled. Its conditions never change; it is removed and added anew.

A job *matches* the conditions of a rule when all of these hold:

- It is finished, and no process of it is left on a node. Pending, running and deleted jobs never match.
- It has not the tag ``keep``, if the rule removes data.
- It is of the rule's spider and has the rule's tag, if the rule names them.
- With ``older_than``: it finished more than so many days ago, by the clock of the server.
- With ``keep_last``: it is not among the newest so many jobs of its spider, by the time of their end or by their
  number. Jobs count that are in the rule's scope, have not the tag ``keep`` (if the rule removes data), and have
  records of the kinds that the rule covers, which were not removed.

With both conditions, a job matches when it is old enough and outside the newest ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from scrapy_ext.api.platform.jobs import MAX_NAME, is_name
from scrapy_ext.api.violations import ContractError, Violation

#: Tag of jobs whose data no rule removes.
KEEP: Final = "keep"
#: Kinds of records of jobs.
KINDS: Final = ("items", "requests", "logs", "samples")

#: Of a project, and of the server.
MAX_RULES: Final = 50
MAX_DAYS: Final = 36_500
MAX_KEPT: Final = 1000
DAY_MS: Final = 24 * 60 * 60 * 1000
#: Days for which retention rules leave a job that was restored as it is.
RESTORED_DAYS: Final = 7

CONDITIONS: Final = ("spider", "tag", "older_than", "keep_last")


class JobConditions(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that a rule covers; a condition that is None does not limit them."""

    spider: str | None = None
    tag: str | None = None
    #: Days since the end of a job or the last write of a collection's record.
    older_than: int | None = None
    #: Number of the newest jobs of each spider that stay.
    keep_last: int | None = None

    def before(self, now: int) -> int | None:
        """Return the time (ms) before which a job has ended, or a record was written, that is old enough."""
        return None if self.older_than is None else now - self.older_than * DAY_MS


class RuleRecord(Protocol):
    """A rule of any sort, as it is stored."""

    @property
    def id(self) -> int: ...
    @property
    def project(self) -> int | None:
        """None: a rule of the server, for every project."""

    @property
    def what(self) -> tuple[str, ...]: ...
    @property
    def enabled(self) -> bool: ...


class NextJob(msgspec.Struct, frozen=True):
    """A job that a rule applies to next; ``due``: the earliest time (ms)."""

    job: str
    spider: str
    what: tuple[str, ...]
    rule: int
    #: True for a rule of the server.
    of_server: bool
    finished: int
    due: int
    records: int
    bytes: int


class JobsPreview(msgspec.Struct, kw_only=True):
    """The data that a rule would apply to now. ``bytes``: as stored, compressed where that is known."""

    jobs: int = 0
    records: int = 0
    bytes: int = 0
    #: The jobs that are next, some of them later.
    next: list[NextJob] = msgspec.field(default_factory=list)


def check_rule(faults: Iterator[Violation], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new rule that are given; raise :class:`ContractError` with every violation."""
    if found := list(faults):
        raise ContractError(found)
    return {name: value for name, value in fields.items() if value is not None}


def field_faults(fields: Mapping[str, Any], known: Sequence[str], flags: Sequence[str]) -> Iterator[Violation]:
    """Yield the violations of fields that rules of no sort have, of the conditions, and of the ``flags``."""
    for name in fields:
        if name not in known:
            yield Violation(str(name)[:60], "is no field of a rule", f"The fields are {', '.join(known)}.")
    yield from condition_faults(fields)
    for name in flags:
        if not isinstance(fields.get(name, False), bool):
            yield Violation(name, "must be true or false", f'Write "{name}": true, or leave it out.')


def condition_faults(fields: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of the fields of :class:`JobConditions`."""
    for name in ("spider", "tag"):
        value = fields.get(name)
        if value is not None and not (isinstance(value, str) and is_name(value) and _is_text(value)):
            yield Violation(name, f"must be 1 to {MAX_NAME} characters, and none of them NUL", f"Correct the {name}.")
    yield from _number_faults(fields, "older_than", MAX_DAYS, "days")
    yield from _number_faults(fields, "keep_last", MAX_KEPT, "jobs")


def what_faults(what: Any, known: Sequence[str], remedy: str) -> Iterator[Violation]:
    """Yield the violation of the field ``what``."""
    is_array = isinstance(what, (list, tuple)) and bool(what) and all(isinstance(each, str) for each in what)
    if not is_array or not set(what).issubset(known):
        yield Violation("what", f"must be an array of some of {', '.join(known)}", remedy)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _number_faults(fields: Mapping[str, Any], name: str, most: int, unit: str) -> Iterator[Violation]:
    value = fields.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
        yield Violation(name, f"must be a whole number of {unit} from 1 to {most}", "Correct the number.")


# ── words for messages, pages and commands ──


def rule_in_words(sort: str, rule: RuleRecord) -> str:
    """Return the name of a rule: ``retention rule 1 of the server``."""
    return f"{sort} rule {rule.id}" + (" of the server" if rule.project is None else "")


def jobs_in_words(conditions: JobConditions) -> str:
    """Return the scope of conditions: ``jobs of spider books with the tag nightly``."""
    jobs = "jobs"
    if conditions.spider is not None:
        jobs += f" of spider {conditions.spider}"
    if conditions.tag is not None:
        jobs += f" with the tag {conditions.tag}"
    return jobs


def limits_in_words(conditions: JobConditions) -> list[str]:
    """Return the limits of conditions: ``older than 30 days``, ``beyond the newest 10 of each spider``."""
    limits = []
    if (days := conditions.older_than) is not None:
        limits.append("older than 1 day" if days == 1 else f"older than {days} days")
    if (kept := conditions.keep_last) is not None:
        limits.append(f"beyond the newest {'one' if kept == 1 else kept} of each spider")
    return limits


def joined(names: Sequence[str]) -> str:
    """Return names in a sentence: ``items, requests and logs``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
