"""Answers that are documents instead of pages: PDFs, and what can be had of them.

* ``pageContent``, ``article`` and ``markdown`` are made of the text of a PDF. Other kinds need a page.
* A PDF is known by its signature within the first :data:`SEARCHED` bytes, where the site does not declare it to be
  something that a browser shows, and by its declared type alone, unless it begins as HTML.
* The browser does not show PDFs but downloads them. A request that leaves the choice to the service is then sent once
  more, by HTTP: :func:`plan_by_http`.
"""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.extraction.problems import ExtractionError, permanent
from scrapy_ext.server.extraction.plan import HttpPlan, PagePlan

#: Kinds of automatic extraction that a PDF has.
KINDS_OF_PDF: Final = ("article", "pageContent")
_OUTPUTS: Final = f"{', '.join(KINDS_OF_PDF)} or {MARKDOWN}"
SIGNATURE: Final = b"%PDF-"
#: Bytes at the begin of a file in which its signature is: some have a few lines before it.
SEARCHED: Final = 1024
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
#: Types of files of any kind.
_ANY: Final = frozenset({
    "", "application/octet-stream", "binary/octet-stream", "application/download", "application/force-download",
    "application/x-download", "application/unknown",
})  # fmt: skip


def is_pdf(content_type: str | None, body: bytes) -> bool:
    """Return whether an answer is a PDF."""
    kind, start = _type_of(content_type), body[:SEARCHED]
    if kind in _PDF:
        return SIGNATURE in start or bool(start.strip() and not start.lstrip().startswith(b"<"))
    return SIGNATURE in start if kind in _ANY else start.startswith(SIGNATURE)


def _type_of(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def is_of_pdf(kind: str | None) -> bool:
    """Return whether a PDF has a kind, or its Markdown: None."""
    return kind is None or kind in KINDS_OF_PDF


def not_of_pdf(url: str, kind: str) -> ExtractionError:
    """Return the problem of a PDF of which a kind was requested that needs a page."""
    return permanent(
        f"{url} is a PDF, and {kind} is extracted from HTML only. Request {_OUTPUTS} for its text, or "
        "httpResponseBody for the file."
    )


class DownloadError(ExtractionError):
    """The browser was led to a file that it does not show (521). ``content_type``: None if it is not known."""

    def __init__(self, url: str, content_type: str | None = None) -> None:
        kind = _type_of(content_type)
        self.is_pdf = kind in _PDF
        self.may_be_pdf = self.is_pdf or kind in _ANY
        detail = f"{url} is not a page but a download, or empty. Use httpResponseBody instead."
        if self.is_pdf:
            detail = (
                f"{url} is a PDF, which the browser does not show. Use httpResponseBody for the file, or "
                f"{_OUTPUTS} with extractFrom httpResponseBody for its text."
            )
        super().__init__("/download/internal-error", detail)


def plan_by_http(request: ExtractRequest, todo: PagePlan) -> HttpPlan | None:
    """Return the plan of the same request by HTTP; None for one that asks for a browser, or for a kind of a page."""
    if not request.makes_something or not is_of_pdf(request.extract_type) or _asks_for_browser(request):
        return None
    return HttpPlan(
        url=todo.url,
        headers=todo.headers,
        cookies=todo.cookies,
        response_cookies=todo.response_cookies,
        session=todo.session,
        state=todo.state,
        device=todo.device,
        language=todo.language,
        proxies=todo.proxies,
    )


def _asks_for_browser(request: ExtractRequest) -> bool:
    asked = (request.browser_html, request.screenshot, request.actions, request.network_capture)
    return request.source == "browserHtml" or any(asked)
