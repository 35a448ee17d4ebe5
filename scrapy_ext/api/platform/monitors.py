"""Monitors: rules about the results of finished jobs, and about runs that should have happened.

Not part of the hosted platform's API. A monitor has checks (``monitor_checks``), a JSON Schema of the items, or both,
and applies to the jobs that finish while it is enabled; or it expects runs (``expect``). Like other rules, it is off
until it is enabled, and never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.jobs import MAX_NAME
from scrapy_ext.api.platform.monitor_checks import Check, parse_check
from scrapy_ext.api.platform.rules import check_rule, condition_faults
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

FIELDS: Final = ("name", "spider", "tag", "args", "checks", "schema", "sample", "expect", "enabled")
_EXPECT: Final = re.compile(r"([0-9]{1,6})\s*(h|d)", re.ASCII)


class NewMonitor(msgspec.Struct, frozen=True, kw_only=True):
    """A monitor as it is added."""

    name: str = ""
    spider: str | None = None
    tag: str | None = None
    #: Spider arguments that a job has, among others.
    args: dict[str, Any] = {}
    #: Canonical texts of checks.
    checks: tuple[str, ...] = ()
    #: JSON Schema that every item must match.
    schema: dict[str, Any] | bool | None = None
    #: Number of items that the schema is compared with, spread over the job; 0: all.
    sample: int = DEFAULT_SAMPLE
    #: ``24h``, ``7d``: time within which a successful run is expected; :data:`SCHEDULE`; None: about finished jobs.
    expect: str | None = None
    enabled: bool = False

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


class Monitor(NewMonitor, frozen=True, kw_only=True):
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
    """The activity message about the result of a job, about a run that is missing, or about a recovery."""

    event: str
    user: str
    message: str
    spider: str
    outcome: str | None = None
    job: str | None = None
    since: int | None = None
    monitors: list[MonitorResult] = []


def outcome_of(outcomes: Sequence[str]) -> str:
    """Return the outcome of several: failed before passed before not applicable."""
    return FAILED if FAILED in outcomes else PASSED if PASSED in outcomes else NOT_APPLICABLE


def monitor_of(fields: Mapping[str, Any], *, of_server: bool = False) -> NewMonitor:
    """Return the monitor with these fields; raises :class:`ContractError` with every broken rule of the fields."""
    given = check_rule(_monitor_faults(fields, of_server), fields)
    given["checks"] = tuple(dict.fromkeys(str(parse_check(text)) for text in given.get("checks", ())))
    if "expect" in given and given["expect"] != SCHEDULE:
        given["expect"] = "".join(given["expect"].split())
    return NewMonitor(**given)


def _monitor_faults(fields: Mapping[str, Any], of_server: bool) -> Iterator[Violation]:
    for name in fields:
        if name not in FIELDS:
            yield Violation(str(name)[:60], "is no field of a monitor", f"The fields are {', '.join(FIELDS)}.")
    yield from condition_faults({name: fields.get(name) for name in ("spider", "tag")})
    if not isinstance(fields.get("enabled", False), bool):
        yield Violation("enabled", "must be true or false", 'Write "enabled": true, or leave it out.')
    yield from _name_faults(fields.get("name"))
    yield from _args_faults(fields.get("args"))
    yield from _checks_faults(fields.get("checks"))
    yield from _schema_faults(fields)
    yield from _expect_faults(fields, of_server)


def _name_faults(name: Any) -> Iterator[Violation]:
    if name is not None and not (isinstance(name, str) and len(name) <= MAX_NAME and name.isprintable()):
        yield Violation("name", f"must be printable text of at most {MAX_NAME} characters", "Correct the name.")


def _args_faults(args: Any) -> Iterator[Violation]:
    if args is None:
        return
    if not isinstance(args, dict) or len(args) > MAX_ARGUMENTS:
        yield Violation("args", f"must be an object of at most {MAX_ARGUMENTS} arguments", 'Write {"NAME": "value"}.')
    elif not all(isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in args):
        yield Violation("args", f"must have names of 1 to {MAX_NAME} characters", "Correct the names.")


def _checks_faults(checks: Any) -> Iterator[Violation]:
    if checks is None:
        return
    if not isinstance(checks, (list, tuple)) or len(checks) > MAX_CHECKS:
        yield Violation("checks", f"must be an array of at most {MAX_CHECKS} texts", 'Write ["items >= 100"].')
        return
    for place, text in enumerate(checks):
        try:
            parse_check(text, f"checks[{place}]")
        except ContractError as error:
            yield from error.violations


def _schema_faults(fields: Mapping[str, Any]) -> Iterator[Violation]:
    schema, sample = fields.get("schema"), fields.get("sample")
    if schema is not None:
        if not isinstance(schema, (dict, bool)):
            yield Violation("schema", "must be a JSON Schema: an object", 'Write {"required": ["name"]}.')
        elif len(msgspec.json.encode(schema)) > MAX_SCHEMA:
            yield Violation("schema", f"must be at most {MAX_SCHEMA} bytes of JSON", "Shorten it.", 413)
    if sample is not None:
        if isinstance(sample, bool) or not isinstance(sample, int) or not 0 <= sample <= MAX_SAMPLE:
            yield Violation("sample", f"must be a whole number from 0 (all) to {MAX_SAMPLE}", "Correct the number.")
        elif schema is None:
            yield Violation("sample", "is for monitors with a schema", "Leave it out.")


def _expect_faults(fields: Mapping[str, Any], of_server: bool) -> Iterator[Violation]:
    expect = fields.get("expect")
    checks = bool(fields.get("checks")) or fields.get("schema") is not None
    if expect is None:
        if not checks:
            yield Violation("checks", "or schema or expect is required", 'Write "checks": ["items >= 100"].')
        return
    match = _EXPECT.fullmatch("".join(expect.split())) if isinstance(expect, str) else None
    hours = 0 if match is None else int(match[1]) * (24 if match[2] == "d" else 1)
    if expect != SCHEDULE and not 1 <= hours <= MAX_HOURS:
        yield Violation("expect", f"must be hours (24h) or days (7d) up to a year, or {SCHEDULE}", 'Write "24h".')
    if checks:
        yield Violation("expect", "is for monitors without checks and schema", "Add another monitor for these.")
    if expect == SCHEDULE:
        for name in ("tag", "args"):
            if fields.get(name):
                yield Violation(name, "is not for monitors of periodic jobs", "Leave it out, or name the spider.")
    elif of_server:
        yield Violation("expect", f"of the server must be {SCHEDULE}", "Add the monitor to a project.")
    elif fields.get("spider") is None:
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
