"""Paragraphs of clean HTML: text that is in no block, and text between double line breaks."""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.page.cleaning.nodes import INLINE, Node, is_double_break


def into_paragraphs(article: Node) -> None:
    """Put all text right inside an article into paragraphs. Double line breaks separate them."""
    children = article.children
    breaks = _breaks(children)
    found: list[Node] = []
    chunk: list[Node] = []
    text, article.text = article.text and article.text.lstrip(), None
    # The child whose tail is the text of the next paragraph.
    before: Node | None = None
    for index, child in enumerate([*children, None]):
        is_break = index in breaks
        if child is not None and child.tag in INLINE and not is_break:
            chunk.append(child)
            continue
        if before is not None:
            text, before.tail = before.tail and before.tail.rstrip(), None
        paragraph = Node("p", text)
        paragraph.children, chunk = chunk, []
        if paragraph.children or paragraph.has_text:
            found.append(paragraph)
        if child is not None and not is_break:
            found.append(child)
        before = child
    article.children = found


def _breaks(children: list[Node]) -> set[int]:
    """Return the indices of line breaks that are beside another."""
    found: set[int] = set()
    for index in range(len(children) - 1):
        if is_double_break(children, index):
            found |= {index, index + 1}
    return found


def set_apart(article: Node) -> None:
    """Separate the blocks of an article by an empty line, without space at their ends."""
    article.text = "\n\n"
    for child in article.children:
        child.tail = "\n\n"
        if child.tag != "pre":
            child.text = (child.text or "").lstrip()
            if child.children:
                child.children[-1].tail = (child.children[-1].tail or "").rstrip()
            else:
                child.text = child.text.rstrip()
