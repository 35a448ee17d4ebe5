"""Outline of a page: how much a reader sees of it, and the parts by which a challenge differs from a page.

It is read in one pass, without regular expressions that look far, from a page of at most :data:`LARGEST`. The reading
ends at :data:`MOST_TEXT` visible characters or :data:`MOST_TAGS` tags, which few challenges have. So an ordinary page
of 100 KB costs about a millisecond, and the worst page less than ten.
"""

from __future__ import annotations

import re
from typing import Final

#: Bytes, or characters, of a page that is read; block and challenge pages are smaller.
LARGEST: Final = 256 * 1024
#: Visible characters after which a page is no challenge.
MOST_TEXT: Final = 2500
#: Tags likewise.
MOST_TAGS: Final = 3000

#: Elements whose content is not seen.
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object"})
_SEEN_MEDIA: Final = frozenset({"img", "picture", "video", "audio", "canvas", "svg", "iframe", "object", "embed"})
_TEXT_INPUTS: Final = frozenset({"textarea", "select"})
#: Types of ``input`` that are no text.
_NO_TEXT: Final = ("hidden", "submit", "button", "checkbox", "radio", "image", "reset")
_KNOWN: Final = frozenset({"a", "input", "title"}) | _TEXT_INPUTS | _SEEN_MEDIA | _UNSEEN
#: The name of an opening tag.
_NAME: Final = re.compile(r"[a-z]{1,12}(?![a-z0-9-])")
_LONGEST_TAG: Final = 2000


class Outline:
    """Visible parts of a page (in lower case). ``is_long``: more than a challenge does; the rest was not read."""

    def __init__(self, page: str) -> None:
        self.title = ""
        self.links = 0
        #: Fields for text, and for passwords, that are seen.
        self.inputs = 0
        self.passwords = 0
        #: Images, frames, drawings and the like.
        self.media = 0
        self.scripts = 0
        self.is_long = False
        # Only the first title is looked for: of many without an end, each look would read the rest of the page.
        self._is_titled = False
        self._pieces: list[str] = []
        self._markup: list[str] = []
        self._length = 0
        self._read(page)

    @property
    def text(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(self._pieces)

    @property
    def markup(self) -> str:
        """The tags and scripts, without texts, comments and data."""
        return "".join(self._markup)

    def _read(self, page: str) -> None:
        at = 0
        for _ in range(MOST_TAGS):
            start = page.find("<", at)
            if start != at:
                self._see(page[at:start] if start >= 0 else page[at:])
            if start < 0 or self.is_long:
                return
            is_comment = page.startswith("<!--", start)
            end = page.find("-->", start + 4) if is_comment else page.find(">", start)
            if end < 0:
                return
            at = end + (3 if is_comment else 1)
            if not is_comment:
                self._markup.append(page[start:at])
            name = _NAME.match(page, start + 1)
            if name is not None and name[0] in _KNOWN:
                at = self._note(name[0], page, name.end(), end)
                if not at:
                    return
        self.is_long = True

    def _note(self, name: str, page: str, start: int, end: int) -> int:
        """Note a tag; return the place after it, or after its content if that is not seen, 0 at the end."""
        at = end + 1
        if name == "a":
            self.links += 1
        elif name in ("input", *_TEXT_INPUTS):
            self._field(name, page[start : min(end, start + _LONGEST_TAG)])
        elif name == "title" and not self._is_titled:
            self._is_titled = True
            close = page.find("</title", at)
            self.title = " ".join(page[at : close if close >= 0 else at].split())[:200]
            return max(close, at)
        self.media += name in _SEEN_MEDIA
        if name in _UNSEEN and page[end - 1] != "/":
            self.scripts += name == "script"
            close = page.find(f"</{name}", at)
            if name != "script" or "json" not in page[start : min(end, start + _LONGEST_TAG)]:
                self._markup.append(page[at:close] if close >= 0 else page[at:])
            return max(close, 0)
        return at

    def _field(self, name: str, tag: str) -> None:
        if name in _TEXT_INPUTS:
            # The answer of a solved CAPTCHA is in a hidden one.
            self.inputs += "display:none" not in tag.replace(" ", "") and "-response" not in tag
            return
        kind = tag.partition("type=")[2].lstrip("\"' ")
        if kind.startswith("password"):
            self.passwords += 1
        elif not kind.startswith(_NO_TEXT):
            self.inputs += 1

    def _see(self, text: str) -> None:
        if text.isspace():
            return
        seen = " ".join(text[: 2 * MOST_TEXT].split())
        self._pieces.append(seen)
        self._length += len(seen)
        self.is_long = self._length > MOST_TEXT
