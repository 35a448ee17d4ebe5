"""Stored text made safe to show. Items hold what web sites sent, and a terminal obeys control sequences."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from rich.cells import cell_len, set_cell_size

# Control characters of both sets, and those that hide or turn around the text that follows them.
_UNSAFE: Final = "\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_UNSAFE_ANYWHERE: Final = re.compile(f"[{_UNSAFE}]")
_UNSAFE_BUT_NEWLINE: Final = re.compile(f"(?!\n)[{_UNSAFE}]")
# In JSON text, those below U+0020 are escaped already; the newline between records must stay.
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def printable(text: str, *, newlines: bool = False) -> str:
    """The text with every character that a terminal would act on written as an escape.

    ``newlines`` keeps line breaks; else they show as ``⏎``.
    """
    if newlines:
        return _UNSAFE_BUT_NEWLINE.sub(_escape, text.replace("\r\n", "\n"))
    return _UNSAFE_ANYWHERE.sub(_escape, text.replace("\r\n", "\n").replace("\n", "⏎"))


def printable_json(text: str) -> str:
    """JSON text with the same characters as JSON escapes, so that it is still the same JSON."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shown(value: Any) -> str:
    """A field's value as text: strings as they are, None as nothing, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 error``, ``2 errors``. ``noun`` is in the singular and takes an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_url(text: str) -> bool:
    """Whether a text is the address of a page."""
    return text.startswith(("http://", "https://"))


def shortened(text: str, width: int) -> str:
    """A text in so many cells of a terminal, without its middle if it is longer: the end of a URL tells most."""
    if cell_len(text) <= width:
        return text
    head = (width - 1) // 2
    tail = max(width - 1 - head, 0)
    return f"{set_cell_size(text, head)}…{set_cell_size(text[::-1], tail)[::-1]}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
