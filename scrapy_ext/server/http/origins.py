"""Requests that a page of another site makes a browser send.

A browser adds what it keeps for this server to them: the cookie of a session, and a key that somebody typed when the
browser asked for a user name. Forms of any site can be sent here with it, as a form or as plain text, without the
consent by CORS that scripts need. Browsers name where a request comes from, and programs do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

FOREIGN: Final = "Forbidden. A page of another site may not use this address. Use a page of this server."


def is_of_another_site(headers: Mapping[str, str]) -> bool:
    """Return true when the browser reports that a page of another site has sent a request.

    ``Sec-Fetch-Site`` is preferred, since a proxy may change ``Host``; browsers send it over encrypted connections.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site in ("same-origin", "cross-site", "same-site"):
        return site != "same-origin"
    return origin is not None and _host_of(origin) != headers.get("host")


def _host_of(origin: str) -> str | None:
    """Return the host and port of an origin; None for one without, such as ``null``."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
