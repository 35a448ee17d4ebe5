"""The project that is deployed into containers."""

from __future__ import annotations

from pathlib import Path

_SPIDERS = '''
import scrapy


class Pages(scrapy.Spider):
    """One page directly, by the extraction API, and by its browser."""

    name = "pages"

    async def start(self):
        for meta in (False, {"httpResponseBody": True}, {"browserHtml": True}):
            yield scrapy.Request(self.url, meta={"extract_api": meta}, dont_filter=True)

    def parse(self, response):
        kind = "direct" if response.request.meta["extract_api"] is False else "extracted"
        yield {"kind": kind, "rendered": "by-a-script" in response.text}


class Counting(scrapy.Spider):
    """Counts until it is stopped: its only state is the request in the frontier."""

    name = "counting"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.05}

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        yield scrapy.Request(f"data:,{number + 1}", meta={"extract_api": False})
'''
PAGE = b"<html><body><h1>shop</h1><script>document.body.append('by-a-' + 'script')</script></body></html>"


def write(folder: Path) -> Path:
    """Write the project; return its folder."""
    package = folder / "shop"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (package / "__init__.py").write_text("")
    (package / "settings.py").write_text(
        'SPIDER_MODULES = ["shop.spiders"]\nADDONS = {"scrapy_ext.Addon": 500}\nROBOTSTXT_OBEY = False\n'
    )
    (package / "spiders.py").write_text(_SPIDERS)
    return folder
