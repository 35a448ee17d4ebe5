"""Selection of what becomes Markdown: all that a page shows, or the blocks of its main content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol

from scrapy_ext.server.extraction.auto.page import Page

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.content.blocks import TextBlock

#: Elements without text for readers.
UNREAD: Final = frozenset({
    "head", "title", "meta", "link", "script", "style", "base", "iframe", "audio", "canvas", "datalist", "select",
    "textarea", "input", "template", "noembed", "noframes", "rp",
})  # fmt: skip
#: Elements around a picture that are parts of it: whether it is content is for what is around them to say.
_OF_PICTURES: Final = frozenset({"a", "figure", "figcaption", "picture", "span", "img"})
#: Share of the words around a picture that must be content.
_MOST: Final = 0.5


class Selection(Protocol):
    """Choice among the parts of a page, by positions in its outline."""

    def has(self, piece: int) -> bool:
        """Return whether a text is taken: ``2 * position`` is that of an element, ``2 * position + 1`` its tail."""

    def skips(self, position: int) -> bool:
        """Return whether nothing in an element is taken."""

    def has_image(self, position: int) -> bool:
        """Return whether a picture is taken."""


class WholePage:
    """All that a page shows: what it hides itself is left out."""

    def __init__(self, page: Page) -> None:
        self._hidden = _hidden(page)

    def has(self, piece: int) -> bool:
        return True

    def skips(self, position: int) -> bool:
        return position in self._hidden

    def has_image(self, position: int) -> bool:
        return True


class MainContent:
    """The blocks of the content, and the pictures among them."""

    def __init__(self, page: Page, blocks: Iterable[TextBlock], chosen: Sequence[TextBlock]) -> None:
        self._outline = outline = page.outline
        self._hidden = _hidden(page)
        self._pieces = frozenset(piece for block in chosen for piece in block.pieces)
        size = len(outline.nodes)
        #: Sums of words up to each position: of all blocks, and of the chosen ones.
        self._all, self._chosen = _sums(blocks, size), _sums(chosen, size)
        self._texts = list(accumulate(self._counts(size), initial=0))

    def _counts(self, size: int) -> list[int]:
        counts = [0] * size
        for piece in self._pieces:
            counts[piece // 2] += 1
        return counts

    def has(self, piece: int) -> bool:
        return piece in self._pieces

    def skips(self, position: int) -> bool:
        end = self._outline.ends[position]
        # The tail of an element belongs to those around it.
        inside = self._texts[end] - self._texts[position] - (2 * position + 1 in self._pieces)
        return not inside and (position in self._hidden or not self._may_have_images(position, end))

    def _may_have_images(self, position: int, end: int) -> bool:
        return self._all[end] == self._all[position] or self._outline.tags[position] in _OF_PICTURES

    def has_image(self, position: int) -> bool:
        """Return whether most of the words around a picture are content."""
        outline = self._outline
        for around in outline.around(position):
            end = outline.ends[around]
            words = self._all[end] - self._all[around]
            if words and outline.tags[around] not in _OF_PICTURES:
                return self._chosen[end] - self._chosen[around] >= _MOST * words
        return False


def _hidden(page: Page) -> frozenset[int]:
    return frozenset(page.order[node] for node in page.hidden)


def _sums(blocks: Iterable[TextBlock], size: int) -> list[int]:
    words = [0] * size
    for block in blocks:
        if block.pieces:
            words[block.pieces[0] // 2] += block.words
    return list(accumulate(words, initial=0))
