"""The crawling platform over HTTP: paths, parameters and formats. What is kept, and how, is the store's matter."""

from scrapy_ext.server.platform.service import PlatformService

__all__ = ["PlatformService"]
