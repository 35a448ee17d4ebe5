"""Jobs: states, outcomes, the record of the job list, job metadata (platform-api.md, Job; Job metadata; Jobs)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.keys import STEPS
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING, JOB_WORKERS, bounds_faults
from scrapy_ext.api.violations import Violation

MIN_PRIORITY: Final = 0
MAX_PRIORITY: Final = 4
DEFAULT_PRIORITY: Final = 2
MIN_UNITS: Final = 1
MAX_UNITS: Final = 6
DEFAULT_UNITS: Final = 1
#: Maximum characters of a spider's name, and of a tag.
MAX_NAME: Final = 255
#: Prefix of the name of a script, and the pattern of the file name that follows.
SCRIPT: Final = "py:"
SCRIPT_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
#: Close reasons of a complete job, a failed one, and an interrupted crawl (``cancelled`` if the job was cancelled).
FINISHED: Final = "finished"
FAILED: Final = "failed"
SHUTDOWN: Final = "shutdown"
#: Close reason of a job that has lost too many nodes or workers.
NODE_LOST: Final = "node_lost"
#: Close reason of Scrapy, for a ``start()`` that raised: the command reports a success.
START_ERROR: Final = "start_error"
#: Reason for which the crawl of a deleted job closes.
JOB_DELETED: Final = "job_deleted"
#: Member of a job's metadata with the stats of its crawl.
CRAWL_STATS: Final = "frameworkstats"
#: The name by which clients of the hosted platform read them, and under which jobs copied from there can have them.
HOSTED_STATS: Final = "scrapystats"
_OTHER_NAME: Final = {CRAWL_STATS: HOSTED_STATS, HOSTED_STATS: CRAWL_STATS}
#: Members of a job's metadata that it was started with, which may have secrets: arguments, settings, variables.
GIVEN: Final = ("spider_args", "job_settings", "environment")
#: Member of a job's metadata with a row for each run of its crawl: its times (ms), items, responses and close reason.
RUNS: Final = "runs"
#: Member of a job's metadata with marks of the spider arguments of the last run by a group of workers, and its time.
GROUP_ARGUMENTS: Final = "group_arguments"
#: Variable of the environment of a process that a platform has started for a job, with the key of the job.
JOB_VARIABLE: Final = "SHUB_JOBKEY"
#: Prefix of the tag of a job whose client, one of Scrapyd, chose an ID: the job is found by it.
CHOSEN_ID_TAG: Final = "scrapyd:"
#: Variable of the environment of such a job, with the ID.
CHOSEN_ID_VARIABLE: Final = "SCRAPY_JOB"
#: The setting that limits the run time of a job (s).
JOB_TIMEOUT: Final = "PLATFORM_JOB_TIMEOUT"
#: Message (403) for an attempt that the job has left.
ATTEMPT_OVER: Final = "is over: its node was lost, its process has ended, or its worker sent no report in time"
#: Settings that the node sets for a job: service URLs, keys, and the job's identity.
RESERVED_SETTINGS: Final = frozenset(
    {
        "PLATFORM_URL",
        "PLATFORM_APP_URL",
        "PLATFORM_STORAGE_URL",
        "PLATFORM_JOBQ_URL",
        "PLATFORM_API_KEY",
        "PLATFORM_PROJECT",
        "PLATFORM_JOB",
        GROUP_SETTING,
    }
)
#: Environment variables that the node sets; clients of the hosted platform read ``SHUB_`` and ``SH_``.
RESERVED_ENVIRONMENT: Final = RESERVED_SETTINGS | {
    "EXTRACT_API_URL",
    "EXTRACT_API_KEY",
    JOB_VARIABLE,
    "SHUB_APIURL",
    "SHUB_STORAGE",
    "SHUB_JOBQ",
    "SH_APIKEY",
}
#: Parameters of ``run.json`` that are not spider arguments.
RUN_PARAMETERS: Final = (
    "project",
    "spider",
    "jobq_id",
    "add_tag",
    "priority",
    "job_settings",
    "units",
    JOB_WORKERS,
    "meta",
    "environment",
    "cmd_args",
)


def is_name(text: str) -> bool:
    """Return true for a possible name of a spider or tag. Databases cannot store NUL."""
    return 0 < len(text) <= MAX_NAME and "\0" not in text and text not in STEPS


class JobState(str, Enum):
    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    DELETED = "deleted"


#: States of the jobs that lists show.
SHOWN_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.FINISHED)
#: Allowed state changes. A cancelled pending job finishes directly. An interrupted job is finished and runs again when
#: it is resumed.
TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.DELETED}),
    JobState.RUNNING: frozenset({JobState.FINISHED, JobState.DELETED}),
    JobState.FINISHED: frozenset({JobState.RUNNING, JobState.DELETED}),
    JobState.DELETED: frozenset(),
}


class Job(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row of ``/api/jobs/list.json``. Times are UTC without a zone; ``elapsed`` is in milliseconds.

    ``job_workers``, for a job with several workers, is this package's own.
    """

    id: str
    spider: str
    spider_type: str | None = None
    state: str
    close_reason: str | None = None
    priority: int
    tags: list[str]
    version: str | None = None
    started_time: str | None = None
    updated_time: str
    elapsed: int | None = None
    responses_received: int
    items_scraped: int
    logs: int
    errors_count: int
    spider_args: dict[str, Any] | None = None
    job_workers: str | None = None


