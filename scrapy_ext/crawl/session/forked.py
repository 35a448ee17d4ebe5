"""The setting by which a worker knows that a template has forked it (:mod:`scrapy_ext.crawl.session.workers`)."""

from __future__ import annotations

from typing import Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext.crawl.session.embedded import ServerAddress

#: The :class:`ServerAddress` of the embedded server that the first worker runs; empty: it runs none. Not for users.
SETTING: Final = "_SCRAPY_EXT_FORKED"


def is_forked(settings: BaseSettings) -> bool:
    """Return true in a worker that a template has forked."""
    return settings.get(SETTING) is not None


def server_of(settings: BaseSettings) -> ServerAddress | None:
    """Return the address of the embedded server that a forked worker uses; None in any other process."""
    given = settings.getdict(SETTING)
    return msgspec.convert(given, ServerAddress) if given else None
