"""A Scrapy project for jobs of tests, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

_SPIDERS = '''
import time

import scrapy


class Quick(scrapy.Spider):
    """Yields ``n`` items and ends."""

    name = "quick"
    start_urls = ["data:,page"]

    def __init__(self, n="3", **arguments):
        super().__init__(**arguments)
        self.n = int(n)

    def parse(self, response):
        print("answer", self.settings.get("ANSWER"))
        for number in range(self.n):
            yield {"number": number}


class Endless(scrapy.Spider):
    """Goes on until it is stopped."""

    name = "endless"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.05}

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        yield scrapy.Request(f"data:,{number + 1}")
'''
_SETTINGS = 'BOT_NAME = "tests"\nSPIDER_MODULES = ["shop.spiders"]\n'


def write_project(folder: Path) -> Path:
    """Write a project into a folder, and return that."""
    package = folder / "shop"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_SETTINGS)
    (package / "spiders.py").write_text(_SPIDERS)
    return folder
