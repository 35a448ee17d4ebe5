"""Projects: their names. These records and rules are this package's own."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import CONTROL_CHARACTERS, refused

#: Maximum characters of the name of a project.
MAX_PROJECT_NAME: Final = 80
#: The same rule as a JSON schema states it, but for control characters.
NAME_PATTERN: Final = r"^(?=.*[^0-9\s])[^/\s]([^/]*[^/\s])?$"


class Project(msgspec.Struct, frozen=True):
    """A project: its number (``id``), and its name, if it has one. No two projects have the same name."""

    id: int
    name: str | None = None

    def __str__(self) -> str:
        return labelled(self.id, self.name)


def labelled(project: int, name: str | None) -> str:
    """Return the number of a project, with its name if it has one: ``12 (books)``."""
    return f"{project} ({name})" if name else str(project)


def name_of_project(value: Any, field: str = "name") -> str:
    """Check the name of a project; raises :class:`ContractError`.

    A name of digits alone would be taken for a number, and a slash would end it in addresses and keys.
    """
    if not isinstance(value, str) or not value.strip():
        raise refused(field, "must be a text that is not empty", 'Write a name, such as "books".')
    name = value.strip()
    if len(name) > MAX_PROJECT_NAME:
        raise refused(field, f"must be at most {MAX_PROJECT_NAME} characters, got {len(name)}", "Shorten it.")
    if CONTROL_CHARACTERS.search(name) or "/" in name:
        raise refused(field, "must not contain a slash or a control character", "Leave them out.")
    if name.isdigit():
        raise refused(field, "must not consist of digits alone, as numbers of projects do", "Add a letter to it.")
    return name
