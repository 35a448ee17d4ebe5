"""Joints of a page that its style sheets part: ``<strong>Fast delivery</strong>We send it today``.

Without style sheets only the words show it. A phrase in an element of its own with a capital letter right behind its
last word is the name of what follows, and so is a word right behind the end of a sentence. Else one word may be a part
of a longer one: ``<b>Java</b>Script``.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

_NAMES: Final = ("b", "strong", "em", "i", "u", "span")
#: Longer texts, in characters or pieces, are no names.
_LONGEST: Final = 200
_MOST_PIECES: Final = 20
_SENTENCE_END: Final = (".", "!", "?", "…")
_CAPITAL_WORD = re.compile(r"[^\W\d_][^\W\d_]")


def write_joints(tree: HtmlElement) -> None:
    """Write a space behind each name that is joined to the text behind it, and behind a sentence before one."""
    for node in tree.iter(*_NAMES):
        if not _begins_with_capital(_text_behind(node)):
            continue
        name = "".join(islice(node.itertext(), _MOST_PIECES))
        if not name or len(name) > _LONGEST or not (name[-1].islower() or name.endswith(_SENTENCE_END)):
            continue
        is_behind_sentence = _begins_with_capital(name) and _text_before(node).endswith(_SENTENCE_END)
        if is_behind_sentence:
            _write_space_before(node)
        if is_behind_sentence or " " in name.strip():
            node.tail = f" {node.tail or ''}"


def _begins_with_capital(text: str) -> bool:
    """Return whether a text begins with a word of small letters but the first."""
    word = _CAPITAL_WORD.match(text)
    return word is not None and word[0][0].isupper() and word[0][1].islower()


def _text_behind(node: HtmlElement) -> str:
    other = node.getnext()
    return node.tail or (other.text if other is not None and other.tag in _NAMES else None) or ""


def _text_before(node: HtmlElement) -> str:
    before, parent = node.getprevious(), node.getparent()
    if before is not None:
        return before.tail or ""
    return (parent.text or "") if parent is not None else ""


def _write_space_before(node: HtmlElement) -> None:
    before, parent = node.getprevious(), node.getparent()
    if before is not None:
        before.tail = f"{before.tail} "
    elif parent is not None:
        parent.text = f"{parent.text} "
