"""Stored text made safe to show, and times and lengths of time as people read them.

Items hold what web sites sent, and a terminal obeys control sequences.
"""

from __future__ import annotations

import datetime as dt
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


#: Characters of a time.
TIME_WIDTH: Final = 19


def clock(milliseconds: Any) -> str:
    """A time of the API, milliseconds since the epoch, in UTC; nothing for what is not one."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    try:
        moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def clock_with_zone(milliseconds: Any) -> str:
    """The same where nothing beside it names the zone."""
    told = clock(milliseconds)
    return f"{told} UTC" if told else ""


def length(milliseconds: Any) -> str:
    """A length of time in at most six characters: ``340ms``, ``12.5s``, ``3m20s``, ``2h05m``."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m"
