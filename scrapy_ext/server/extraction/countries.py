"""The language and the time zone that a visitor from a country is taken to have.

The tags of languages are those of BCP 47 (``de-AT``). A country that is not in the table gets :data:`LANGUAGE` and
leaves the browser in the time zone of the server, as does a request that names no country.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

LANGUAGE: Final = "en-US"


def language_of(country: str | None) -> str:
    """The language tag for a country: ``de-AT`` for ``AT``."""
    language = _languages().get(country or "")
    return LANGUAGE if language is None else f"{language}-{country}"


def accept_language(tag: str) -> str:
    """The header of a browser that is set to a language."""
    return f"{tag},{tag.partition('-')[0]};q=0.9"


def timezone_of(country: str | None) -> str | None:
    """The time zone for a country: ``Europe/Vienna`` for ``AT``."""
    return _timezones().get(country or "")


@cache
def _languages() -> dict[str, str]:
    spoken = load_vocabulary("countries").table("languages")
    return {country: language for language, countries in spoken.items() for country in countries.split()}


@cache
def _timezones() -> dict[str, str]:
    return load_vocabulary("countries").table("timezones")
