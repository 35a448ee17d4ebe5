"""The embedded server of a crawl, begun as soon as the crawl's settings are known.

A server needs about half a second until it is ready, and so does Scrapy from the add-ons to the first request: side by
side, neither waits for the other. The crawl's session takes the server when it opens. A server that nobody takes ends
with its crawler or this process, whichever is first.
"""

from __future__ import annotations

import weakref
from typing import Final

from scrapy.crawler import Crawler

from scrapy_ext import settings as names
from scrapy_ext.crawl.session.embedded import EmbeddedServer, EmbeddedServerError
from scrapy_ext.settings import SettingError

#: Attribute of a crawler that holds the server until the session takes it.
_ATTRIBUTE: Final = "_scrapy_ext_early_server"


def begin_early(crawler: Crawler, *, extraction: bool, platform: bool) -> None:
    """Begin the server of a crawl that needs one. Of an error here, the session reports what remains when it opens."""
    settings = crawler.settings
    try:
        for setting in names.SETTINGS.values():
            setting.read(settings)
        embedded_platform = platform and not any(url.read(settings) for url in names.PLATFORM_ADDRESSES)
        # Without a server in vain: a platform elsewhere must answer first.
        if not embedded_platform and (platform or not extraction or names.EXTRACT_API_URL.read(settings)):
            return
        server = EmbeddedServer(settings, platform=embedded_platform)
        server.begin()
    except (SettingError, EmbeddedServerError, OSError):
        return
    ending = weakref.finalize(crawler, server.abandon)
    # The child ends with this process by itself.
    ending.atexit = False
    setattr(crawler, _ATTRIBUTE, (server, ending))


def take_early(crawler: Crawler) -> EmbeddedServer | None:
    """Return the server that was begun for a crawler, once."""
    begun: tuple[EmbeddedServer, weakref.finalize[[], Crawler]] | None = vars(crawler).pop(_ATTRIBUTE, None)
    if begun is None:
        return None
    server, ending = begun
    ending.detach()
    return server
