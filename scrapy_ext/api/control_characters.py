"""Control characters of terminals and text direction, escaped where people read foreign text (logs, pages)."""

from __future__ import annotations

import re
from typing import Final

#: All control characters but tabs and line breaks.
CONTROL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""Return the text with control characters as ``\u001b``, like Python and JSON write them."""
    return CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
