"""Bodies of requests to the extraction service."""

from __future__ import annotations

from typing import Any

from scrapy import Request

from scrapy_ext.crawl.extraction.plan import BodyOptions, to_body


def sent_body(request: Request, options: BodyOptions | None = None) -> dict[str, Any]:
    """Return the fields that a crawl with these options sends for a request."""
    return to_body(request, options or BodyOptions()).fields
