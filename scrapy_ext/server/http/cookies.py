"""Cookies of requests.

``Request.cookies`` of Starlette decodes every cookie with a function of the standard library that takes time by the
square of a value with backslashes, in versions of Python before August 2024. Anybody may send such a value, and seconds
of the event loop with it. Here one cookie is read, by a pattern that passes over each character once.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

_QUOTED: Final = re.compile(r'"(.*)"', re.DOTALL)
#: A character that ``http.cookies`` wrote in octal digits, or another one that a backslash precedes.
_ESCAPED: Final = re.compile(r"\\(?:([0-3][0-7]{2})|(.))", re.DOTALL)


def cookie_of(request: Request, name: str) -> str | None:
    """Return the value of a cookie, the last one of several; None without one."""
    found = None
    for header in request.headers.getlist("cookie"):
        for pair in header.split(";"):
            key, separator, value = pair.partition("=")
            if separator and key.strip() == name:
                found = value.strip()
    return None if found is None else _unquoted(found)


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return _ESCAPED.sub(_character, quoted[1]) if quoted else value


def _character(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 8)) if escaped[1] else escaped[2]


def is_encrypted(request: Request) -> bool:
    """Return true if the browser's connection is encrypted, also if that ends at a proxy in front of the server.

    In a chain of proxies, the first scheme is that of the browser.
    """
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0]
    return "https" in (request.url.scheme, forwarded.strip().lower())
