"""Pages for people, rendered on the server: what jobs there are, and what they stored. They only read."""

from scrapy_ext.server.ui.frame import Services
from scrapy_ext.server.ui.pages import Pages

__all__ = ["Pages", "Services"]
