"""Answers that are files instead of pages: PDFs and what can be had of them, and the viewers of the browser.

* ``pageContent``, ``article`` and ``markdown`` are made of the text of a PDF. Other kinds need a page.
* A PDF is known by its signature within the first :data:`SEARCHED` bytes, where the site does not declare it to be
  something that a browser shows, and by its declared type alone, unless it begins as HTML.
* The browser does not show PDFs but downloads them. A request that leaves the choice to the service is then sent once
  more, by HTTP: :func:`plan_by_http`.

* An image, a video, a sound, an archive and other binary data has no text, by HTTP as in the browser: 521. It is known
  by bytes that no text has, at its begin; one that is declared as text, by its signature as well.

Files of text, which Chromium shows in a viewer of its own: what it shows is no page of the site.

* An image, a video or a sound is refused, except for a screenshot: its HTML is empty, or has the player alone.
* Of JSON, XML and plain text, ``browserHtml`` is the text of the file, as it is by HTTP. Items and Markdown are not
  made of JSON and XML, and of plain text with its lines. By HTTP, the declared type says what a file is, unless it
  begins as a page; a feed or a sitemap is known by its first element as well.
* XML with a style sheet that applies, XHTML and SVG are pages. XHTML that is not well-formed is the text of the file:
  Chromium shows the error and the part before it.
"""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.extraction.problems import ExtractionError, permanent
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan, RequestPlan

_MEDIA: Final = {"image": "an image", "video": "a video", "audio": "a sound"}
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml", "multipart/x-mixed-replace"})
_JSON: Final = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json(?:\d*)$")
_XML: Final = re.compile(r"[\w.-]+/(?:[\w.+-]+\+)?xml$")
#: Begins of images, archives, sounds and compressed files.
_SIGNATURES: Final = (
    b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"PK\x03\x04", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"BZh9", b"OggS", b"ID3", b"\x00\x00\x01\x00", b"wOFF", b"wOF2",
)  # fmt: skip
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
#: The begin of markup, also in UTF-16, which browsers take for a page before they look for binary data.
_MARKUP: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\0?<\0?[!?A-Za-z]")
#: Bytes that browsers take for a sign of binary data where no type is declared.
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
#: Beginnings of the viewers of XML and text, and the report of a fault in XML.
_XML_VIEWER: Final = '<style id="xml-viewer-style">'
_TEXT_VIEWER: Final = re.compile(r'<html><head>(?:<meta [^>]*>)*</head><body><pre(?: style="[^"]*")?>')
_FAULT: Final = "<parsererror"
_SEARCHED_OF_VIEWER: Final = 2000

#: The first element of XML, behind its declaration and comments.
_ROOT: Final = re.compile(
    r"[\s\ufeff]*(?:(?:<\?xml[^>]{0,500}>|<!--(?:(?!-->).){0,20000}-->"
    r"|<!DOCTYPE[^>\[]{0,500}(?:\[[^\]]{0,5000}\]\s*)?>)\s*){0,20}"
    r"<([a-z][\w:.-]{0,60})",
    re.DOTALL | re.IGNORECASE,
)
#: Those of feeds and sitemaps, which are often declared as HTML.
_FEEDS: Final = frozenset({"rss", "feed", "rdf:rdf", "urlset", "sitemapindex", "opml"})
_PAGE_BEGIN: Final = re.compile(r"[\s\ufeff]*<!doctype\s+html\b", re.IGNORECASE)
#: First elements of pages without a type of document. In a plain text another tag or a comment follows them: "<body> is
#: old" is a sentence.
_OF_PAGES: Final = frozenset({"html", "head", "body"})
_TAG_BEHIND: Final = re.compile(r"[^<>]{0,2000}>\s*<[!/a-z]", re.IGNORECASE)

JSON: Final = "JSON"
XML: Final = "XML"
TEXT: Final = "text"


def type_of(content_type: str | None) -> str:
    """Return the media type of a Content-Type header, "" without one."""
    return (content_type or "").partition(";")[0].strip().lower()


def media_problem(url: str, content_type: str | None) -> ExtractionError | None:
    """Return the problem of a file that has no text; None for others."""
    kind = type_of(content_type)
    words = _MEDIA.get(kind.partition("/")[0])
    if words is None or kind in _PAGES:
        return None
    return permanent(
        f"{url} is {words}, which is not a page.", remedy="Use httpResponseBody for the file, or screenshot."
    )


def binary_problem(url: str, content_type: str | None, body: bytes) -> ExtractionError | None:
    """Return the problem of an answer by HTTP that is a file without text; None for others."""
    kind, start = type_of(content_type), body[:SEARCHED]
    is_text = kind in _PAGES or kind.startswith("text/") or _JSON.fullmatch(kind) or _XML.fullmatch(kind)
    is_shown = start.startswith(_UTF_16) or _MARKUP.match(start) or not _NO_TEXT.search(start)
    if is_shown or (is_text and not start.startswith(_SIGNATURES)):
        return None
    words = _MEDIA.get(kind.partition("/")[0], f"a file of type {kind[:80]}" if kind and not is_text else "binary data")
    return permanent(f"{url} is {words}, which is not a page.", remedy="Use httpResponseBody for the file.")


