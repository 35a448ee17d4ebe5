"""Markdown as another parser reads it, compared with the document that it was written from."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from scrapy_ext.server.extraction.auto.markdown.document import (
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
    Table,
)

PARSER: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_MARKS: Final = {"strong": "strong", "em": "emphasis", "s": "struck"}

#: A character, or the whole of a code span or an image, with its marks and the link around it.
Letter = tuple[str, frozenset[str], str]


def assert_read_as(blocks: list[Block], markdown: str) -> None:
    """Check that a parser reads Markdown as these blocks: the same structure, texts and addresses, and no HTML.

    Marks may be missing.
    """
    tokens = PARSER.parse(markdown)
    expected, read = [_shape_of(block) for block in blocks], _shapes(tokens, [0], len(tokens))
    _assert_alike(expected, read, markdown)


def read(markdown: str) -> list[Any]:
    """Return the blocks of a Markdown text, with their texts without marks."""
    tokens = PARSER.parse(markdown)
    return [_plain(shape) for shape in _shapes(tokens, [0], len(tokens))]


def _plain(shape: Any) -> Any:
    if isinstance(shape, list) and shape and isinstance(shape[0], tuple) and isinstance(shape[0][1], frozenset):
        return "".join(letter for letter, _, _ in shape)
    if isinstance(shape, tuple) and shape[0] == "table":
        return ("table", [[_plain(cell) or "" for cell in row] for row in shape[1]])
    if isinstance(shape, list | tuple):
        return type(shape)(_plain(each) for each in shape)
    return shape


def text_of(markdown: str) -> str:
    """Return the text of Markdown as a reader sees it, without signs and addresses."""
    pieces = []
    for token in PARSER.parse(markdown):
        if token.type in ("fence", "code_block"):
            pieces.append(token.content)
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                pieces.append("\n")
            elif child.type in ("text", "code_inline", "text_special"):
                pieces.append(child.content)
        if token.type.endswith("_close") or token.type == "fence":
            pieces.append("\n")
    return "".join(pieces)


def _address(url: str) -> str:
    """Return a URL with its characters as such: parsers encode some of them."""
    return unquote(PARSER.normalizeLink(url))


# ── of the document ──


def _shape_of(block: Block) -> Any:
    match block:
        case Paragraph(spans):
            return ("paragraph", _letters_of(spans))
        case Heading(level, spans):
            return (f"h{level}", _letters_of(spans))
        case CodeBlock(text, language):
            return ("code", language, text)
        case Quote(inner):
            return ("quote", [_shape_of(each) for each in inner])
        case ListBlock(items, start):
            return ("list", start, [[_shape_of(each) for each in item] for item in items])
        case Table(header, rows):
            return ("table", [[_letters_of(cell) for cell in row] for row in (header, *rows)])
        case Rule():
            return ("rule",)


def _letters_of(spans: Spans) -> list[Letter]:
    letters: list[Letter] = []
    for span in spans:
        marks = frozenset(kind for kind in _MARKS.values() if getattr(span.style, kind))
        link = _address(span.style.link or "")
        letters += [(text, marks, link) for text in _texts_of(span)]
    return letters


def _texts_of(span: Span) -> list[str]:
    match span.kind:
        case SpanKind.TEXT:
            return list(span.text)
        case SpanKind.CODE:
            return [f"code:{span.text}"]
        case SpanKind.IMAGE:
            return [f"image:{span.text}:{_address(span.url)}"]
    return ["\n"]


# ── of the tokens of the parser ──


def _shapes(tokens: list[Token], at: list[int], end: int) -> list[Any]:
    found: list[Any] = []
    while at[0] < end and not tokens[at[0]].type.endswith("_close"):
        token = tokens[at[0]]
        at[0] += 1
        match token.type:
            case "fence":
                found.append(("code", token.info, token.content.removesuffix("\n")))
            case "hr":
                found.append(("rule",))
            case "paragraph_open" | "heading_open":
                name = token.tag if token.type == "heading_open" else "paragraph"
                found.append((name, _read_letters(tokens[at[0]].children or [])))
                at[0] += 2
            case "blockquote_open":
                found.append(("quote", _shapes(tokens, at, end)))
                at[0] += 1
            case "bullet_list_open" | "ordered_list_open":
                start = int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None
                items = []
                while tokens[at[0]].type == "list_item_open":
                    at[0] += 1
                    items.append(_shapes(tokens, at, end))
                    at[0] += 1
                at[0] += 1
                found.append(("list", start, items))
            case "table_open":
                found.append(("table", _read_rows(tokens, at)))
            case _:
                raise AssertionError(f"{token.type}: {token.content}")
    return found


def _read_rows(tokens: list[Token], at: list[int]) -> list[list[list[Letter]]]:
    rows: list[list[list[Letter]]] = []
    while tokens[at[0]].type != "table_close":
        token = tokens[at[0]]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_read_letters(token.children or []))
        at[0] += 1
    at[0] += 1
    return rows


def _read_letters(children: list[Token]) -> list[Letter]:
    letters: list[Letter] = []
    marks: list[str] = []
    link = ""
    for child in children:
        name, _, part = child.type.rpartition("_")
        if name == "link":
            link = _address(str(child.attrs["href"])) if part == "open" else ""
        elif name in _MARKS and part == "open":
            marks.append(_MARKS[name])
        elif name in _MARKS:
            marks.remove(_MARKS[name])
        else:
            letters += [(text, frozenset(marks), link) for text in _read_texts(child)]
    return letters


def _read_texts(child: Token) -> list[str]:
    match child.type:
        case "text" | "text_special":
            return list(child.content)
        case "code_inline":
            return [f"code:{child.content}"]
        case "hardbreak":
            return ["\n"]
        case "image":
            alt = PARSER.renderer.renderInlineAsText(child.children or [], PARSER.options, {})
            return [f"image:{alt}:{_address(str(child.attrs['src']))}"]
    raise AssertionError(f"{child.type}: {child.content}")


def _assert_alike(expected: Any, found: Any, markdown: str) -> None:
    if isinstance(expected, frozenset):
        assert found <= expected, (expected, found, markdown)
        return
    if isinstance(expected, list | tuple):
        assert len(expected) == len(found), (expected, found, markdown)
        for each, other in zip(expected, found, strict=True):
            _assert_alike(each, other, markdown)
        return
    assert expected == found, (expected, found, markdown)
