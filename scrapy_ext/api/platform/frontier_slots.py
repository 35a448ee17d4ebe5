"""Slot of a request in a frontier: a pure function of its host over a fixed number of slots.

Crawls and whoever feeds them choose slots by this rule alone. A slot has its own set of fingerprints, so a request in
another slot than the crawl's would not be recognized as a duplicate.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any, Final
from urllib.parse import ParseResult, urlparse

#: Number of slots of a frontier without FRONTIER_SLOTS, and its maximum.
DEFAULT_SLOTS: Final = 8
MAX_SLOTS: Final = 1024
#: Meta key that overrides the slot of a request.
META_KEY: Final = "frontier_slot"


def slot_of_url(url: str, chosen: Any, slots: int) -> int:
    """Return the slot of a request, 0 to ``slots - 1``; ``chosen`` is its meta ``frontier_slot``."""
    return slot_of_netloc(urlparse(url).netloc, slots) if chosen is None else chosen_slot(chosen, slots)


def chosen_slot(chosen: Any, slots: int) -> int:
    """Return the slot that meta ``frontier_slot`` names: a number is the slot itself, text is hashed in place of the
    host."""
    if isinstance(chosen, int) and not isinstance(chosen, bool):
        return chosen % slots
    return _slot_of_key(str(chosen), slots)


# Most requests are for few hosts.


@lru_cache(maxsize=10_000)
def hostname(netloc: str) -> str:
    """Return the host of a URL's authority, in lower case; "" without one."""
    return ParseResult("", netloc, "", "", "", "").hostname or ""


@lru_cache(maxsize=10_000)
def slot_of_netloc(netloc: str, slots: int) -> int:
    return _slot_of_key(hostname(netloc), slots)


def _slot_of_key(key: str, slots: int) -> int:
    return zlib.crc32(key.lower().encode("utf-8", "surrogatepass")) % slots
