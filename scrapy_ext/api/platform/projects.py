"""Projects: their names. These records and rules are this package's own."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from scrapy_ext.api.platform.keys import STEPS
from scrapy_ext.api.violations import refused

#: Maximum characters of the name of a project.
MAX_PROJECT_NAME: Final = 80
_REFUSED: Final = r"/\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
#: Names as a JSON schema describes them: without slashes, control characters, and white space at the ends, not of
#: digits alone, and no step of a path.
NAME_PATTERN: Final = rf"^(?!\.{{1,2}}$)(?=.*[^0-9\s])[^\s{_REFUSED}]([^{_REFUSED}]*[^\s{_REFUSED}])?$"
_CHARACTERS: Final = re.compile(f"[{_REFUSED}]")
_DIGITS: Final = re.compile(r"[0-9\s]+")


class Project(msgspec.Struct, frozen=True):
    """A project: its number (``id``), and its name, if it has one. No two projects have the same name."""

    id: int
    name: str | None = None

    def __str__(self) -> str:
        return labelled(self.id, self.name)


def labelled(project: int, name: str | None) -> str:
    """Return the number of a project, with its name if it has one: ``12 (books)``."""
    return f"{project} ({name})" if name else str(project)


def name_of_project(value: object, field: str = "name") -> str:
    """Check the name of a project; raises :class:`ContractError`.

    A name of digits alone would be taken for a number, and a slash would end it in addresses and keys.
    """
    if not isinstance(value, str) or not value.strip():
        raise refused(field, "must be a text that is not empty", 'Write a name, such as "books".')
    if len(value) > MAX_PROJECT_NAME:
        raise refused(field, f"must be at most {MAX_PROJECT_NAME} characters, got {len(value)}", "Shorten it.")
    if _CHARACTERS.search(value):
        raise refused(field, "must not contain a slash or a control character", "Leave them out.")
    if value in STEPS:
        raise refused(field, f"must not be {value}, a step of a path", "Add a letter to it.")
    if value != value.strip():
        raise refused(field, "must not begin or end with white space", "Leave it out.")
    if _DIGITS.fullmatch(value):
        raise refused(field, "must not consist of digits alone, as numbers of projects do", "Add a letter to it.")
    return value
