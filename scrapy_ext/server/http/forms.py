"""Fields of forms, and checks that the API and the pages share: of single fields, and of those that start a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform import jobs
from scrapy_ext.api.platform.alerts import settings_faults
from scrapy_ext.api.platform.jobs import MAX_NAME, JobState, is_name, violations_of_job, violations_of_project
from scrapy_ext.api.platform.keys import JobKey, number_of
from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS
from scrapy_ext.api.violations import Checks, ContractError, refused
from scrapy_ext.server.http import json_bodies


class Form:
    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.fields = fields

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field."""
        return tuple(value for each, value in self.fields if each == name)

    def get(self, name: str) -> str | None:
        """Return the last value of a field."""
        values = self.all(name)
        return values[-1] if values else None

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a field that is a whole number in a range; raises ``ContractError``."""
        text = self.get(name)
        number = default if text is None else number_of(text, name)
        if not low <= number <= high:
            raise refused(name, f"must be {low} to {high}, got {number}", f"Send {low}, for example.")
        return number

    def key_number(self, name: str) -> int:
        """Return a required field that is a number of a key; raises ``ContractError``."""
        text = self.get(name)
        if text is None:
            raise refused(name, "is required", f"Send the form field {name}.")
        return number_of(text, name)

    def object(self, name: str) -> dict[str, Any] | None:
        """Return a field that is a JSON object; raises ``ContractError``."""
        text = self.get(name)
        if not text:
            return None
        value = json_bodies.given(text.encode(), name)
        if not isinstance(value, dict):
            raise refused(name, "must be a JSON object", f'Write {name}={{"NAME": "value"}}.')
        return value

    def jobs(self) -> list[JobKey]:
        """Return the named jobs, each once, all of the form's project; raises ``ContractError``."""
        project = self.key_number("project")
        return list(dict.fromkeys(own_key(text, project, "job") for text in self.all("job")))


def own_key(text: str, project: int, field: str) -> JobKey:
    """Return the key of a job of a project; raises ``ContractError``."""
    key = JobKey.parse(text, field)
    if key.project != project:
        raise refused(field, f"{key} is not of project {project}", "Name jobs of one project.")
    return key


def parse_state(text: object, field: str = "state") -> JobState:
    """Return a state; raises ``ContractError``."""
    try:
        return JobState(text)
    except ValueError:
        choices = ", ".join(state.value for state in JobState)
        raise refused(field, f"must be one of {choices}, got {str(text)[:60]!r}", "Use one of these.") from None


def check_name(field: str, name: str) -> None:
    """Raise ``ContractError`` for an invalid name of a spider, a setting or a field."""
    if not is_name(name):
        raise refused(
            field,
            f"must be 1 to {MAX_NAME} characters, none of them NUL, and not . or ..",
            "Send another name, such as books.",
        )


def check_job(spider: str, metadata: Mapping[str, Any], place: str = "") -> None:
    """Raise ``ContractError`` for a job that could not run; ``place`` is its place in a body."""
    if violations := list(violations_of_job(spider, metadata)):
        raise ContractError([msgspec.structs.replace(each, field=f"{place}{each.field}") for each in violations])


def check_project_settings(values: Mapping[str, Any]) -> None:
    """Raise ``ContractError`` for settings of a project that have invalid names or values."""
    for name in values:
        check_name("name", name)
    if violations := [*violations_of_project(values), *settings_faults(values)]:
        raise ContractError(violations)


def check_tags(field: str, tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags; raises ``ContractError`` for an invalid one."""
    for tag in tags:
        if not is_name(tag):
            raise refused(
                field,
                f"must be 1 to {MAX_NAME} characters, none of them NUL, and not . or .., got {tag[:60]!r}",
                "Choose another tag.",
            )
    return tuple(tags)


#: Fields that are JSON objects and members of the metadata.
_OBJECTS: Final = ("job_settings", "environment")


def run_metadata(form: Form) -> tuple[dict[str, Any], jobs.JobState]:
    """Return the metadata and the state of the new job; raises ``ContractError`` with all violations."""
    checks = Checks()
    metadata: dict[str, Any] = {
        "spider_type": "manual",
        "priority": checks.passed(
            lambda: form.number("priority", jobs.DEFAULT_PRIORITY, jobs.MIN_PRIORITY, jobs.MAX_PRIORITY)
        ),
        "units": checks.passed(lambda: form.number("units", jobs.DEFAULT_UNITS, jobs.MIN_UNITS, jobs.MAX_UNITS)),
        "tags": list(dict.fromkeys(checks.passed(lambda: check_tags("add_tag", form.all("add_tag"))) or ())),
    }
    if arguments := {name: value for name, value in form.fields if name not in jobs.RUN_PARAMETERS}:
        metadata["spider_args"] = arguments
    for name in _OBJECTS:
        if (value := checks.passed(partial(form.object, name))) is not None:
            metadata[name] = value
    for name in ("cmd_args", JOB_WORKERS):
        if text := form.get(name):
            metadata[name] = text
    extra = checks.passed(partial(form.object, "meta")) or {}
    given = extra.pop("state", jobs.JobState.PENDING.value)
    state = checks.passed(lambda: parse_state(given, "meta.state")) or jobs.JobState.PENDING
    checks.end()
    return {**metadata, **extra}, state
