"""``pdf``: the text of PDFs that the browser prints of pages, against the text that the rules find in the HTML.

Each article is printed three times: its own text in one column; in two justified columns of small print, with the
title, date, address and page number that a browser prints on each page; and the whole page as a browser prints it, of
which the main text is a part, so that only recall is counted.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from html import escape
from pathlib import Path
from typing import Any

from data import page, timed
from scores import mean, median_ms, shingle_scores, text_scores, word_f1

from scrapy_ext.server.computing.processes import clean_environment
from scrapy_ext.server.extraction.auto import extract_from_pdf
from scrapy_ext.server.extraction.auto.pdf.reading import read
from scrapy_ext.server.extraction.browser import find_browser

_PLAIN = "body { font: 12pt serif; line-height: 1.4 }"
_COLUMNS = """body { font: 9pt serif } main { column-count: 2; text-align: justify; hyphens: auto }
p { margin: 0; text-indent: 1em }"""
_MEDIA = re.compile(r"<(?:img|iframe|video|audio|embed|source)\b[^>]*>", re.IGNORECASE)
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND")
#: With their scripts, some pages would never be finished.
_NO_SCRIPT = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""

#: For a page. Those that take longer are never finished.
_SECONDS = 120


def measure_pdf(folder: Path, labels: dict[str, Any]) -> dict[str, Any]:
    texts: dict[str, list[tuple[str | None, str | None]]] = {"one_column": [], "two_columns": []}
    paragraphs: dict[str, list[float]] = {name: [] for name in texts}
    recalls, times, unprinted, pages = [], [], list[str](), 0
    headlines: dict[str, list[float]] = {"printed": [], "whole_page": []}
    with tempfile.TemporaryDirectory() as made:
        printer = Printer(Path(made))
        for name, label in sorted(labels.items()):
            html = page(folder, name)
            item, _ = timed("article", html, label["url"])
            body, headline = item.get("articleBody"), item.get("headline")
            if not body or not headline:
                continue
            true = f"{headline}\n\n{body}"
            for style, css, furniture in (("one_column", _PLAIN, False), ("two_columns", _COLUMNS, True)):
                pdf = printer.print(_document(item, css), furniture=furniture)
                found, spent = _timed(pdf, label["url"])
                times.append(spent / len(read(pdf).pages))
                texts[style].append((found.get("itemMain"), true))
                paragraphs[style].append(paragraph_f1(found.get("itemMain") or "", true))
                headlines["printed"].append(found.get("headline") == headline)
            pages += 1
            try:
                printed = printer.print(_NO_SCRIPT + html, furniture=True)
            except subprocess.TimeoutExpired:
                # A few pages are never laid out without their scripts and files.
                unprinted.append(name)
                continue
            whole, _ = _timed(printed, label["url"])
            headlines["whole_page"].append(whole.get("headline") == headline)
            recalls.append(shingle_scores(whole.get("itemMain"), body)[1])
    return {
        "kind": "pdf",
        "articles": pages,
        **{
            style: text_scores(pairs)
            | {"word_f1": mean([word_f1(*pair) for pair in pairs]), "paragraph_f1": mean(paragraphs[style])}
            for style, pairs in texts.items()
        },
        "headline": {name: mean(same) for name, same in headlines.items()},
        "whole_page_recall": mean(recalls),
        "whole_pages_not_printed": unprinted,
        "ms_a_page": median_ms(times),
    }


def _document(item: dict[str, Any], css: str) -> str:
    language, headline = escape(item.get("inLanguage") or "en"), escape(item["headline"])
    body = _MEDIA.sub("", item.get("articleBodyHtml") or "")
    return (
        f'<html lang="{language}"><head><meta charset="utf-8"><title>Printed</title><style>{css}</style></head>'
        f"<body><h1>{headline}</h1><main>{body}</main></body></html>"
    )


def paragraph_f1(found: str, true: str) -> float:
    """Return the F1 of whole paragraphs, whose white space does not count."""
    sets = [{" ".join(part.split()) for part in re.split(r"\n+", text) if part.strip()} for text in (found, true)]
    both = len(sets[0] & sets[1])
    return 2 * both / (len(sets[0]) + len(sets[1])) if any(sets) else 1.0


def _timed(pdf: bytes, url: str) -> tuple[dict[str, Any], float]:
    start = time.process_time()
    item = extract_from_pdf("pageContent", pdf, url).item
    return item, time.process_time() - start


class Printer:
    """The browser as a printer of PDFs. It reaches no site."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._browser = find_browser(None, os.environ, Path("/nowhere"))

    def print(self, html: str, *, furniture: bool) -> bytes:
        """Return a page as PDF. ``furniture``: with the title, date, address and number that browsers print."""
        source, target = self._folder / "page.html", self._folder / "page.pdf"
        source.write_text(html, "utf-8")
        command = [str(self._browser), *_OPTIONS, f"--user-data-dir={self._folder}/profile", f"--print-to-pdf={target}"]
        command += [] if furniture else ["--no-pdf-header-footer"]
        printing = subprocess.Popen(
            [*command, source.as_uri()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_environment(os.environ),
            start_new_session=True,
        )
        try:
            if printing.wait(_SECONDS):
                raise RuntimeError(f"the browser ended with {printing.returncode}")
        except subprocess.TimeoutExpired:
            # With its renderers, which outlive it.
            os.killpg(printing.pid, signal.SIGKILL)
            printing.wait()
            raise
        return target.read_bytes()
