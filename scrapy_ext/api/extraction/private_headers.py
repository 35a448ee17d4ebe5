"""Headers that are for the origin of the URL that was asked for, and for no other that a redirect leads to."""

from __future__ import annotations

import re
from typing import Final

#: Parts of names by which sites call keys, tokens, sessions and accounts; not those of authors, keywords and keyboards.
_PRIVATE: Final = re.compile(
    r"auth(?!or(?!i[sz]))|cookie|token|secret|passw|passphrase|credential|session|csrf|xsrf|jwt|signature|signed|bearer|hmac"
    r"|ticket|certificate|licen[cs]e|app-?id|client-?id|(?<!mon)key(?!word|board)"
    r"|access(?!-control|ib)|user-id"
    # Short ones as whole words only: X-Sid and JSESSIONID, not Residence; X-Pin, not Shopping.
    r"|(?<![a-z])(?:\w*sid|pwd|pass|pin|otp|totp|cert|identity|username|userid|login|account)(?![a-z])",
    re.IGNORECASE,
)


def is_private_header(name: str) -> bool:
    """Return whether a request header is likely to hold a credential, as ``Authorization`` and ``X-Api-Key`` do."""
    return _PRIVATE.search(name) is not None
