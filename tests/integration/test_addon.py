"""Imports of the add-on."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
import scrapy_ext.addon
heavy = ("scrapy_ext.client", "scrapy_ext.crawl.extraction", "scrapy_ext.scheduler", "aiohttp")
assert not [name for name in sys.modules if name.startswith(heavy)], sys.modules.keys()
"""


def test_commands_that_do_not_crawl_load_the_add_on_without_its_components():
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=300)


_CRAWL = """
import sys
import scrapy
import scrapy_ext.downloadermiddlewares, scrapy_ext.extensions, scrapy_ext.pipelines
import scrapy_ext.scheduler, scrapy_ext.spidermiddlewares
from scrapy_ext.crawl.session.items import item_to_json

class Book(scrapy.Item):
    name = scrapy.Field()

item_to_json({"name": {"x"}, "raw": b"y"})
item_to_json(Book(name=Book(name=[1.5])))
heavy = ("itemadapter", "pydantic")
assert not [name for name in sys.modules if name.startswith(heavy)], sys.modules.keys()
"""


def test_a_crawl_of_dicts_and_scrapys_items_does_not_load_the_other_kinds():
    """pydantic takes 12 MB and a tenth of a second where it is installed."""
    subprocess.run([sys.executable, "-c", _CRAWL], check=True, timeout=300)
