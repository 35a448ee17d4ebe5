"""The extraction service, self-hosted (extraction-api.md)."""

from scrapy_ext.server.extraction.service import ExtractionService

__all__ = ["ExtractionService"]