class JobList(msgspec.Struct):
    """The answer of ``/api/jobs/list.json``: ``count`` jobs of ``total``."""

    status: str
    count: int
    total: int
    jobs: list[Job]


class JudgedJob(Job, kw_only=True, omit_defaults=True):
    """A row of ``/api/projects/<project>/verdicts``, which is this package's own.

    ``verdict``: red, amber, green, none for a cancelled job, or unjudged for one that has just finished; None for any
    other. ``error``: the most frequent error of its log, with its count and place.
    """

    verdict: str | None = None
    reasons: list[str] = []
    error: str = ""


class JudgedJobs(msgspec.Struct):
    """Some of the ``total`` jobs. ``unjudged``: finished jobs of the project without a verdict, 10,000 at most."""

    total: int
    jobs: list[JudgedJob]
    unjudged: int = 0


# ── the job queue (platform-api.md, Finished-job queue), with further calls of its real client ──

#: Maximum jobs in an answer of ``list``, and its default.
MAX_LIST: Final = 1000


class QueueEntry(msgspec.Struct, omit_defaults=True):
    """A line of ``/jobq/<project>/list``; ``ts`` is when the job entered its state, in milliseconds.

    ``items``, ``pages`` (request records), ``logs`` and ``errors`` count the job's records.
    """

    key: str
    ts: int
    state: str | None = None
    spider: str | None = None
    elapsed: int | None = None
    pending_time: int | None = None
    running_time: int | None = None
    finished_time: int | None = None
    tags: list[str] | None = None
    close_reason: str | None = None
    version: str | None = None
    items: int | None = None
    pages: int | None = None
    logs: int | None = None
    errors: int | None = None


class PushedJob(msgspec.Struct):
    """A line of the answer of ``/jobq/<project>/push``: the new job, with its token if it is pushed as running."""

    key: str
    auth: str | None = None


class RefusedPush(msgspec.Struct):
    """The line of a job refused because one with the same ``unique`` is active: the request and the error."""

    request: dict[str, Any]
    error: str


# ── rules of a job's metadata, checked when it is scheduled ──

_SET_BY_NODE: Final = "is set by the node that runs the job"
#: Project settings of the platform: settings of all jobs, settings by spider, and the maximum of running jobs.
PROJECT_SETTINGS: Final = "job_settings"
SPIDER_SETTINGS: Final = "spider_settings"
MAX_RUNNING: Final = "max_running"


