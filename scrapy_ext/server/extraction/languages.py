"""The language that a visitor from a country is taken to speak: what browsers there are sold with.

One for each country, the one of most of its web sites, as BCP 47 tags (ISO 639-1 and ISO 3166-1). A country that is not
here gets that of :data:`LANGUAGE`, as does a request that names none.
"""

from __future__ import annotations

from typing import Final

LANGUAGE: Final = "en-US"

#: Countries by language.
_SPOKEN: Final = {
    "ar": "AE BH DZ EG IQ JO KW LB LY MA OM QA SA SY TN YE",
    "az": "AZ",
    "be": "BY",
    "bg": "BG",
    "bn": "BD",
    "bs": "BA",
    "ca": "AD",
    "cs": "CZ",
    "da": "DK",
    "de": "AT CH DE LI",
    "el": "CY GR",
    "en": "AU BB BS BZ CA GB GH GI IE IN JM KE MT NG NZ PH SG TT UG US ZA ZM ZW",
    "es": "AR BO CL CO CR CU DO EC ES GT HN MX NI PA PE PR PY SV UY VE",
    "et": "EE",
    "fa": "IR",
    "fi": "FI",
    "fr": "BE BF BJ CD CG CI CM FR GA GN HT LU MC ML NE SN TG",
    "he": "IL",
    "hr": "HR",
    "hu": "HU",
    "hy": "AM",
    "id": "ID",
    "is": "IS",
    "it": "IT SM VA",
    "ja": "JP",
    "ka": "GE",
    "kk": "KZ",
    "km": "KH",
    "ko": "KR",
    "lt": "LT",
    "lv": "LV",
    "mk": "MK",
    "mn": "MN",
    "ms": "BN MY",
    "nb": "NO",
    "ne": "NP",
    "nl": "NL SR",
    "pl": "PL",
    "pt": "AO BR CV MZ PT",
    "ro": "MD RO",
    "ru": "KG RU",
    "si": "LK",
    "sk": "SK",
    "sl": "SI",
    "sq": "AL XK",
    "sr": "ME RS",
    "sv": "SE",
    "th": "TH",
    "tr": "TR",
    "uk": "UA",
    "ur": "PK",
    "uz": "UZ",
    "vi": "VN",
    "zh": "CN HK MO TW",
}
_BY_COUNTRY: Final = {country: language for language, countries in _SPOKEN.items() for country in countries.split()}


def language_of(country: str | None) -> str:
    """The language tag for a country: ``de-AT`` for ``AT``."""
    language = _BY_COUNTRY.get(country or "")
    return LANGUAGE if language is None else f"{language}-{country}"


def accept_language(tag: str) -> str:
    """The header of a browser that is set to a language."""
    return f"{tag},{tag.partition('-')[0]};q=0.9"
