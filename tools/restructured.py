"""Plain text as reStructuredText that reads well as it is: no more is escaped than has to be."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from scrapy_ext.settings import SETTINGS

#: Characters of a line.
WIDTH: Final = 120
#: Names of settings, where a role may begin and end.
_SETTING: Final = re.compile(
    r"(?:(?<=^)|(?<=[\s(\[{<'\"/:-]))(?:EXTRACT_API|PLATFORM|FRONTIER|DUPEFILTER|SERVER|OPENTELEMETRY)_[A-Z_]+"
    r"(?=$|[\s'\")\]}>\-/:.,;!?])"
)
#: Inline code, which stays, and characters that would be markup.
_MARKUP: Final = re.compile(r"(``[^`]+``)|[\\`*|]|(?<=\w)_(?!\w)")


def text(plain: str) -> str:
    """Return plain text as reStructuredText: escaped, with links for names of settings."""
    pieces, last = [], 0
    for match in _SETTING.finditer(plain):
        if match[0] in SETTINGS:
            pieces += [escape(plain[last : match.start()]), f":setting:`{match[0]}`"]
            last = match.end()
    return "".join([*pieces, escape(plain[last:])])


def escape(plain: str) -> str:
    """Return plain text with a backslash before characters that would be markup, other than those of inline code."""
    return _MARKUP.sub(lambda match: match[1] or f"\\{match[0]}", plain)


def code(value: object) -> str:
    """Return a value as inline code; an empty string for an empty value."""
    return f"``{value}``" if value not in ("", None) else ""


def wrapped(paragraph: str, before: str) -> list[str]:
    """Return the lines of a paragraph; the first begins with ``before``, and the others are as far to the right."""
    after = " " * len(before)
    return textwrap.wrap(
        paragraph, WIDTH, initial_indent=before, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )
