"""Headers that are for the origin of the URL that was asked for, and for no other that a redirect leads to."""

from __future__ import annotations

import re
from typing import Final

#: Parts of names by which sites call keys, tokens and sessions; not those of authors, keywords and keyboards.
_PRIVATE: Final = re.compile(
    r"auth(?!or(?!i[sz]))|cookie|token|secret|passw|credential|session|csrf|xsrf|jwt|signature"
    r"|(?<!mon)key(?!word|board)",
    re.IGNORECASE,
)


def is_private_header(name: str) -> bool:
    """Return whether a request header is likely to hold a credential, as ``Authorization`` and ``X-Api-Key`` do."""
    return _PRIVATE.search(name) is not None
