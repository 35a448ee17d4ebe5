"""The list of public suffixes for Scrapy's cookies, without the network.

Scrapy has tldextract download the list at the first cookie, unless it is in its cache. Without a network that logs two
warnings in whichever crawl is the first one of a machine, and with one the crawl leaves the machine.
"""

from __future__ import annotations

import logging
import os
import tempfile
from typing import NoReturn

import requests
from tldextract import TLDExtract


class _NoNetwork(requests.Session):
    def get(self, *_: object, **__: object) -> NoReturn:  # type: ignore[override]
        raise requests.ConnectionError


def fill_cache() -> tempfile.TemporaryDirectory[str]:
    """Fill a cache with the list that comes with tldextract, for this process and those that it starts."""
    folder = tempfile.TemporaryDirectory(prefix="public-suffixes-")
    logger = logging.getLogger("tldextract")
    logger.disabled = True
    try:
        for private in (False, True):
            TLDExtract(cache_dir=folder.name, include_psl_private_domains=private)("a.example", session=_NoNetwork())
    finally:
        logger.disabled = False
    os.environ["TLDEXTRACT_CACHE"] = folder.name
    return folder
