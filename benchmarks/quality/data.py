"""Labelled pages, read in place, and their extraction."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

from scrapy_ext.server.extraction.auto import extract, extract_more


def wcxb_labels(folder: Path) -> dict[str, Any]:
    """Return the labels of the pages of every type, by name."""
    return dict(json.loads(gzip.decompress((folder / "labels.json.gz").read_bytes())))


def page(folder: Path, name: str) -> str:
    return page_of(folder / "html" / f"{name}.html.gz")


def page_of(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode("utf-8", "replace")


def timed(kind: str, html: str, url: str) -> tuple[dict[str, Any], float]:
    start = time.process_time()
    item = extract(kind, html, url)
    return item, time.process_time() - start


def timed_markdown(html: str, url: str) -> tuple[str, float]:
    start = time.process_time()
    found = extract_more(None, html, url, markdown={}).markdown or ""
    return found, time.process_time() - start


def text_of_markdown(markdown: str) -> tuple[str, list[str]]:
    """Return the text of Markdown without its signs and addresses, and the kinds of its blocks."""
    from markdown_it import MarkdownIt

    pieces, blocks = [], []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        if token.type.endswith("_open") or token.type in ("fence", "html_block"):
            blocks.append(token.type.removesuffix("_open"))
        pieces.append("\n" if token.children is not None else token.content)
        for child in token.children or ():
            if child.type.endswith("link_open") or child.type in ("image", "html_inline"):
                blocks.append(child.type.removesuffix("_open"))
            is_text = child.type in ("text", "text_special", "code_inline", "html_inline")
            pieces.append(child.content if is_text else "\n" if child.type.endswith("break") else "")
    return "".join(pieces), blocks


def trafilatura_markdown(html: str, url: str) -> str:
    from trafilatura import extract as trafilatura_extract

    found = trafilatura_extract(
        html, url=url, output_format="markdown", include_links=True, include_formatting=True, include_comments=False
    )
    return found or ""


def trafilatura_text(html: str, *, precise: bool) -> str | None:
    from trafilatura import extract as trafilatura_extract

    return trafilatura_extract(html, favor_precision=precise, include_comments=False)


def resiliparse_text(html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False))


def type_of(label: dict[str, Any]) -> str:
    kind = label["page_type"]
    return str(kind["primary"] if isinstance(kind, dict) else kind)
