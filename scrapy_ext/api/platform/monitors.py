"""Monitors: rules about the results of finished jobs, and about runs that should have happened.

Not part of the hosted platform's API. A monitor has checks (``monitor_checks``), a JSON Schema of the items, or both,
and applies to the jobs that finish while it is enabled; or it expects runs (``expect``). Like other rules, it is off
until it is enabled, and never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from scrapy_ext.api.fields import Field, checked, flag
from scrapy_ext.api.platform.jobs import MAX_NAME
from scrapy_ext.api.platform.monitor_checks import MAX_CHECK, Check, parse_check
from scrapy_ext.api.platform.rules import JobScope, RuleSort
from scrapy_ext.api.platform.schema_bounds import schema_faults
from scrapy_ext.api.violations import ContractError, Violation

#: Outcomes of a check, and of a monitor.
PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_APPLICABLE: Final = "not applicable"
OUTCOMES: Final = (PASSED, FAILED, NOT_APPLICABLE)

#: Events of activity messages about the result of a job, and about runs.
RESULT_EVENTS: Final[Mapping[str, str]] = {
    PASSED: "monitor:passed",
    FAILED: "monitor:failed",
    NOT_APPLICABLE: "monitor:not-applicable",
}
MISSED_EVENT: Final = "monitor:missed"
RECOVERED_EVENT: Final = "monitor:recovered"
EVENTS: Final = (*RESULT_EVENTS.values(), MISSED_EVENT, RECOVERED_EVENT)

MAX_CHECKS: Final = 20
MAX_ARGUMENTS: Final = 50
#: Bytes of a schema as JSON.
MAX_SCHEMA: Final = 32 * 1024
#: Items that a schema is compared with, unless the monitor has another number; 0: all of them.
DEFAULT_SAMPLE: Final = 1000
MAX_SAMPLE: Final = 1_000_000
#: Failing items that a result names, and paths of each.
MAX_FAILING: Final = 5
#: Hours within which a run is expected.
MAX_HOURS: Final = 24 * 366
#: Value of ``expect``: each run of the periodic jobs starts at its time.
SCHEDULE: Final = "schedule"
#: Jobs of a preview.
PREVIEWED: Final = 20
#: Name of the check by a schema in results.
SCHEMA_CHECK: Final = "schema"


def _up_to(most: int) -> str:
    """Return the pattern of the numbers from 1 to ``most``, with zeros before them."""
    text = str(most)
    shorter = [f"[1-9][0-9]{{{length}}}" for length in range(len(text) - 1)]
    lower = [
        f"{text[:place]}[{int(place == 0)}-{int(digit) - 1}][0-9]{{{len(text) - place - 1}}}"
        for place, digit in enumerate(text)
        if int(digit) > int(place == 0)
    ]
    return f"0{{0,5}}({'|'.join([*shorter, *lower, text])})"


#: Hours, or days, up to :data:`MAX_HOURS`; or :data:`SCHEDULE`.
EXPECT_PATTERN: Final = rf"^({_up_to(MAX_HOURS)}\s*h|{_up_to(MAX_HOURS // 24)}\s*d|{SCHEDULE})$"
_EXPECT: Final = re.compile(r"([0-9]+)\s*(h|d)", re.ASCII)


def _name_faults(field: str, name: str) -> Iterator[Violation]:
    if not name.isprintable():
        yield Violation(field, _NAME_RULE, 'Write "enough items".')


def _check_faults(field: str, checks: Sequence[str]) -> Iterator[Violation]:
    for place, text in enumerate(checks):
        try:
            parse_check(text, f"{field}[{place}]")
        except ContractError as error:
            yield from error.violations


def _schema_faults(field: str, schema: dict[str, Any] | bool) -> Iterator[Violation]:
    try:
        size = len(msgspec.json.encode(schema))
    except UnicodeEncodeError:
        yield Violation(
            field,
            "has half of a surrogate pair, which no encoding can hold",
            "Remove the half, or write the whole character.",
        )
        return
    if size > MAX_SCHEMA:
        yield Violation(field, f"must be at most {MAX_SCHEMA} bytes of JSON", "Shorten it.", 413)
    else:
        yield from schema_faults(schema)


_NAME_RULE: Final = f"must be printable text of at most {MAX_NAME} characters"
_Name = Annotated[str, Meta(max_length=MAX_NAME)]
_Argument = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Check = Annotated[str, Meta(min_length=1, max_length=MAX_CHECK)]
_Sample = Annotated[int, Meta(ge=0, le=MAX_SAMPLE)]
_Expect = Annotated[str, Meta(pattern=EXPECT_PATTERN)]


class NewMonitor(JobScope, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A monitor as it is added."""

    name: Annotated[
        _Name,
        Field(
            _NAME_RULE,
            'Write "enough items".',
            check=_name_faults,
            metavar="NAME",
            help="name in results and messages",
            placeholder="enough items",
        ),
    ] = ""
    #: Spider arguments that a job has, among others.
    args: Annotated[
        dict[_Argument, Any],
        Meta(max_length=MAX_ARGUMENTS),
        Field(
            f"must be an object of at most {MAX_ARGUMENTS} arguments with names of 1 to {MAX_NAME} characters",
            'Write {"NAME": "value"}.',
            option="--arg",
            metavar="NAME=VALUE",
            help="only jobs with this spider argument",
            label="Arguments of the jobs, one name=value per line (empty: all)",
        ),
    ] = msgspec.field(default_factory=dict)
    #: Canonical texts of checks.
    checks: Annotated[
        tuple[_Check, ...],
        Meta(max_length=MAX_CHECKS),
        Field(
            f"must be an array of at most {MAX_CHECKS} texts",
            'Write ["items >= 100"].',
            item_rule=f"must be text of 1 to {MAX_CHECK} characters",
            numbered=True,
            check=_check_faults,
            option="--check",
            metavar="CHECK",
            help='such as "items >= 100", "coverage price >= 95%" or "errors == 0"',
            label="Checks, one per line",
            placeholder="items >= 0.8 x median",
            lines=5,
        ),
    ] = ()
    #: JSON Schema that every item must match.
    schema: Annotated[
        dict[str, Any] | bool | None,
        Field(
            "must be a JSON Schema: an object",
            'Write {"required": ["name"]}.',
            check=_schema_faults,
            metavar="FILE",
            help="file with a JSON Schema of the items",
            label="Schema",
            lines=8,
            group="JSON Schema of the items",
        ),
    ] = None
    #: Number of items that the schema is compared with, spread over the job; 0: all.
    sample: Annotated[
        _Sample,
        Field(
            f"must be a whole number from 0 (all) to {MAX_SAMPLE}",
            "Write 1000, for example.",
            metavar="N",
            help=f"compare N items with the schema; 0: all (default: {DEFAULT_SAMPLE})",
            label="Number of items to compare, spread over the job (0: all)",
            group="JSON Schema of the items",
        ),
    ] = DEFAULT_SAMPLE
    #: ``24h``, ``7d``: time within which a successful run is expected; :data:`SCHEDULE`; None: about finished jobs.
    expect: Annotated[
        _Expect | None,
        Field(
            f"must be hours (24h) or days (7d) up to a year, or {SCHEDULE}",
            'Write "24h".',
            metavar="TIME",
            help=f"a successful run at least every TIME (24h, 7d), or {SCHEDULE}",
            label=f"A successful run at least every (24h, 7d), or {SCHEDULE}: each periodic job starts at its time",
            group="Runs that are expected, instead of checks",
        ),
    ] = None
    enabled: Annotated[bool, flag()] = False

    @property
    def parsed(self) -> tuple[Check, ...]:
        return tuple(map(parse_check, self.checks))

    @property
    def what(self) -> tuple[str, ...]:
        """Names of its parts, as other rules have kinds of records."""
        return tuple(name for name in ("checks", "schema", "expect") if getattr(self, name) not in (None, ()))

    @property
    def hours(self) -> int | None:
        """The hours within which a run is expected; None for other monitors."""
        match = _EXPECT.fullmatch(self.expect or "")
        return None if match is None else int(match[1]) * (24 if match[2] == "d" else 1)

    def covers(self, spider: str, tags: Sequence[str], args: Mapping[str, Any]) -> bool:
        """Return true for a job with this spider, these tags and these arguments."""
        if self.spider not in (None, spider) or (self.tag is not None and self.tag not in tags):
            return False
        return all(name in args and args[name] == value for name, value in self.args.items())


