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
  records of the kinds that the rule covers, which were not removed. Where fewer have records, a job without any,
  which a rule about whole jobs covers too, is compared with all jobs in the scope.

With both conditions, a job matches when it is old enough and outside the newest ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import ROW, Field
from scrapy_ext.api.platform.jobs import MAX_NAME, is_name
from scrapy_ext.api.violations import Violation

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


def _scope(name: str, metavar: str, help: str) -> Field:
    """Return the words of a condition on the spider or a tag of jobs."""
    rule, remedy = f"must be 1 to {MAX_NAME} characters, and none of them NUL", f"Correct the {name}."

    def faults(name: str, value: str) -> Iterator[Violation]:
        if not (is_name(value) and _is_text(value)):
            yield Violation(name, rule, remedy)

    label = f"{name.capitalize()} (empty: all)"
    return Field(rule, remedy, check=faults, metavar=metavar, help=help, label=label, group=ROW)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _number(most: int, unit: str, metavar: str, help: str, label: str) -> Field:
    rule = f"must be a whole number of {unit} from 1 to {most}"
    return Field(rule, "Write 30, for example.", metavar=metavar, help=help, label=label, group=ROW)


_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Days = Annotated[int, Meta(ge=1, le=MAX_DAYS)]
_Kept = Annotated[int, Meta(ge=1, le=MAX_KEPT)]


class JobScope(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that a rule covers; a condition that is None does not limit them."""

    spider: Annotated[_Name | None, _scope("spider", "NAME", "only jobs of this spider")] = None
    tag: Annotated[_Name | None, _scope("tag", "TAG", "only jobs with this tag")] = None


class JobConditions(JobScope, frozen=True, kw_only=True):
    """The jobs that a rule covers, by their age and their number, too."""

    #: Days since the end of a job or the last write of a collection's record.
    older_than: Annotated[
        _Days | None,
        _number(MAX_DAYS, "days", "DAYS", "only what is older than so many days", "Older than (days)"),
    ] = None
    #: Number of the newest jobs of each spider that stay.
    keep_last: Annotated[
        _Kept | None,
        _number(MAX_KEPT, "jobs", "N", "not the newest N jobs of each spider", "Not the newest (jobs)"),
    ] = None

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


NewT = TypeVar("NewT", bound=msgspec.Struct)
RuleT = TypeVar("RuleT", bound=RuleRecord)
PreviewT = TypeVar("PreviewT")


class RuleSort(msgspec.Struct, Generic[NewT, RuleT, PreviewT], frozen=True):
    """A sort of rules: its records and words, from which its paths, client calls, command and page are made."""

    #: Last part of the paths, and the name of the command and the page: ``retention``.
    name: str
    #: The rule in sentences: ``retention rule``.
    noun: str
    #: Its effect on data, as a verb in the infinitive and the third person, and as a past participle.
    verb: str
    does: str
    done: str
    #: Records of a rule as it is added, as it is stored, and of its preview.
    new: type[NewT]
    rule: type[RuleT]
    preview: type[PreviewT]
    #: Returns the rule with the given fields; raises :class:`ContractError`.
    parse: Callable[[Mapping[str, Any]], NewT]
    #: The data of a rule, and its limits, in words.
    data: Callable[[Any], str]
    limits: Callable[[Any], str]
    #: Fields of a rule, as JSON.
    example: str
    #: Further columns of tables: the title, and the text of a rule.
    columns: Mapping[str, Callable[[Any], str]] = msgspec.field(default_factory=dict)


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
