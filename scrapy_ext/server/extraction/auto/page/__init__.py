"""The page model: elements, text, structured data, labels, computed styles, and the part that the page is about."""

from scrapy_ext.server.extraction.auto.page.layout import Focus
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.sources import now
from scrapy_ext.server.extraction.auto.page.text import node_text, one_line

__all__ = ["Focus", "Page", "Thing", "node_text", "now", "one_line"]
