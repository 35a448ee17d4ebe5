"""Server-rendered, read-mostly pages: jobs and their stored data."""

from scrapy_ext.server.ui.frame import PageServices
from scrapy_ext.server.ui.pages import PageRoutes

__all__ = ["PageRoutes", "PageServices"]
