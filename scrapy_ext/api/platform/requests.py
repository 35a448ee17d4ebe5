"""Request records (platform-api.md, Request record)."""

from __future__ import annotations

from typing import Final

import msgspec

#: Method of a record without one.
DEFAULT_METHOD: Final = "GET"


class RequestRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finished request.

    ``time`` is its start and ``duration`` its length, both in milliseconds; ``rs`` the size of the response in bytes;
    ``parent`` the index of the request whose callback made this one, absent for seeds; ``fp`` its fingerprint.
    """

    time: int
    # msgspec omits a plain default when encoding, and not every server fills it in.
    method: str = msgspec.field(default_factory=lambda: DEFAULT_METHOD)
    url: str
    status: int
    duration: int
    rs: int
    parent: int | None = None
    fp: str | None = None
