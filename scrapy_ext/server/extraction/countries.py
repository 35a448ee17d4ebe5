"""Language and time zone of visitors from a country.

Languages are BCP 47 tags (``de-AT``). A country that is not in the table, or none, gets :data:`LANGUAGE` and the time
zone of the server.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

LANGUAGE: Final = "en-US"


def language_of(country: str | None) -> str:
    """Return the language tag for a country: ``de-AT`` for ``AT``."""
    language = _languages().get(country or "")
    return LANGUAGE if language is None else f"{language}-{country}"


def accept_language(tag: str) -> str:
    """Return the ``Accept-Language`` header of a browser in a language."""
    return f"{tag},{tag.partition('-')[0]};q=0.9"


def timezone_of(country: str | None) -> str | None:
    """Return the time zone for a country: ``Europe/Vienna`` for ``AT``."""
    return _timezones().get(country or "")


@cache
def _languages() -> dict[str, str]:
    spoken = load_vocabulary("countries").table("languages")
    return {country: language for language, countries in spoken.items() for country in countries.split()}


@cache
def _timezones() -> dict[str, str]:
    return load_vocabulary("countries").table("timezones")