class Monitor(NewMonitor, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A monitor."""

    id: int
    #: None: a monitor of the server, for every project.
    project: int | None
    #: Time (ms).
    created: int
    #: When it was added, enabled or disabled last (ms).
    changed: int

    @property
    def label(self) -> str:
        """The name, or the number with the owner."""
        return self.name or f"monitor {self.id}" + (" of the server" if self.project is None else "")


class FailingItem(msgspec.Struct):
    """An item that does not match a schema: its key, and paths in it with the broken rule, without values."""

    key: str
    paths: list[str]


class CheckResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of a check. ``value``: as measured; ``limit``: the number or text that it was compared with."""

    check: str
    outcome: str
    sentence: str
    value: int | float | str | None = None
    limit: int | float | str | None = None
    #: Earlier runs that a median is of.
    runs: int | None = None
    items: list[FailingItem] = []


class MonitorResult(msgspec.Struct, kw_only=True):
    """The result of a monitor for a job."""

    job: str
    spider: str
    monitor: int
    of_server: bool
    name: str
    #: One of :data:`OUTCOMES`: failed if a check failed, else passed if one passed.
    outcome: str
    #: End of the job, and time of the check (ms).
    finished: int
    checked: int
    checks: list[CheckResult]


class MonitorPreview(msgspec.Struct, kw_only=True):
    """The results that a monitor would have had for the last jobs; ``sentence``: of expected runs."""

    jobs: int = 0
    passed: int = 0
    failed: int = 0
    not_applicable: int = 0
    sentence: str = ""
    results: list[MonitorResult] = msgspec.field(default_factory=list)


class Incident(msgspec.Struct, kw_only=True):
    """A monitor that fails for a spider: since when (ms), how many jobs, the last of them, and its sentence."""

    monitor: int
    of_server: bool
    name: str
    spider: str
    since: int
    last: int
    jobs: int
    job: str | None
    sentence: str


class MonitorEvent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The activity message about the result of a job, about a run that is missing, or about a recovery.

    ``verdict``: the verdict on the job; ``errors``: the most frequent errors of its log, each group in a line.
    """

    event: str
    user: str
    message: str
    spider: str
    outcome: str | None = None
    job: str | None = None
    since: int | None = None
    verdict: str | None = None
    errors: list[str] = []
    monitors: list[MonitorResult] = []


def outcome_of(outcomes: Sequence[str]) -> str:
    """Return the outcome of several: failed before passed before not applicable."""
    return FAILED if FAILED in outcomes else PASSED if PASSED in outcomes else NOT_APPLICABLE


def monitor_of(fields: Mapping[str, Any], *, of_server: bool = False) -> NewMonitor:
    """Return the monitor with these fields; raises :class:`ContractError` with every broken rule of the fields."""
    expect = fields.get("expect")
    given = {**fields, "expect": "".join(expect.split())} if isinstance(expect, str) else fields
    new = checked(NewMonitor, given, "a monitor")
    faults = [*_sample_faults(new, fields), *_expect_faults(new, of_server)]
    if faults:
        raise ContractError(faults)
    checks = tuple(dict.fromkeys(str(parse_check(text)) for text in new.checks))
    return msgspec.structs.replace(new, checks=checks)


def _sample_faults(new: NewMonitor, fields: Mapping[str, Any]) -> Iterator[Violation]:
    if fields.get("sample") is not None and new.schema is None:
        yield Violation("sample", "is for monitors with a schema", "Leave it out.")


def _expect_faults(new: NewMonitor, of_server: bool) -> Iterator[Violation]:
    checks = bool(new.checks) or new.schema is not None
    if new.expect is None:
        if not checks:
            yield Violation("checks", "or schema or expect is required", 'Write "checks": ["items >= 100"].')
        return
    if checks:
        yield Violation("expect", "is for monitors without checks and schema", "Add another monitor for these.")
    if new.expect == SCHEDULE:
        for name in ("tag", "args"):
            if getattr(new, name):
                yield Violation(name, "is not for monitors of periodic jobs", "Leave it out, or name the spider.")
    elif of_server:
        yield Violation("expect", f"of the server must be {SCHEDULE}", "Add the monitor to a project.")
    elif new.spider is None:
        yield Violation("spider", "is required for runs that are expected", "Name the spider.")


# ── words for pages, commands and messages ──


def jobs_in_words(monitor: NewMonitor) -> str:
    """Return the scope of a monitor: ``jobs of spider books with the tag nightly``."""
    jobs = "jobs" if monitor.spider is None else f"jobs of spider {monitor.spider}"
    if monitor.tag is not None:
        jobs += f" with the tag {monitor.tag}"
    if monitor.args:
        jobs += f" with {', '.join(f'{name}={value}' for name, value in monitor.args.items())}"
    return jobs


def conditions_in_words(monitor: NewMonitor) -> str:
    """Return the conditions of a monitor: ``items >= 100, errors == 0``."""
    if monitor.expect == SCHEDULE:
        return "each periodic job starts at its time"
    if monitor.expect is not None:
        return f"a successful run every {monitor.expect}"
    return ", ".join([*monitor.checks, *([] if monitor.schema is None else [schema_in_words(monitor)])])


def schema_in_words(monitor: NewMonitor) -> str:
    """Return the check by a schema: ``items match the schema (1000 of them)``."""
    return f"items match the schema ({f'{monitor.sample} of them' if monitor.sample else 'all'})"


SORT: Final = RuleSort(
    name="monitors",
    noun="monitor",
    verb="check",
    does="checks",
    done="checked",
    new=NewMonitor,
    rule=Monitor,
    preview=MonitorPreview,
    parse=monitor_of,
    data=jobs_in_words,
    limits=conditions_in_words,
    example='{"spider": "books", "checks": ["items >= 100"]}',
    columns={"name": lambda monitor: monitor.name},
)
