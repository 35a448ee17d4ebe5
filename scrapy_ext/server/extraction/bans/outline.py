"""Outline of a page: how much a reader sees of it, and the parts by which a challenge differs from a page.

Read in one pass, without regular expressions, of a page of at most :data:`LARGEST`. It ends early at :data:`MOST_TEXT`
visible characters or :data:`MOST_TAGS` tags, which few challenges have, so that ordinary pages cost about a millisecond
and the worst page less than ten.
"""

from __future__ import annotations

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
_LONGEST_NAME: Final = 12
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
        self._length = 0
        self._read(page)

    @property
    def text(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(self._pieces)

    def _read(self, page: str) -> None:
        at = 0
        for _ in range(MOST_TAGS):
            if self.is_long:
                return
            start = page.find("<", at)
            if start != at:
                self._see(page[at:start] if start >= 0 else page[at:])
            if start < 0:
                return
            if page.startswith("<!--", start):
                end = page.find("-->", start + 4)
                at = end + 3
            else:
                end = page.find(">", start)
                at = end + 1
                if end >= 0:
                    at = self._tag(page, start + 1, end, at)
            if end < 0 or at <= 0:
                return
        self.is_long = True

    def _tag(self, page: str, start: int, end: int, at: int) -> int:
        """Note a tag; return the place after it, or after its content if that is not seen, 0 at the end."""
        name = _name(page[start : start + _LONGEST_NAME])
        if name == "a":
            self.links += 1
        elif name in ("input", *_TEXT_INPUTS):
            self._field(name, page[start : min(end, start + _LONGEST_TAG)])
        elif name == "title" and not self._is_titled:
            self._is_titled = True
            close = page.find("</title", at)
            self.title = " ".join(page[at : close if close >= 0 else at].split())[:200]
            return max(close, at)
        if name in _SEEN_MEDIA:
            self.media += 1
        if name in _UNSEEN and page[end - 1] != "/":
            self.scripts += name == "script"
            close = page.find(f"</{name}", at)
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
        seen = " ".join(text[: 2 * MOST_TEXT].split())
        if seen:
            self._pieces.append(seen)
            self._length += len(seen)
            self.is_long = self._length > MOST_TEXT


def _name(text: str) -> str:
    for place, character in enumerate(text):
        if not character.isalnum():
            return text[:place]
    return text
