"""Items (platform-api.md, Item; Items)."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.api.violations import ContractError, Violation

#: One item, as the JSON that is sent; a larger one gets 413.
MAX_ITEM_BYTES: Final = 1024 * 1024
#: Prefix of internal names: ``_type``, ``_template``, ``_cached_page_id``. ``stats`` omits them without ``all``.
HIDDEN_PREFIX: Final = "_"

_CONTENT_RANGE: Final = re.compile(r"items ([0-9]{1,18})-/\*", re.ASCII)


def content_range(start: int) -> str:
    """Return the ``Content-Range`` header that sets the index of the first item."""
    return f"items {start}-/*"


def parse_content_range(value: str) -> int:
    """Return the start index; raises :class:`ContractError`."""
    match = _CONTENT_RANGE.fullmatch(value.strip())
    if match is None:
        raise ContractError(
            [Violation("Content-Range", f"must be 'items <start>-/*', got {value[:60]!r}", "Correct the header.")]
        )
    return int(match[1])


def too_large(place: str, size: int) -> Violation:
    """Return the violation of an item (or any record of a job) over 1 MiB."""
    return Violation(
        place, f"must be at most {MAX_ITEM_BYTES} bytes of JSON, got {size}", "Split it, or leave fields out.", 413
    )