def violations_of_job(spider: str, metadata: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of a job of this spider or script with this metadata."""
    if spider.startswith(SCRIPT) and re.fullmatch(SCRIPT_NAME, spider.removeprefix(SCRIPT)) is None:
        yield Violation(
            "spider",
            f"{spider[:80]!r} cannot be a script: py: and the name of a file, without a folder",
            "Write py:report.py.",
        )
    for name, low, high in (("priority", MIN_PRIORITY, MAX_PRIORITY), ("units", MIN_UNITS, MAX_UNITS)):
        value = metadata.get(name, low)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            yield Violation(
                name, f"must be a whole number from {low} to {high}, got {value!r}"[:120], f"Write {low}, for example."
            )
    for name in GIVEN:
        if not isinstance(metadata.get(name, {}), dict):
            yield Violation(name, "must be a JSON object", f'Write "{name}": {{"NAME": "value"}}.')
    yield from violations_of_settings("job_settings", metadata.get("job_settings"))
    yield from _of_environment(metadata.get("environment"))
    yield from _of_words(spider, metadata.get("cmd_args"))
    if (bounds := metadata.get(JOB_WORKERS)) is not None:
        yield from workers_faults(JOB_WORKERS, spider, bounds)
    tags = metadata.get("node_tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and is_name(tag) for tag in tags):
        yield Violation("node_tags", "must be an array of names", 'Write "node_tags": ["gpu"].')
    version = metadata.get("version")
    if version is not None and not isinstance(version, str):
        yield Violation("version", "must be the name of a deployed version", "Leave it out for the current one.")


def violations_of_settings(field: str, settings: object) -> Iterator[Violation]:
    """Yield the violations of job settings; anything but an object is ignored."""
    if not isinstance(settings, dict):
        return
    for name in sorted(RESERVED_SETTINGS & set(settings)):
        yield Violation(f"{field}.{name}", _SET_BY_NODE, "Leave it out.")
    seconds = settings.get(JOB_TIMEOUT)
    if seconds is not None and not _is_time(seconds):
        yield Violation(
            f"{field}.{JOB_TIMEOUT}",
            f"must be a number of seconds, 0 for none, got {seconds!r}"[:120],
            "Write 3600 for an hour.",
        )


def violations_of_project(settings: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of a project's settings on the platform; most settings may have any value."""
    of_jobs, of_spiders = settings.get(PROJECT_SETTINGS), settings.get(SPIDER_SETTINGS)
    if of_jobs is not None and not isinstance(of_jobs, dict):
        yield Violation(PROJECT_SETTINGS, "must be a JSON object", 'Write {"NAME": "value"}.')
    yield from violations_of_settings(PROJECT_SETTINGS, of_jobs)
    if of_spiders is not None and not (
        isinstance(of_spiders, dict) and all(isinstance(each, dict) for each in of_spiders.values())
    ):
        yield Violation(SPIDER_SETTINGS, "must be an object of objects", 'Write {"spider": {"NAME": "value"}}.')
    elif of_spiders:
        for spider, each in of_spiders.items():
            yield from violations_of_settings(f"{SPIDER_SETTINGS}.{spider}", each)
    most = settings.get(MAX_RUNNING)
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
        yield Violation(
            MAX_RUNNING,
            f"must be a whole number, 0 or more, got {most!r}"[:120],
            "Write a number, or null for no limit.",
        )


def _of_environment(environment: object) -> Iterator[Violation]:
    if not isinstance(environment, dict):
        return
    for name, value in environment.items():
        field = f"environment.{name[:60]}"
        if name in RESERVED_ENVIRONMENT:
            yield Violation(field, _SET_BY_NODE, "Leave it out.")
        elif not name or "=" in name or "\0" in name:
            yield Violation(field, "cannot be the name of an environment variable", "Rename it.")
        elif isinstance(value, str) and "\0" in value:
            yield Violation(field, "must not have the character NUL", "Remove it.")


def _of_words(spider: str, words: object) -> Iterator[Violation]:
    if words is None:
        return
    if not isinstance(words, str) or "\0" in words:
        yield Violation("cmd_args", "must be text", 'Write "--days 7".')
    elif spider.startswith(SCRIPT):
        try:
            shlex.split(words)
        except ValueError as error:
            yield Violation("cmd_args", f"cannot be split into words: {error}", "Close what is quoted.")


def workers_faults(field: str, spider: str, bounds: object) -> Iterator[Violation]:
    """Yield the violations of a number of workers of a spider, or of a script."""
    if spider.startswith(SCRIPT):
        yield Violation(field, "is for spiders: a script has one process", "Leave it out.")
    else:
        yield from bounds_faults(field, bounds)


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        return 0 <= float(value) < 1e9
    except (ValueError, OverflowError):
        return False


def fields_named(metadata: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a job's metadata. The stats of its crawl can be read by both of their names."""
    found = {}
    for name in wanted:
        stored = name if name in metadata else _OTHER_NAME.get(name, name)
        if stored in metadata:
            found[name] = metadata[stored]
    return found


def stats_of(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the stats of a job's crawl; empty if there are none."""
    stats = fields_named(metadata, (CRAWL_STATS,)).get(CRAWL_STATS)
    return stats if isinstance(stats, dict) else {}


def runs_of(metadata: Mapping[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    """Return the rows of a job's runs, each with whether the run was lost: it has neither a close reason nor a process.

    The counts and the finish time of a lost run are those of its last report, and of records that came after it.
    """
    stored = metadata.get(RUNS)
    rows = [row for row in stored if isinstance(row, dict)] if isinstance(stored, list) else []
    current = rows[-1] if rows and metadata.get("state") == JobState.RUNNING.value else None
    return [(row, row is not current and row.get("close_reason") is None) for row in rows]


def without_chosen_id(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a job for another run of it, which has an ID of its own in place of the chosen one."""
    tags, environment = metadata.get("tags"), metadata.get("environment")
    found = dict(metadata)
    if isinstance(tags, list) and (kept := [tag for tag in tags if not str(tag).startswith(CHOSEN_ID_TAG)]) != tags:
        found["tags"] = kept
        if isinstance(environment, Mapping):
            found["environment"] = {name: value for name, value in environment.items() if name != CHOSEN_ID_VARIABLE}
    return found


class Outcome(str, Enum):
    """Group of close reasons; the value is that of filters."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT = "limit"
    OTHER = "other"


#: The groups in words.
OUTCOME_NAMES: Final = {
    Outcome.OK: "finished",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled or interrupted",
    Outcome.LIMIT: "over a limit",
    Outcome.OTHER: "another reason",
}
_BY_REASON: Final = {
    **dict.fromkeys(("", FINISHED), Outcome.OK),
    **dict.fromkeys(("cancelled", SHUTDOWN), Outcome.CANCELLED),
    **dict.fromkeys(
        ("timed out", "killed by oom", "memusage_exceeded", "extract_api_max_requests", "extract_api_max_cost"),
        Outcome.LIMIT,
    ),
    **dict.fromkeys(
        (
            FAILED,
            "spider_not_found",
            "script_not_found",
            "no_version",
            "build_failed",
            "node_lost",
            "bad_setting",
            "unsupported_scrapy",
        ),
        Outcome.FAILED,
    ),
    START_ERROR: Outcome.FAILED,  # Scrapy's, for a start() that raised
}
#: Beginnings of other reasons: Scrapy's CloseSpider extension, signals, and failures of this package.
_BY_START: Final = {
    "closespider_": Outcome.LIMIT,
    "killed by ": Outcome.FAILED,
    "extract_api_": Outcome.FAILED,
    "platform_": Outcome.FAILED,
    "embedded_server_": Outcome.FAILED,
    "frontier_": Outcome.FAILED,
}


def outcome_of(reason: str | None) -> Outcome:
    """Return the group of a close reason; a job without one has finished."""
    text = reason or ""
    if (known := _BY_REASON.get(text)) is not None:
        return known
    return next((outcome for start, outcome in _BY_START.items() if text.startswith(start)), Outcome.OTHER)
