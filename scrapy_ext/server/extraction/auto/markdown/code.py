"""Blocks of code: their text as it stands in the page, and the language that the page names."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.markdown.document import CodeBlock
from scrapy_ext.server.extraction.auto.page.outline import Outline

#: Class names of languages, as highlighters write them.
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-(?:source-|text-)?|brush:\s*|sourceCode\s+)(?P<name>[A-Za-z][\w+#.-]{0,30})"
)
_NAME = re.compile(r"[A-Za-z][\w+#.-]{0,30}", re.ASCII)
#: Names of what is no language.
_NONE: Final = frozenset({
    "none", "plain", "plaintext", "text", "txt", "default", "nohighlight", "no-highlight", "auto",
})  # fmt: skip
_LINE_NUMBERS = re.compile(r"(?:^|[\s_-])(?:line-?numbers?(?:-rows)?|line-?nos?|gutter|blob-num)(?:$|[\s_-])")
_ONLY_NUMBERS = re.compile(r"[\d\s]+")
#: Elements around code that may name its language.
_AROUND: Final = 4


def code_block(outline: Outline, position: int) -> CodeBlock | None:
    """Return the code of a ``pre``; None for one without any, or with the numbers of lines alone."""
    text = _text_of(outline, position)
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    first = next((at for at, line in enumerate(lines) if line), len(lines))
    while lines and not lines[-1]:
        lines.pop()
    lines = lines[first:]
    if not lines or (len(lines) > 1 and _ONLY_NUMBERS.fullmatch(text) and _is_in_table(outline, position)):
        return None
    return CodeBlock("\n".join(lines), _language_of(outline, position))


def _text_of(outline: Outline, position: int) -> str:
    """Return the text with line breaks, without the numbers of lines."""
    pieces = [outline.texts[position] or ""]
    begun: list[int] = []
    at, end = position + 1, outline.ends[position]
    while at < end or begun:
        if begun and outline.ends[begun[-1]] <= at:
            pieces.append(outline.tails[begun.pop()] or "")
            continue
        tag = outline.tags[at]
        if tag == "br":
            pieces.append("\n")
        if _is_line_number(outline, at):
            pieces.append(outline.tails[at] or "")
            at = outline.ends[at]
            continue
        pieces.append(outline.texts[at] or "")
        begun.append(at)
        at += 1
    return "".join(pieces)


def _is_line_number(outline: Outline, position: int) -> bool:
    if not _LINE_NUMBERS.search(outline.attributes[position].get("class", "")):
        return False
    return all(not text.strip() or _ONLY_NUMBERS.fullmatch(text) for text in outline.texts_in(position))


def _is_in_table(outline: Outline, position: int) -> bool:
    return any(outline.tags[around] == "td" for around in outline.around(position))


def _language_of(outline: Outline, position: int) -> str:
    inside = range(position, min(position + 2, outline.ends[position]))
    around = list(outline.around(position))[1:_AROUND]
    for at in (*inside, *around):
        attributes = outline.attributes[at]
        for name in ("data-lang", "data-language"):
            if _NAME.fullmatch(attributes.get(name, "")):
                return _named(attributes[name])
        if match := _LANGUAGE.search(attributes.get("class", "")):
            return _named(match["name"])
    return ""


def _named(name: str) -> str:
    name = name.lower()
    return "" if name in _NONE else name
