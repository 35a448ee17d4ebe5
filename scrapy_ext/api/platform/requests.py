"""Request records (platform-api.md, Request record)."""

from __future__ import annotations

import msgspec


class RequestRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finished request.

    ``time`` is its start and ``duration`` its length, both in milliseconds; ``rs`` the size of the response in
    bytes; ``parent`` the index of the record of the request whose callback made this one, absent for seeds;
    ``fp`` its fingerprint.
    """

    time: int
    method: str
    url: str
    status: int
    duration: int
    rs: int
    parent: int | None = None
    fp: str | None = None
