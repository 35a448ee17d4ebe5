"""Request records (platform-api.md, Request record)."""

from __future__ import annotations

from typing import Final

import msgspec

#: Method of a record that names none.
DEFAULT_METHOD: Final = "GET"


class RequestRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finished request.

    ``time`` is its start and ``duration`` its length, both in milliseconds; ``method`` is GET unless given; ``rs`` the
    size of the response in bytes; ``parent`` the index of the record of the request whose callback made this one,
    absent for seeds; ``fp`` its fingerprint.
    """

    time: int
    # A factory, because a plain default is left out when the record is written, and not every server fills it in.
    method: str = msgspec.field(default_factory=lambda: DEFAULT_METHOD)
    url: str
    status: int
    duration: int
    rs: int
    parent: int | None = None
    fp: str | None = None
