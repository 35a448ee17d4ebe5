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


_COMPONENTS = """
import sys
import scrapy_ext.downloadermiddlewares, scrapy_ext.extensions, scrapy_ext.pipelines
import scrapy_ext.scheduler, scrapy_ext.spidermiddlewares

unused = {"scrapy_ext.api.extraction.xpath", "scrapy_ext.compatibility.toml", "dotenv"}
assert not unused & set(sys.modules), unused & set(sys.modules)
"""


def test_the_components_load_no_parser_of_files_and_rules_that_most_projects_do_not_have():
    subprocess.run([sys.executable, "-c", _COMPONENTS], check=True, timeout=300)


#: Prints whether the middleware of the package is loaded when Scrapy's download handler is, and a reactor installed.
_IMPORTS = """
import sys
from importlib.abc import MetaPathFinder

from scrapy import Spider
from scrapy.crawler import CrawlerProcess

class Seen(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "scrapy.core.downloader.contextfactory":
            print("scrapy_ext.downloadermiddlewares" in sys.modules, "twisted.internet.reactor" in sys.modules)

class Nothing(Spider):
    name = "nothing"
    async def start(self):
        return
        yield

sys.meta_path.insert(0, Seen())
service = {"EXTRACT_API_URL": "http://127.0.0.1:9/v1", "EXTRACT_API_KEY": "0" * 32}
switches = {"PLATFORM_ENABLED": False, "FRONTIER_ENABLED": False, "LOG_ENABLED": False}
process = CrawlerProcess({"ADDONS": {"scrapy_ext.Addon": 500}, **service, **switches})
process.crawl(Nothing)
process.start()
"""


def test_scrapys_download_handler_is_imported_before_the_components_and_before_the_reactor_is_installed() -> None:
    found = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "False False\n"
