"""Small spiders, one for each thing that Scrapy does: all of them by name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from scrapy.utils.spider import iter_spider_classes

from tests.acceptance.parity.local import LocalSpider

_MODULES: Final = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]

SPIDERS: Final[dict[str, type[LocalSpider]]] = {
    spider.name: spider
    for module in _MODULES
    for spider in iter_spider_classes(module)
    if issubclass(spider, LocalSpider)
}
