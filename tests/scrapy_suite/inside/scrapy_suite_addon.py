"""The add-on with the switches of a wiring, as defaults: what a test sets itself goes before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scrapy.settings import BaseSettings
from scrapy_suite_wiring import WIRING

import scrapy_ext

WIRINGS: Final[Mapping[str, Mapping[str, bool]]] = {
    "frontier": {"EXTRACT_API_ENABLED": False},
    "extraction": {"PLATFORM_ENABLED": False, "FRONTIER_ENABLED": False},
    "everything": {},
}


class Addon(scrapy_ext.Addon):
    """See the module."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy when a crawl starts."""
        settings.setdict(WIRINGS[str(WIRING)], priority="default")
        super().update_settings(settings)
