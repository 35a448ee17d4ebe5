"""Items of the spiders.

Products and articles are stored as the extraction service gives them: their schema is that of
zyte-common-items, so they need no class of their own here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ProductReviews:
    """A customer's review of a product, with a screenshot of the page."""

    url: str
    name: str
    reviews: list[dict[str, object]]
    screenshot_bytes: int
    screenshot_file: str | None = None


@dataclass
class SearchResult:
    """A product in the shop's search results."""

    query: str
    sku: str
    name: str
    price: str
    currency: str
    url: str


@dataclass
class SentHeaders:
    """The headers received by the site."""

    method: str
    headers: dict[str, str]


@dataclass
class Page:
    """The extraction of one page; ``kind`` is the field of the extraction service."""

    url: str
    kind: str
    data: dict[str, object]
