"""Fields of forms, and checks of fields that the API and the pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scrapy_ext.api.platform.jobs import MAX_NAME, JobState, is_name, violations_of_job
from scrapy_ext.api.platform.keys import JobKey, number_of
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.http import bodies


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
            raise refused(name, f"must be {low} to {high}, got {number}", "Correct the number.")
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
        value = bodies.value(text.encode(), name)
        if not isinstance(value, dict):
            raise refused(name, "must be a JSON object", f'Write {name}={{"NAME": "value"}}.')
        return value

    def jobs(self) -> list[JobKey]:
        """Return the named jobs, all of the form's project; raises ``ContractError``."""
        project = self.key_number("project")
        return [own_key(text, project, "job") for text in self.all("job")]


def own_key(text: str, project: int, field: str) -> JobKey:
    """Return the key of a job of a project; raises ``ContractError``."""
    key = JobKey.parse(text, field)
    if key.project != project:
        raise refused(field, f"{key} is not of project {project}", "Name jobs of one project.")
    return key


def parse_state(text: Any, field: str = "state") -> JobState:
    """Return a state; raises ``ContractError``."""
    try:
        return JobState(text)
    except ValueError:
        choices = ", ".join(state.value for state in JobState)
        raise refused(field, f"must be one of {choices}, got {str(text)[:60]!r}", "Use one of these.") from None


def check_name(field: str, name: str) -> None:
    """Raise ``ContractError`` for an invalid name of a spider, a setting or a field."""
    if not is_name(name):
        raise refused(field, f"must be 1 to {MAX_NAME} characters, none of them NUL", "Correct the name.")


def check_job(spider: str, metadata: Mapping[str, Any], place: str = "") -> None:
    """Raise ``ContractError`` for a job that could not run; ``place`` is its place in a body."""
    if violations := list(violations_of_job(spider, metadata)):
        raise ContractError([msgspec.structs.replace(each, field=f"{place}{each.field}") for each in violations])


def check_tags(field: str, tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags; raises ``ContractError`` for an invalid one."""
    for tag in tags:
        if not is_name(tag):
            raise refused(
                field, f"must be 1 to {MAX_NAME} characters, none of them NUL, got {tag[:60]!r}", "Choose another tag."
            )
    return tuple(tags)
