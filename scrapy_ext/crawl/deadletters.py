"""Requests that are set aside, with their error.

A request whose callback or errback raises is run again by the process that has it (``FRONTIER_MAX_ATTEMPTS`` times in
all; a crash begins to count anew). What it led to before is made again: children have the same fingerprints, items were
not stored yet. After the last attempt it is kept in the frontier's slot of dead letters, which no crawl reads, until
somebody puts it back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.frontier import FrontierRequest
from scrapy_ext.crawl.identity import next_life

#: The slot of requests that were set aside.
DEAD_LETTERS: Final = "dead-letters"
#: Characters of an error that are kept.
_MAX_ERROR: Final = 2000

_encode = msgspec.json.Encoder().encode


def dead_letter(fp: str, form: Any, error: str) -> bytes:
    """The request to keep in the slot of dead letters."""
    return _encode(FrontierRequest(fp, {"request": form, "error": error[:_MAX_ERROR]}))


def put_back(fp: str, letter: Any) -> FrontierRequest:
    """The request to enqueue for a dead letter; raises ``ValueError`` for what is none."""
    form = letter.get("request") if isinstance(letter, dict) else None
    if not isinstance(form, dict):
        raise ValueError("it is not a request that was set aside")
    priority = form.get("priority", 0)
    return FrontierRequest(next_life(fp), form, p=-priority if isinstance(priority, int) else 0)
