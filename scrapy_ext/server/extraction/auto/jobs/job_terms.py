"""What job boards call things, in the languages of most of the web."""

from __future__ import annotations

import re
from typing import Final, Protocol

from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.text import one_line
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("jobs")
COMPANY = _VOCABULARY.pattern("company", re.IGNORECASE)
LOCATION = _VOCABULARY.pattern("location", re.IGNORECASE)
SALARY = _VOCABULARY.pattern("salary", re.IGNORECASE)
TYPE = _VOCABULARY.pattern("type", re.IGNORECASE)
WORKPLACE = _VOCABULARY.pattern("workplace", re.IGNORECASE)
IDENTIFIER = _VOCABULARY.pattern("identifier", re.IGNORECASE)
POSTED = _VOCABULARY.pattern("posted", re.IGNORECASE)
DEADLINE = _VOCABULARY.pattern("deadline", re.IGNORECASE)
START = _VOCABULARY.pattern("start", re.IGNORECASE)

COMPANY_NAMES: Final = _VOCABULARY.words("company_names")
COMPANY_NAME = _VOCABULARY.pattern("company_name")
LOCATION_NAMES: Final = _VOCABULARY.words("location_names")
LOCATION_NAME = _VOCABULARY.pattern("location_name")
SALARY_NAMES: Final = _VOCABULARY.words("salary_names")
SALARY_NAME = _VOCABULARY.pattern("salary_name")
#: A label that stands in one element with its value.
LEADING_LABEL = _VOCABULARY.pattern("leading_label")

#: ``Cook at The Blue Door``, ``The Blue Door hiring Cook in Leeds, UK``, whatever follows them.
HIRING_TITLE = _VOCABULARY.pattern("hiring_title")
_PAGE = _VOCABULARY.pattern("page", re.IGNORECASE)
APPLY = _VOCABULARY.pattern("apply", re.IGNORECASE)
#: Headings of what is asked of candidates.
REQUIREMENTS = _VOCABULARY.pattern("requirements", re.IGNORECASE)

_TYPES: Final = tuple(_VOCABULARY.table("types").items())
_TYPE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _TYPES)
_REMOTE: Final = tuple(_VOCABULARY.table("remote").items())
_REMOTE_WORDS: Final = tuple((name, re.compile(rf"\b(?:{words})\b|^(?:{words})$", re.I)) for name, words in _REMOTE)
_NOT = _VOCABULARY.pattern("not", re.IGNORECASE)


def is_of_jobs(page: Page) -> bool:
    """Whether the title or the address of a page says that it is about jobs."""
    return _PAGE.search(f"{page.title or ''} {page.url.replace('-', ' ')[:500]}") is not None


class Reading(Protocol):
    """Tells a value from a text; with ``whole``, from one that says hardly anything else."""

    def __call__(self, text: str, *, whole: bool = False) -> str | None:
        """The value, if there is one."""


def employment_type(text: str, *, whole: bool = False) -> str | None:
    """The types of employment in a text, as one; with ``whole``, of a text that says hardly anything else."""
    found = [(name, match) for name, words in _TYPE_WORDS if (match := words.search(text))]
    if whole and sum(len(match.group()) for _, match in found) < 0.6 * len(text):
        return None
    return ", ".join(name for name, _ in found) or None


def remote_status(text: str, *, whole: bool = False) -> str | None:
    """``remote``, ``hybrid`` or ``on-site``, as a text tells it; None where it says that it is not."""
    for name, words in _REMOTE_WORDS:
        match = words.search(text)
        if match and not _NOT.search(text) and (not whole or len(match.group()) >= 0.6 * len(text)):
            return name
    return None


def stated_type(job: Thing | None) -> str | None:
    """The type of employment of the markup: in words for the constants of schema.org, else as it is written."""
    texts = [one_line(text) for text in job.texts("employmentType")][:5] if job else []
    told = [employment_type(text.rpartition("/")[2]) or text for text in texts]
    return ", ".join(dict.fromkeys(told)) or None


def stated_remote(job: Thing | None) -> str | None:
    """``remote`` where the markup of a job says so."""
    stated = job.text("jobLocationType") if job else None
    return "remote" if stated and "TELECOMMUTE" in stated.upper() else remote_status(stated or "")
