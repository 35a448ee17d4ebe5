"""Headers that are only sent to the origin of the requested URL, never to another one after a redirect."""

from __future__ import annotations

import re
from typing import Final

#: Parts of names of keys, tokens, sessions and accounts, but not of author, keyword and keyboard.
_PRIVATE: Final = re.compile(
    r"auth(?!or(?!i[sz]))|cookie|token|secret|passw|passphrase|credential|session|csrf|xsrf|jwt|signature|signed|bearer|hmac"
    r"|ticket|certificate|licen[cs]e|app-?id|client-?id|(?<!mon)key(?!word|board)"
    r"|access(?!-control|ib)|user-id"
    # Short ones match as whole words only: X-Sid and JSESSIONID, not Residence; X-Pin, not Shopping.
    r"|(?<![a-z])(?:\w*sid|pwd|pass|pin|otp|totp|cert|identity|username|userid|login|account)(?![a-z])",
    re.IGNORECASE,
)


def is_private_header(name: str) -> bool:
    """Return true when a request header probably holds a credential, like ``Authorization`` and ``X-Api-Key``."""
    return _PRIVATE.search(name) is not None
