"""Readings of words as text: the small letters that ``<ruby>`` sets above a word of Japanese or Chinese.

In a line, a reading follows its word in the signs that its page names for that, or in parentheses: ``港(みなと)``. A
heading is a name, which other places of a page give without readings, and loses them.
"""

from __future__ import annotations

from typing import Final

from lxml import etree
from lxml.html import HtmlElement

_READINGS: Final = ("rt", "rp", "rtc")
_PARTS: Final = ("ruby", "rb", *_READINGS)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def write_readings(tree: HtmlElement) -> None:
    """Replace each word with a reading by their texts."""
    words = list(tree.iter("ruby"))
    for word in words:
        _join(word)
        if any(around.tag in _HEADINGS for around in word.iterancestors()):
            etree.strip_elements(word, *_READINGS, with_tail=False)
        elif next(word.iter("rp"), None) is None:
            for reading in word.iter("rt"):
                _put_in_parentheses(reading)
    if words:
        etree.strip_tags(tree, *_PARTS)


def _join(word: HtmlElement) -> None:
    """Remove the white space between the parts of a word, which is not shown."""
    for node in word.iter(*_PARTS):
        if node.text and not node.text.strip():
            node.text = None
        if node is not word and node.tail and not node.tail.strip():
            node.tail = None


def _put_in_parentheses(reading: HtmlElement) -> None:
    if not reading.text_content().strip():
        return
    reading.text = f"({(reading.text or '').lstrip()}"
    if len(reading):
        reading[-1].tail = f"{(reading[-1].tail or '').rstrip()})"
    else:
        reading.text = f"{reading.text.rstrip()})"
