"""Basic authentication as both services take it: the key as user name, an empty password."""

from __future__ import annotations

import aiohttp


def basic_auth(key: str, setting: str) -> aiohttp.BasicAuth:
    """The credentials of a key; raises :class:`ValueError` naming ``setting``, and never the key itself."""
    if not key:
        raise ValueError(f"{setting} is not set. Set it to the key of the service.")
    if ":" in key or not key.isprintable() or key != key.strip():
        raise ValueError(
            f"{setting} must be a key of printable characters without ':' or blanks around it. Copy the key again."
        )
    return aiohttp.BasicAuth(key, "", encoding="utf-8")
