"""Labelled pages, read in place, and their extraction."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

from scrapy_ext.server.extraction.auto import extract


def wcxb_labels(folder: Path) -> dict[str, Any]:
    """Return the labels of the pages of every type, by name."""
    return dict(json.loads(gzip.decompress((folder / "labels.json.gz").read_bytes())))


def page(folder: Path, name: str) -> str:
    return gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace")


def timed(kind: str, html: str, url: str) -> tuple[dict[str, Any], float]:
    start = time.process_time()
    item = extract(kind, html, url)
    return item, time.process_time() - start


def trafilatura_text(html: str, *, precise: bool) -> str | None:
    from trafilatura import extract as trafilatura_extract

    return trafilatura_extract(html, favor_precision=precise, include_comments=False)


def resiliparse_text(html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False))


def type_of(label: dict[str, Any]) -> str:
    kind = label["page_type"]
    return str(kind["primary"] if isinstance(kind, dict) else kind)
