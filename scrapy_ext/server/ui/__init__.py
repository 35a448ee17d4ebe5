"""Server-rendered, read-mostly pages: jobs and their stored data."""

from scrapy_ext.server.ui.frame import Services
from scrapy_ext.server.ui.pages import Pages

__all__ = ["Pages", "Services"]
