"""Formatting of text and times for terminals.

Control sequences in text of web sites would change a terminal, so they are escaped.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from rich.cells import cell_len, set_cell_size

from scrapy_ext.api.platform.worker_bounds import JOB_WORKERS

# Control characters of both sets, and those that hide the text that follows or change its direction.
_UNSAFE: Final = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_UNSAFE_ANYWHERE: Final = re.compile(f"[{_UNSAFE}]")
_UNSAFE_BUT_NEWLINE: Final = re.compile(f"(?!\n)[{_UNSAFE}]")
# JSON text has no characters below U+0020 except newlines between records.
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def columns_of_terminal() -> int:
    """Return the width of the terminal; 80 where it has none, as on serial consoles, where Python 3.10 returns 0."""
    return shutil.get_terminal_size().columns or 80


def printable(text: str, *, newlines: bool = False) -> str:
    """Escape all characters that control a terminal; line breaks become ``⏎`` unless ``newlines`` is true."""
    if newlines:
        return _UNSAFE_BUT_NEWLINE.sub(_escape, text.replace("\r\n", "\n"))
    return _UNSAFE_ANYWHERE.sub(_escape, text.replace("\r\n", "\n").replace("\n", "⏎"))


def printable_json(text: str) -> str:
    """Escape the same characters in JSON text, which remains the same JSON."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shown(value: object) -> str:
    """Return a value as text: strings unchanged, None as "", other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 error``, ``2 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(number: float) -> str:
    """Format a number of bytes: 340 B, 12.4 MB."""
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def shortened(text: str, width: int) -> str:
    """Cut the middle out of a text that needs more than ``width`` terminal cells."""
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


def clock(milliseconds: object) -> str:
    """Format a time in milliseconds in UTC; "" for another value."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    try:
        moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def clock_with_zone(milliseconds: object) -> str:
    """Format a time in milliseconds, with its zone."""
    time = clock(milliseconds)
    return f"{time} UTC" if time else ""


def length(milliseconds: object) -> str:
    """Format milliseconds in at most six characters: ``340ms``, ``12.5s``, ``3m20s``, ``2h05m``."""
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


def with_workers(name: str, record: Mapping[str, Any]) -> str:
    """Return the name of a spider with the number of workers of a job, or of a task, that has several: ``books ×4``."""
    workers = record.get(JOB_WORKERS)
    return f"{name} ×{workers}" if workers else name
