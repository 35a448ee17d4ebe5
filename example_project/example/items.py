"""What the spiders collect.

Products and articles are stored as the extraction service gives them: their schema is that of
zyte-common-items, so they need no class of their own here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ProductReviews:
    """What customers say about a product, and how its page looked when they had said it."""

    url: str
    name: str
    reviews: list[dict[str, object]]
    screenshot_bytes: int
    screenshot_file: str | None = None


@dataclass
class SearchResult:
    """A product that the shop found for a query."""

    query: str
    sku: str
    name: str
    price: str
    currency: str
    url: str


@dataclass
class SentHeaders:
    """The headers that reached the site."""

    method: str
    headers: dict[str, str]


@dataclass
class Page:
    """What was extracted from one page; ``kind`` says which field of the extraction service it is."""

    url: str
    kind: str
    data: dict[str, object]
