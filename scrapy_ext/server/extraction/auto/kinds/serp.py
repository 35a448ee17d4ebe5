"""Results pages of search engines: the organic results, without advertisements.

A result is a block with a heading in, or around, a link to another site, perhaps through a redirect of the engine.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from scrapy_ext.server.extraction.auto.items import Serp, SerpMetadata, SerpOrganicResult
from scrapy_ext.server.extraction.auto.navigation.numbers import address_of
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page import Page, now, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.auto.results.blocks import Candidate, results_of
from scrapy_ext.server.extraction.auto.results.texts import title_text
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_RESULTS: Final = 200
MAX_NAME_LENGTH: Final = 400

_VOCABULARY: Final = load_vocabulary("search")
_QUERY_KEYS: Final = _VOCABULARY.words("query_keys")
_TOTAL: Final = _VOCABULARY.pattern("total", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,12})\b", re.IGNORECASE)


def extract(page: Page) -> Serp:
    """Return the results of a page. Only ``url`` and ``metadata`` are always present."""
    results = [_result(each) for each in results_of(page)]
    results = [each for each in results if each.name][:MAX_RESULTS]
    for rank, result in enumerate(results, 1):
        result.rank = rank
    if results:
        page.sources.note("organicResults", "blocks with a heading in a link to another site")
    return Serp(
        url=page.url,
        organicResults=results or None,
        pageNumber=_page_number(page) if results else None,
        metadata=SerpMetadata(
            dateDownloaded=now(),
            searchedQuery=_searched(page),
            displayedQuery=_displayed(page),
            totalOrganicResults=_total(page),
        ),
    )


def _result(candidate: Candidate) -> SerpOrganicResult:
    result = SerpOrganicResult(
        name=title_text(candidate.title, MAX_NAME_LENGTH) or None,
        url=candidate.target or candidate.url,
        displayedUrlText=candidate.shown_url,
        description=candidate.description,
    )
    if candidate.target is None:
        host = _HOST.match(candidate.shown_url or "")
        result.guessedOrigin = f"https://{host.group(1).lower()}" if host else None
    return result


# ── the search ──


def _page_number(page: Page) -> int | None:
    """Return the page number from 1: of the row of pages, else of an offset in the URL, ten results a page."""
    number = Pagination(page).number
    if number is not None:
        return number
    address = address_of(page.url)
    if address.number is None:
        return 1
    return max(1, address.number) if address.counts_pages else address.number // 10 + 1


def _searched(page: Page) -> str | None:
    given = dict(reversed(parse_qsl(parts_of(page.url).query[:8_000])[:60]))
    return next((one_line(given[key])[:500] for key in _QUERY_KEYS if given.get(key)), None)


def _displayed(page: Page) -> str | None:
    for node in islice(page.tree.iter("input", "textarea"), 200):
        if (node.get("name") or "").lower() in _QUERY_KEYS and node.get("type") not in {"hidden", "submit", "button"}:
            text = one_line(node.get("value") or node.text)
            if text:
                return text[:500]
    return None


def _total(page: Page) -> int | None:
    for _, text in islice(page.lines, 3_000):
        match = _TOTAL.search(text) if len(text) <= 80 and any(map(str.isdigit, text)) else None
        if match:
            digits = "".join(filter(str.isdecimal, match.group(1)))
            return int(digits) if digits else None
    return None
