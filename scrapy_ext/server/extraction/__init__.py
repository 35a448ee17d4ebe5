"""The self-hosted extraction service (extraction-api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.service import ExtractionService

__all__ = ["ExtractionService"]


def __getattr__(name: str) -> Any:
    """Import the service at first use: the processes that extract need this package, and no browser."""
    if name == "ExtractionService":
        from scrapy_ext.server.extraction.service import ExtractionService

        return ExtractionService
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
