"""The client of the crawling platform (``platform-api.md``)."""

from scrapy_ext.client.platform.client import PlatformClient
from scrapy_ext.client.platform.transport import PlatformUrls
from scrapy_ext.client.platform.writer import BatchWriter

__all__ = ["BatchWriter", "PlatformClient", "PlatformUrls"]
