"""Next pages, compared with ``rel=next``, which is removed before."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from data import page, type_of
from scores import count, scored

from scrapy_ext.server.extraction.auto import extract

#: Tags with ``rel=next``.
NEXT = re.compile(r"""<(?:link|a)\b[^<>]*\brel\s*=\s*["']?[\w ]*\bnext\b[^<>]*>""", re.IGNORECASE)
REL = re.compile(r"""\brel\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)


def measure_next_page(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for name, label in sorted(labels.items()):
        source = page(folder, name)
        html = NEXT.sub(lambda tag: REL.sub("", tag.group()), source)
        listed = type_of(label) not in {"article", "documentation", "product"}
        stated = (extract("productNavigation", source, label["url"]).get("nextPage") or {}).get("url")
        true = {stated} if listed and source != html and stated else set()
        item = extract("productNavigation", html, label["url"])
        blind = (item.get("nextPage") or {}).get("url")
        if not listed or true:
            count(counts, true, blind)
        counts["without"] += not listed and blind is None
    return {"kind": "nextPage", "pages": len(labels), **scored(counts), **counts}
