"""Columns that a person has chosen for the items of a spider, in a cookie that only the pages of this spider get.

The choice has names of fields alone, so that it needs no place in the database, and works for keys that may only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import Response

from scrapy_ext.server.ui.frame import Visit

#: Maximum columns of a table.
MOST_COLUMNS: Final = 60
_COOKIE: Final = "item_columns"
#: Browsers keep cookies of up to 4096 bytes.
_MOST_BYTES: Final = 3500
_SECONDS: Final = 365 * 24 * 3600

_decode: Final = msgspec.json.Decoder(list[str]).decode


def remembered(visit: Visit) -> list[str]:
    """Return the chosen columns; none without a choice."""
    text = visit.request.cookies.get(_COOKIE, "")
    try:
        return list(dict.fromkeys(_decode(unquote(text))))[:MOST_COLUMNS] if text else []
    except (msgspec.DecodeError, UnicodeError):
        return []


def remember(visit: Visit, answer: Response, names: Sequence[str]) -> None:
    """Store the chosen columns, as many of the first as a cookie holds; none removes the choice."""
    kept = list(dict.fromkeys(names))[:MOST_COLUMNS]
    while len(value := quote(msgspec.json.encode(kept))) > _MOST_BYTES:
        kept.pop()
    secure = "https" in (visit.request.url.scheme, visit.request.headers.get("x-forwarded-proto"))
    path = f"/ui/{visit.key.project}/{visit.key.spider}"
    answer.set_cookie(
        _COOKIE, value if kept else "", max_age=_SECONDS if kept else 0, path=path, secure=secure, httponly=True,
        samesite="strict",
    )  # fmt: skip