def viewed_kind(content_type: str | None, html: str) -> str:
    """Return :data:`JSON`, :data:`XML` or :data:`TEXT` where the HTML is that of a viewer; "" for a page."""
    kind, start = type_of(content_type), html[:_SEARCHED_OF_VIEWER]
    if _JSON.fullmatch(kind):
        return JSON
    if _XML.fullmatch(kind):
        is_shown = _XML_VIEWER in start or _TEXT_VIEWER.match(start) is not None
        if is_shown and kind not in _PAGES:
            return XML
        if _FAULT in html:
            return TEXT if kind in _PAGES else XML
        return ""
    return TEXT if kind not in _PAGES and _TEXT_VIEWER.match(start) else ""


def kind_of_text(content_type: str | None, text: str) -> str:
    """Return :data:`JSON`, :data:`XML` or :data:`TEXT` for an answer by HTTP that is a file of these; "" for a page."""
    kind = type_of(content_type)
    root = _ROOT.match(text)
    name = root[1].lower() if root else ""
    if name in _FEEDS:
        return XML
    if kind in _PAGES or _PAGE_BEGIN.match(text):
        return ""
    # The elements of XHTML may have a prefix: "h:html".
    is_plain = kind.startswith("text/") and not _XML.fullmatch(kind)
    if root and name.rpartition(":")[2] in _OF_PAGES and (not is_plain or _TAG_BEHIND.match(text, root.end())):
        return ""
    if _JSON.fullmatch(kind):
        return JSON
    if _XML.fullmatch(kind):
        return XML if name else ""
    return TEXT if kind.startswith("text/") else ""


def shown_text(text: str) -> str:
    """Return the page that shows a plain text with its lines, as browsers do."""
    from html import escape  # with the first text: it has a table of all entities

    return f"<html><body><pre>\n{escape(text, quote=False)}</pre></body></html>"


#: Kinds of automatic extraction that a PDF has.
KINDS_OF_PDF: Final = ("article", "pageContent")
_OUTPUTS: Final = f"{', '.join(KINDS_OF_PDF)} or {MARKDOWN}"
SIGNATURE: Final = b"%PDF-"
#: The signature is within so many bytes from the begin of a file: some have a few lines before it.
SEARCHED: Final = 1024
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
#: Types of files of any kind.
_ANY: Final = frozenset({
    "", "application/octet-stream", "binary/octet-stream", "application/download", "application/force-download",
    "application/x-download", "application/unknown",
})  # fmt: skip


def is_pdf(content_type: str | None, body: bytes) -> bool:
    """Return whether an answer is a PDF."""
    kind, start = type_of(content_type), body[:SEARCHED]
    if kind in _PDF:
        return SIGNATURE in start or bool(start.strip() and not start.lstrip().startswith(b"<"))
    return SIGNATURE in start if kind in _ANY else start.startswith(SIGNATURE)


def is_of_pdf(kind: str | None) -> bool:
    """Return whether a PDF has a kind, or its Markdown: None."""
    return kind is None or kind in KINDS_OF_PDF


def not_of_pdf(url: str, kind: str) -> ExtractionError:
    """Return the problem of a request for a kind that PDFs do not have: it needs a page."""
    return permanent(
        f"{url} is a PDF, and {kind} is extracted from HTML only.",
        remedy=f"Request {_OUTPUTS} for its text, or httpResponseBody for the file.",
    )


class UnshownFileError(ExtractionError):
    """The browser was led to a file that it does not show (521). ``content_type``: None if it is not known."""

    def __init__(self, url: str, content_type: str | None = None) -> None:
        kind = type_of(content_type)
        self.is_pdf = kind in _PDF
        self.may_be_pdf = self.is_pdf or kind in _ANY
        detail = f"{url} is not a page but a download, or empty. Use httpResponseBody instead."
        if self.is_pdf:
            detail = (
                f"{url} is a PDF, which the browser does not show. Use httpResponseBody for the file, or "
                f"{_OUTPUTS} with extractFrom httpResponseBody for its text."
            )
        super().__init__("/download/internal-error", detail)


def refuse_viewed(url: str, viewed: str, kind: str) -> None:
    """Raise for JSON or XML where the requested kind needs a page."""
    if viewed not in ("", TEXT):
        raise permanent(
            f"{url} is {viewed}, which is not a page, and {kind} is made of pages only.",
            remedy="Request browserHtml for its text, or httpResponseBody for the file.",
        )


def plan_by_http(request: ExtractRequest, todo: PagePlan) -> HttpPlan | None:
    """Return the plan of the same request by HTTP; None for one that asks for a browser, or for a kind of a page."""
    if not request.makes_something or not is_of_pdf(request.extract_type) or _asks_for_browser(request):
        return None
    return HttpPlan(**{name: getattr(todo, name) for name in RequestPlan.__struct_fields__})


def _asks_for_browser(request: ExtractRequest) -> bool:
    asked = (request.browser_html, request.screenshot, request.actions, request.network_capture)
    return request.source == "browserHtml" or any(asked)
