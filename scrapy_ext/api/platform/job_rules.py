"""Rules of a job's metadata, checked when it is scheduled."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scrapy_ext.api.platform.jobs import (
    JOB_TIMEOUT,
    MAX_PRIORITY,
    MAX_UNITS,
    MIN_PRIORITY,
    MIN_UNITS,
    RESERVED_ENVIRONMENT,
    RESERVED_SETTINGS,
    SCRIPT,
    SCRIPT_NAME,
    is_name,
)
from scrapy_ext.api.violations import Violation

_OBJECTS: Final = ("job_settings", "environment", "spider_args")
_SET_BY_NODE: Final = "is set by the node that runs the job"
#: Project settings of the platform: settings of all jobs, settings by spider, and the maximum of running jobs.
PROJECT_SETTINGS: Final = "job_settings"
SPIDER_SETTINGS: Final = "spider_settings"
MAX_RUNNING: Final = "max_running"


def violations_of_job(spider: str, metadata: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the violations of a job of this spider or script with this metadata."""
    if spider.startswith(SCRIPT) and re.fullmatch(SCRIPT_NAME, spider.removeprefix(SCRIPT)) is None:
        yield Violation(
            "spider", f"{spider[:80]!r} cannot be a script: py: and the name of a file, without a folder", "Correct it."
        )
    for name, low, high in (("priority", MIN_PRIORITY, MAX_PRIORITY), ("units", MIN_UNITS, MAX_UNITS)):
        value = metadata.get(name, low)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            yield Violation(name, f"must be a whole number from {low} to {high}, got {value!r}"[:120], "Correct it.")
    for name in _OBJECTS:
        if not isinstance(metadata.get(name, {}), dict):
            yield Violation(name, "must be a JSON object", f'Write "{name}": {{"NAME": "value"}}.')
    yield from violations_of_settings("job_settings", metadata.get("job_settings"))
    yield from _of_environment(metadata.get("environment"))
    yield from _of_words(spider, metadata.get("cmd_args"))
    tags = metadata.get("node_tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and is_name(tag) for tag in tags):
        yield Violation("node_tags", "must be an array of names", 'Write "node_tags": ["gpu"].')
    version = metadata.get("version")
    if version is not None and not isinstance(version, str):
        yield Violation("version", "must be the name of a deployed version", "Leave it out for the current one.")


def violations_of_settings(field: str, settings: Any) -> Iterator[Violation]:
    """Yield the violations of job settings; anything but an object is ignored."""
    if not isinstance(settings, dict):
        return
    for name in sorted(RESERVED_SETTINGS & set(settings)):
        yield Violation(f"{field}.{name}", _SET_BY_NODE, "Leave it out.")
    seconds = settings.get(JOB_TIMEOUT)
    if seconds is not None and not _is_time(seconds):
        yield Violation(f"{field}.{JOB_TIMEOUT}", f"must be a number of seconds, 0 for none, got {seconds!r}"[:120], "")


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
        yield Violation(MAX_RUNNING, f"must be a whole number, 0 or more, got {most!r}"[:120], "null: no limit.")


def _of_environment(environment: Any) -> Iterator[Violation]:
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


def _of_words(spider: str, words: Any) -> Iterator[Violation]:
    if words is None:
        return
    if not isinstance(words, str) or "\0" in words:
        yield Violation("cmd_args", "must be text", 'Write "--days 7".')
    elif spider.startswith(SCRIPT):
        try:
            shlex.split(words)
        except ValueError as error:
            yield Violation("cmd_args", f"cannot be split into words: {error}", "Close what is quoted.")


def _is_time(value: Any) -> bool:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return False
    return 0 <= number < 1e9
