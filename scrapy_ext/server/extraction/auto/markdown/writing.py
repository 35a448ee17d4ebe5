"""Blocks and spans as Markdown: marks, links, code, images, and text in which nothing reads as Markdown.

``**`` and ``_`` are marks only beside certain characters, and parsers differ in which characters are punctuation. Marks
that would not be read as such by all of them are left out: of ``<b>"a"</b>b`` the text stays, without the stars.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from scrapy_ext.server.extraction.auto.markdown.document import (
    PLAIN,
    Block,
    CodeBlock,
    Heading,
    ListBlock,
    Paragraph,
    Quote,
    Rule,
    Span,
    SpanKind,
    Spans,
    Style,
    Table,
)

#: Passes in which marks that would not be read are left out; then all are, as a hostile text may need a pass for each.
_PASSES: Final = 8
_ESCAPED = re.compile(
    r"[*`\[\]~]"
    # Underscores, but for those within words.
    r"|(?<![^\W_])_|_(?![^\W_])"
    # Backslashes that would escape something, the begin of tags, character references.
    r"|\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?]|$)|&(?=#?[0-9A-Za-z]{1,40};)"
)
_LINE_START = re.compile(r"(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|[-=:|\s]+$)|\d{1,9}(?=[.)](?:\s|$))")
_TRAILING_SIGNS = re.compile(r"(?:(?<=\s)|^)(?=#+$)")
_TICKS = re.compile("`+")
_NEVER_IN_ADDRESS = re.compile(r"[\s\x00-\x20\x7f()<>\\\"`|]")
_REFERENCE = re.compile(r"&(?=#?[0-9A-Za-z]{1,40};)")
_STRONG, _EMPHASIS, _STRUCK = "**", "_", "~~"
#: Emphasis that begins or ends within a word, where low lines are signs of the word.
_IN_WORD: Final = "*"


class _Mark(NamedTuple):
    """The begin or end of marked spans; ``number`` is the first of them."""

    text: str
    opens: bool
    kind: str
    number: int


def inline(spans: Spans, *, cell: bool = False) -> str:
    """Return settled spans as Markdown: with line breaks as such, or for a ``cell`` of a table."""
    in_words: set[int] = set()
    for _ in range(_PASSES):
        pieces = list(_with_marks(_pieces(spans, cell=cell), in_words))
        unread = _unread(pieces)
        if not unread:
            break
        other = {number for kind, number in unread if kind == "emphasis"} - in_words
        if other:
            in_words |= other
            continue
        spans, in_words = _without(spans, unread), set()
    else:
        pieces = list(_pieces([span._replace(style=Style(span.style.link)) for span in spans], cell=cell))
    return "".join(piece.text if isinstance(piece, _Mark) else piece for piece in pieces)


def paragraph(spans: Spans) -> str:
    """Return a paragraph, in which no line begins like another block."""
    return "\n".join(_as_text(line) for line in inline(spans).split("\n"))


def _as_text(line: str) -> str:
    match = _LINE_START.match(line)
    return line if match is None else f"{line[: match.end()]}\\{line[match.end() :]}"


def heading(spans: Spans) -> str:
    """Return the text of a heading: signs at its end would not be read."""
    return _TRAILING_SIGNS.sub(r"\\", inline(spans))


def _pieces(spans: Spans, *, cell: bool) -> Iterator[str | _Mark]:
    style, begins = PLAIN, dict.fromkeys(("strong", "emphasis", "struck"), 0)
    for number, span in enumerate(_merged(spans)):
        yield from _changed(style, span.style, begins, number)
        style = span.style
        yield _written(span, cell=cell)
    yield from _changed(style, PLAIN, begins, 0)


def _with_marks(pieces: Iterable[str | _Mark], in_words: set[int]) -> Iterator[str | _Mark]:
    """Yield pieces with the marks of emphasis in words where these numbers have them."""
    for piece in pieces:
        is_in_word = isinstance(piece, _Mark) and piece.kind == "emphasis" and piece.number in in_words
        yield piece._replace(text=_IN_WORD) if is_in_word and isinstance(piece, _Mark) else piece


def _merged(spans: Spans) -> list[Span]:
    """Return spans with texts of one style as one, which may have become equal by marks left out."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last is not None and last.kind is span.kind is SpanKind.TEXT and last.style == span.style:
            found[-1] = last._replace(text=last.text + span.text)
        else:
            found.append(span)
    return found


_KINDS: Final = (("strong", _STRONG), ("emphasis", _EMPHASIS), ("struck", _STRUCK))


