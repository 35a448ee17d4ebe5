"""Nodes: the copy of a part of a page that cleaning changes.

Cleaning moves nearly every node at least once. With lxml each step takes microseconds; these nodes are plain Python
objects with a list of children. Attributes stay with the element of the page until the clean part is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from lxml.html import HtmlElement, defs

#: Elements that are text, or stand in text as a letter does.
INLINE: Final = defs.special_inline_tags | frozenset({
    "abbr", "acronym", "audio", "b", "bdi", "big", "blink", "button", "canvas", "cite", "code", "data", "datalist",
    "del", "dfn", "em", "i", "input", "ins", "kbd", "label", "link", "mark", "math", "meta", "meter", "noscript",
    "output", "picture", "progress", "s", "samp", "select", "slot", "small", "source", "strike", "strong", "svg",
    "template", "textarea", "time", "track", "tt", "u", "var", "video", "wbr",
})  # fmt: skip
#: Elements that begin a new line. Unknown ones do not.
BLOCKS: Final = defs.tags - INLINE
#: The tag of the nodes of comments.
COMMENT: Final = "#comment"


class Node:
    """An element, its text, and its children with the text behind each of them (``tail``)."""

    __slots__ = ("children", "element", "embedded", "tag", "tail", "text")

    def __init__(
        self, tag: str, text: str | None = None, tail: str | None = None, element: HtmlElement | None = None
    ) -> None:
        self.tag = tag
        self.text = text
        self.tail = tail
        #: The element of the page with its attributes; None for a new one without any.
        self.element = element
        #: Whether it belongs to a post of another site, which stays as it is.
        self.embedded = False
        self.children: list[Node] = []

    @property
    def has_text(self) -> bool:
        return self.text is not None and not _blank(self.text)

    @property
    def has_tail(self) -> bool:
        return self.tail is not None and not _blank(self.tail)

    def below(self) -> Iterator[Node]:
        """Yield all nodes inside, in the order of the page. They may be changed, but not moved meanwhile."""
        for child in self.children:
            yield child
            if child.children:
                yield from child.below()

    def add(self, child: Node) -> None:
        self.children.append(child)

    def add_text(self, text: str | None) -> None:
        """Add a text behind the last child."""
        if text:
            _append(self, len(self.children), text)


def _blank(text: str) -> bool:
    return not text or text.isspace()


def copy_of(element: HtmlElement) -> Node:
    """Return the nodes of an element and all inside, without the text behind it."""
    if not isinstance(element.tag, str):
        return Node(COMMENT, (element.text or "").strip())
    node = Node(element.tag, element.text, None, element)
    for child in element:
        inner = copy_of(child)
        inner.tail = child.tail
        node.children.append(inner)
    return node


def _append(parent: Node, index: int, text: str | None) -> None:
    """Add a text before the child at an index."""
    if not text:
        return
    if index:
        before = parent.children[index - 1]
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def text_before(parent: Node, index: int) -> str | None:
    """Return the text right before a child."""
    return parent.children[index - 1].tail if index else parent.text


def is_double_break(nodes: list[Node], index: int) -> bool:
    """Return whether at an index there are two line breaks with nothing between them."""
    return (
        0 <= index < len(nodes) - 1
        and nodes[index].tag == "br"
        and nodes[index + 1].tag == "br"
        and not nodes[index].has_tail
    )


def remove(parent: Node, index: int) -> None:
    """Remove a child with all inside of it, but not the text behind it."""
    tail = parent.children.pop(index).tail
    _append(parent, index, tail)


def unwrap(parent: Node, index: int) -> int:
    """Replace a child by its own children and texts; return the index behind them."""
    node = parent.children[index]
    parent.children[index : index + 1] = node.children
    _append(parent, index, node.text)
    end = index + len(node.children)
    _append(parent, end, node.tail)
    return end


def dissolve(parent: Node, index: int, *, keep: bool = True) -> int:
    """Replace a child by its own children and texts (``keep``), or remove it; return the index behind.

    Two line breaks are put where the edge of a block separated texts.
    """
    node = parent.children[index]
    if node.tag in BLOCKS:
        siblings = parent.children
        has_text_before = bool((text_before(parent, index) or "").strip()) or (
            index > 0 and siblings[index - 1].tag in INLINE and not is_double_break(siblings, index - 2)
        )
        has_content = keep and (node.has_text or bool(node.children))
        has_text_behind = node.has_tail or (
            index + 1 < len(siblings) and siblings[index + 1].tag in INLINE and not is_double_break(siblings, index + 1)
        )
        if has_content and has_text_behind:
            siblings[index + 1 : index + 1] = [Node("br"), Node("br", tail=node.tail)]
            node.tail = None
        behind = 2 if has_content and has_text_behind else 0
        if has_text_before and (has_content or has_text_behind):
            siblings[index:index] = [Node("br"), Node("br")]
            index += 2
    else:
        behind = 0
    if keep:
        return unwrap(parent, index) + behind
    remove(parent, index)
    return index


def dissolve_all(parent: Node, unwanted: Callable[[Node], bool], *, keep: bool = True) -> None:
    """Dissolve the unwanted nodes inside of a node, inner ones first."""
    index = 0
    while index < len(parent.children):
        child = parent.children[index]
        if child.children:
            dissolve_all(child, unwanted, keep=keep)
        index = dissolve(parent, index, keep=keep) if unwanted(child) else index + 1


def path_to(root: Node, wanted: Node) -> list[tuple[Node, int]]:
    """Return the nodes from the root to the parent of a node, each with the index of the next; none for the root."""
    for index, child in enumerate(root.children):
        if child is wanted:
            return [(root, index)]
        if child.children and (rest := path_to(child, wanted)):
            return [(root, index), *rest]
    return []
