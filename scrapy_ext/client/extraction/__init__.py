"""The client of the extraction service (``extraction-api.md``)."""

from scrapy_ext.client.extraction.client import ExtractClient, RequestAttempt
from scrapy_ext.client.extraction.errors import ExtractError
from scrapy_ext.client.extraction.limiter import Limiter
from scrapy_ext.client.extraction.retry_policy import RetryPolicy
from scrapy_ext.client.extraction.transport import Bounds, ExtractTransport

__all__ = ["Bounds", "ExtractClient", "ExtractError", "ExtractTransport", "Limiter", "RequestAttempt", "RetryPolicy"]