def _changed(before: Style, after: Style, begins: dict[str, int], number: int) -> Iterator[str | _Mark]:
    """Yield the ends of marks of one style, then the begins of those of the next."""
    same = before.link == after.link
    kept = []
    for kind, text in _KINDS:
        # A mark ends with those around it.
        same = same and getattr(before, kind) == getattr(after, kind)
        kept.append((kind, text, same))
    for kind, text, is_same in reversed(kept):
        if getattr(before, kind) and not is_same:
            yield _Mark(text, opens=False, kind=kind, number=begins[kind])
    if before.link != after.link:
        if before.link is not None:
            yield f"]({address(before.link)})"
        if after.link is not None:
            yield "["
    for kind, text, is_same in kept:
        if getattr(after, kind) and not is_same:
            begins[kind] = number
            yield _Mark(text, opens=True, kind=kind, number=number)


def _written(span: Span, *, cell: bool) -> str:
    match span.kind:
        case SpanKind.TEXT:
            return escaped(span.text, cell=cell)
        case SpanKind.CODE:
            return _code(span.text, cell=cell)
        case SpanKind.IMAGE:
            return f"![{escaped(span.text, cell=cell)}]({address(span.url)})"
        case SpanKind.BOX:
            return f"[{span.text}]"
    return " " if cell else "\\\n"


def escaped(text: str, *, cell: bool = False) -> str:
    """Return a text in which nothing reads as Markdown, within a line."""
    found = _ESCAPED.sub(r"\\\g<0>", text)
    return found.replace("|", "\\|") if cell else found


def _code(text: str, *, cell: bool) -> str:
    fence = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    found = f"{fence}{pad}{text}{pad}{fence}"
    return found.replace("|", "\\|") if cell else found


def address(url: str) -> str:
    """Return a URL as the target of a link: nothing in it ends the target, or reads as a character reference."""
    encoded = _NEVER_IN_ADDRESS.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), url)
    return _REFERENCE.sub("&amp;", encoded)


def _unread(pieces: list[str | _Mark]) -> set[tuple[str, int]]:
    """Return the marks, by kind and first span, that are not read as such; adds backslashes before links."""
    texts = [piece.text if isinstance(piece, _Mark) else piece for piece in pieces]
    found = set()
    for at, piece in enumerate(pieces):
        before = texts[at - 1][-1:] if at else ""
        after = texts[at + 1][:1] if at + 1 < len(texts) else ""
        if isinstance(piece, _Mark):
            if not all(_is_read(piece, before, after, symbols=symbols) for symbols in (False, True)):
                found.add((piece.kind, piece.number))
        elif piece.endswith("!") and after == "[":
            # It would make an image of the link.
            pieces[at] = f"{piece[:-1]}\\!"
    return found


def _is_read(mark: _Mark, before: str, after: str, *, symbols: bool) -> bool:
    """Return whether a mark is read between two characters; ``symbols`` count as punctuation for some parsers."""
    sign = mark.text[0]
    if sign in (before, after):
        return False
    space_before, space_after = not before or before.isspace(), not after or after.isspace()
    sign_before, sign_after = _is_sign(before, symbols=symbols), _is_sign(after, symbols=symbols)
    left = not space_after and (not sign_after or space_before or sign_before)
    right = not space_before and (not sign_before or space_after or sign_after)
    if sign == "_":
        return left and (not right or sign_before) if mark.opens else right and (not left or sign_after)
    return left if mark.opens else right


def _is_sign(character: str, *, symbols: bool) -> bool:
    if not character:
        return False
    if character.isascii():
        return not character.isalnum() and not character.isspace()
    category = unicodedata.category(character)
    return category[0] == "P" or (symbols and category[0] == "S")


def _without(spans: Spans, unread: set[tuple[str, int]]) -> list[Span]:
    """Return spans without these marks."""
    found, merged = [], _merged(spans)
    dropped = dict.fromkeys(("strong", "emphasis", "struck"), False)
    before = PLAIN
    for number, span in enumerate(merged):
        same = before.link == span.style.link
        style = span.style
        for kind in dropped:
            same = same and getattr(before, kind) == getattr(span.style, kind)
            if not same:
                dropped[kind] = (kind, number) in unread
            if dropped[kind]:
                style = style.with_mark(kind, on=False)
        before = span.style
        found.append(span._replace(style=style))
    return found


# ── blocks as lines of Markdown, each block set apart from the next by an empty line ──


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
