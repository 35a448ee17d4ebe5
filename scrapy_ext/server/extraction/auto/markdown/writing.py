"""Blocks as lines of Markdown, each block set apart from the next by an empty line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from scrapy_ext.server.extraction.auto.markdown.document import (
    Block,
    CodeBlock,
    Heading,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Spans,
    Table,
)
from scrapy_ext.server.extraction.auto.markdown.inline import heading, inline, paragraph

_FENCES = re.compile("^ *(`{3,})", re.MULTILINE)
#: No list begins with it, so that it is none within a list.
_RULE: Final = "___"


def written(blocks: Sequence[Block]) -> str:
    """Return blocks as Markdown, with a line break at the end; empty for none."""
    lines = _lines(blocks)
    return "\n".join(lines) + "\n" if lines else ""


def _lines(blocks: Sequence[Block], *, tight: bool = False) -> list[str]:
    lines: list[str] = []
    other_sign = False
    before: Block | None = None
    for block in blocks:
        # Lists that follow each other would be one.
        other_sign = _is_alike(before, block) and not other_sign
        if lines and not tight:
            lines.append("")
        lines += _lines_of(block, other_sign=other_sign)
        before = block
    return lines


def _is_alike(before: Block | None, block: Block) -> bool:
    if not isinstance(before, ListBlock) or not isinstance(block, ListBlock):
        return False
    return (before.start is None) == (block.start is None)


def _lines_of(block: Block, *, other_sign: bool) -> list[str]:
    match block:
        case Paragraph(spans):
            return paragraph(spans).split("\n")
        case Heading(level, spans):
            return [f"{'#' * level} {heading(spans)}"]
        case CodeBlock():
            return _fenced(block)
        case Quote(inner):
            return [f"> {line}" if line else ">" for line in _lines(inner)]
        case ListBlock():
            return _list(block, other_sign=other_sign)
        case Table():
            return list(_table(block))
        case Rule():
            return [_RULE]


def _fenced(block: CodeBlock) -> list[str]:
    longest = max((len(fence) for fence in _FENCES.findall(block.text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{block.language}", *block.text.split("\n"), fence]


def _list(block: ListBlock, *, other_sign: bool) -> list[str]:
    tight = all(_is_short(item) for item in block.items)
    lines: list[str] = []
    for number, item in enumerate(block.items, block.start or 0):
        sign = _sign(None if block.start is None else number, other=other_sign)
        if lines and not tight:
            lines.append("")
        first, *others = _lines(item, tight=tight)
        lines.append(sign + first)
        lines += [" " * len(sign) + line if line else "" for line in others]
    return lines


def _sign(number: int | None, *, other: bool) -> str:
    if number is None:
        return "* " if other else "- "
    return f"{number}) " if other else f"{number}. "


def _is_short(item: Sequence[Block]) -> bool:
    """Return whether an item is a paragraph, with lists below that need no empty line before them."""
    first, *others = item
    return isinstance(first, Paragraph) and all(
        isinstance(each, ListBlock) and each.start in (None, 1) for each in others
    )


def _table(table: Table) -> Iterator[str]:
    yield _row(table.header)
    yield f"|{' --- |' * len(table.header)}"
    yield from map(_row, table.rows)


def _row(cells: Sequence[Spans]) -> str:
    return f"| {' | '.join(inline(cell, cell=True) for cell in cells)} |"
