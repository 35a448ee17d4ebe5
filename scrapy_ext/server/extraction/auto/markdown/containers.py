"""Quotes, lists and items of a page that have begun, until they are blocks of the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.markdown.document import (
    PLAIN,
    Block,
    ListBlock,
    Paragraph,
    Rule,
    Span,
    SpanKind,
    settled,
)

_SIGN: Final = ":"


class Numbering(NamedTuple):
    """Numbers of an ordered list: the first, and 1 or -1 from each to the next."""

    first: int
    step: int


class Container:
    """A quote, a list or an item that has begun, with the blocks or items in it."""

    __slots__ = ("blocks", "cost", "given", "items", "kind", "numbering", "term")

    def __init__(self, kind: str, cost: int = 0, numbering: Numbering | None = None) -> None:
        self.kind, self.cost, self.numbering = kind, cost, numbering
        self.blocks: list[Block] = []
        self.items: list[list[Block]] = []
        #: The numbers that the page gives to the items.
        self.given: list[int | None] = []
        #: Whether the last item of a definition list has only terms so far.
        self.term = False

    def add(self, block: Block) -> None:
        if self.kind != "list":
            self.blocks.append(block)
        elif self.items:
            self.items[-1].append(block)
        else:
            self.begin_item()
            self.items[-1].append(block)

    def begin_item(self, number: int | None = None) -> None:
        """Begin an item; ``number`` is the one that the page gives it."""
        self.items.append([])
        self.given.append(number)

    def lists(self) -> Iterator[ListBlock]:
        """Yield the list, or several ones where its numbers do not rise by one."""
        kept = [
            (number, blocks)
            for number, item in zip(self.given, self.items, strict=True)
            if (blocks := without_empty(item))
        ]
        if self.numbering is None:
            if kept:
                yield ListBlock([blocks for _, blocks in kept])
            return
        run: list[list[Block]] = []
        begin, (number, step) = 0, self.numbering
        for given, blocks in kept:
            number = number if given is None else given
            if run and number != begin + len(run):
                yield ListBlock(run, begin)
                run = []
            begin = begin if run else number
            run.append(blocks)
            number = max(0, number + step)
        if run:
            yield ListBlock(run, begin)


def join_definition(item: list[Block], terms: int) -> None:
    """Put a definition of one paragraph behind its term: ``**term**: definition``."""
    if len(item) <= terms:
        return
    term, definition = item[terms - 1], item[terms]
    if not isinstance(term, Paragraph) or not isinstance(definition, Paragraph):
        return
    last = term.spans[-1]
    sign = "" if last.text.endswith((_SIGN, "：", "?", "!")) else _SIGN
    between = Span(SpanKind.TEXT, f"{sign} ", PLAIN)
    item[terms - 1 : terms + 1] = [Paragraph(settled([*term.spans, between, *definition.spans]))]


def without_empty(blocks: list[Block]) -> list[Block]:
    """Return blocks without rules that set nothing apart."""
    found: list[Block] = []
    for block in blocks:
        if not isinstance(block, Rule) or (found and not isinstance(found[-1], Rule)):
            found.append(block)
    while found and isinstance(found[-1], Rule):
        found.pop()
    return found
