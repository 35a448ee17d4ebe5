"""Characters that steer a terminal, or turn the direction of the text that follows. Text of users and web sites may
have any; where people read it (log, pages) they are written as something else."""

from __future__ import annotations

import re
from typing import Final

#: All but tabs and line breaks.
STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""The text with each of them as Python and JSON write it: ``\u001b``."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
