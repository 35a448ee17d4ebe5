"""Example spiders, each for one feature."""

from __future__ import annotations

from typing import Any

from scrapy import Spider


class SiteSpider(Spider):
    """A spider of the project's site, or of its copy at another URL (``-a site=…``)."""

    name = None

    def __init__(self, *args: Any, site: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._site = site

    def address(self, path: str) -> str:
        """Return the full URL of a page of the site."""
        return (self._site or self.settings["SITE_URL"]).rstrip("/") + path
