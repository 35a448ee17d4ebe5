"""Outline of a page: one walk over its elements that all later passes read from.

lxml makes a new Python string, or looks for the object of an element, at each access to an attribute, a text or a
parent, and a search with XPath takes as long as all these accesses together. With many passes over a page, that takes
longer than the passes. Here each is read once, into lists by the position of the element in the document. All elements
inside of one follow it, up to ``ends``, so that a pass over a part of the tree is a loop over numbers, and leaving out
a part is a jump.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml.html import HtmlElement


class Outline:
    """The elements of a tree in document order, the root at position 0.

    It has the text and attributes of the tree as they were when it was made, and is not changed with it.
    """

    __slots__ = ("attributes", "ends", "nodes", "order", "parents", "tags", "tails", "texts")

    def __init__(self, nodes: list[HtmlElement], attributes: list[dict[str, str]]) -> None:
        # The nodes are kept, because lxml would otherwise create the Python object of an element anew at each access.
        self.nodes = nodes
        self.attributes = attributes
        self.order = order = {node: position for position, node in enumerate(nodes)}
        self.tags: list[str] = [node.tag for node in nodes]
        self.texts: list[str | None] = [node.text for node in nodes]
        self.tails: list[str | None] = [node.tail for node in nodes]
        #: The positions of the parents; -1 for the root.
        self.parents: list[int] = [-1, *(order[node.getparent()] for node in nodes[1:])]
        #: The positions after the last element inside of each.
        self.ends = _ends(self.parents)

    def children(self, position: int) -> Iterator[int]:
        """Yield the positions of the children of an element."""
        ends, child, end = self.ends, position + 1, self.ends[position]
        while child < end:
            yield child
            child = ends[child]

    def around(self, position: int) -> Iterator[int]:
        """Yield the positions of an element and of those around it, from the inside."""
        while position >= 0:
            yield position
            position = self.parents[position]

    def pieces(self, position: int) -> Iterator[str]:
        """Yield the texts in an element in their order, where no element inside of it has others inside."""
        if text := self.texts[position]:
            yield text
        for child in range(position + 1, self.ends[position]):
            if text := self.texts[child]:
                yield text
            if tail := self.tails[child]:
                yield tail

    def texts_in(self, position: int) -> Iterator[str]:
        """Yield the texts in an element in their order, however deep they are."""
        if text := self.texts[position]:
            yield text
        begun: list[int] = []
        for child in range(position + 1, self.ends[position]):
            while begun and self.ends[begun[-1]] <= child:
                if tail := self.tails[begun.pop()]:
                    yield tail
            if text := self.texts[child]:
                yield text
            begun.append(child)
        while begun:
            if tail := self.tails[begun.pop()]:
                yield tail


def _ends(parents: list[int]) -> list[int]:
    ends = [0] * len(parents)
    # From the end, so that the first of an element's children to come is its last one.
    for position in range(len(parents) - 1, -1, -1):
        end = ends[position] = ends[position] or position + 1
        parent = parents[position]
        if parent >= 0 and not ends[parent]:
            ends[parent] = end
    return ends
