"""The contract of the crawling platform (``platform-api.md``): one module per resource."""

from scrapy_ext.api.platform.keys import EntityKey, JobKey

__all__ = ["EntityKey", "JobKey"]
