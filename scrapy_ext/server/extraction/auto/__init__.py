"""Automatic extraction: from the HTML of a page to an item of a kind, in the schema of zyte-common-items.

Pure and synchronous: no network, no files, and bounds on all that it reads, so that no page, however broken or
hostile, makes it fail or run without end. It takes processor time, up to some hundred milliseconds for a large
page: an event loop calls it in a thread or another process.

Importing this package is cheap. The libraries that extraction uses take about two seconds to import, which happens
when a kind is first extracted, or in :func:`preload`.

Numbers in these modules are of two sorts. Bounds (``MAX_…``) keep the time for any page in proportion to its size, and
are well above what ordinary pages have, so that their exact value decides nothing. Shares and scores decide: they were
set on labelled pages, and tried on others (docs/architecture/extraction-quality.rst).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from scrapy_ext.api.extraction.records import FieldSource
    from scrapy_ext.server.extraction.auto.items import Item
    from scrapy_ext.server.extraction.auto.page.page import Page

#: Kinds of items, with the module and its function that takes a page model and returns the item.
_EXTRACTORS: Final = {
    "product": ("products.product", "extract"),
    "productList": ("lists.list_pages", "product_list"),
    "productNavigation": ("lists.list_pages", "product_navigation"),
    "article": ("articles.article", "extract"),
    "articleList": ("lists.list_pages", "article_list"),
    "articleNavigation": ("lists.list_pages", "article_navigation"),
    "forumThread": ("forum.forum_thread", "extract"),
    "jobPosting": ("jobs.job_posting", "extract"),
    "jobPostingNavigation": ("lists.list_pages", "job_posting_navigation"),
    "pageContent": ("content.page_content", "extract"),
    "serp": ("serp", "extract"),
}

#: The functions of ``pdf.items`` for the kinds that a PDF has.
_OF_PDF: Final = {"article": "article", "pageContent": "page_content"}

#: The kinds that can be extracted, as requests name them.
KINDS: Final = tuple(_EXTRACTORS)

#: Kinds that use computed styles, where the page was loaded in a browser.
KINDS_BY_STYLES: Final = frozenset({"product"})


class UnsupportedKindError(ValueError):
    """A kind of automatic extraction that does not exist (yet)."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"Automatic extraction of {kind!r} is not supported; use one of: {', '.join(KINDS)}.")
        self.kind = kind


class Extracted(NamedTuple):
    """An item, and what was requested beside it."""

    #: Empty where no kind was requested.
    item: dict[str, Any]
    #: The source of each field.
    sources: dict[str, FieldSource] | None = None
    #: The answers for ``customAttributes``.
    attributes: dict[str, Any] | None = None
    #: The text of the page, for a language model that answers them.
    text: str | None = None
    #: The page as Markdown.
    markdown: str | None = None
    #: What the rule of each field did.
    rules: dict[str, dict[str, Any]] | None = None


def extract(kind: str, html: str, url: str, *, styles: bool = False) -> dict[str, Any]:
    """Return the item of a kind that a page holds, as plain data; fields without a value are left out.

    ``html`` is the page as text, in full or cut off, sound or not; ``url`` is its final address.
    ``styles`` says that the browser wrote the computed styles of its elements into it (``auto/page/styles.py``).
    Raises :class:`UnsupportedKindError` for a kind that is not in :data:`KINDS`, and nothing else.
    """
    return extract_more(kind, html, url, styles=styles).item


def extract_more(
    kind: str | None,
    html: str,
    url: str,
    *,
    styles: bool = False,
    sources: bool = False,
    boxes: bool = False,
    attributes: dict[str, Any] | None = None,
    text: bool = False,
    markdown: dict[str, Any] | None = None,
    rules: dict[str, dict[str, Any]] | None = None,
) -> Extracted:
    """Return what :func:`extract` does, with the sources of the fields, answers for ``attributes``, the text of the
    page, or its Markdown with the options ``markdown``; without a ``kind`` only that.

    ``boxes`` says that the browser wrote the rectangles of elements into the page, which the sources then have.
    ``rules`` correct the item.
    """
    if kind is not None and kind not in _EXTRACTORS:
        raise UnsupportedKindError(kind)
    # Imported here: see the head of this module.
    from scrapy_ext.server.extraction.auto.items import as_dict
    from scrapy_ext.server.extraction.auto.page.page import Page

    page = Page(html, url, styles=styles, sources=sources, boxes=boxes)
    item = as_dict(_extractor(kind)(page)) if kind is not None else {}
    field_sources = answers = words = written = report = None
    if sources:
        field_sources = page.sources.of_item(page, item)
    if rules and kind is not None:
        item, report = _corrected(page, kind, item, rules, field_sources)
    if attributes:
        answers = _answers(page, item, attributes)
    if text:
        words = f"{page.title or ''}\n\n{page.visible_text}".strip()
    if markdown is not None:
        from scrapy_ext.server.extraction.auto.markdown import MarkdownOptions, markdown_of

        written = markdown_of(page, MarkdownOptions(**markdown))
    return Extracted(item, field_sources, answers, words, written, report)


def extract_from_pdf(
    kind: str | None,
    pdf: bytes,
    url: str,
    *,
    sources: bool = False,
    attributes: dict[str, Any] | None = None,
    text: bool = False,
    markdown: dict[str, Any] | None = None,
    rules: dict[str, dict[str, Any]] | None = None,
) -> Extracted:
    """Return what :func:`extract_more` does, from a PDF: ``article``, ``pageContent``, or its Markdown.

    Raises :class:`UnsupportedKindError` for another kind, and ``UnreadablePdfError`` for a file without a text.
    """
    if kind is not None and kind not in _OF_PDF:
        raise UnsupportedKindError(kind)
    from scrapy_ext.server.extraction.auto.items import as_dict
    from scrapy_ext.server.extraction.auto.pdf import items, reading

    document = items.PdfText(reading.read(pdf))
    item = as_dict(getattr(items, _OF_PDF[kind])(url, document)) if kind is not None else {}
    answers = written = report = None
    if rules and kind is not None:
        item, report = _corrected(None, kind, item, rules, None)
    if attributes:
        from scrapy_ext.server.extraction.auto.page.page import Page

        answers = _answers(Page(document.html, url), item, attributes)
    if markdown is not None:
        from scrapy_ext.server.extraction.auto.markdown.pdf import markdown_of_pdf

        written = markdown_of_pdf(document)
    return Extracted(
        item,
        document.sources_of(item) if sources else None,
        answers,
        f"{document.title or ''}\n\n{document.content}".strip() if text else None,
        written,
        report,
    )


def _corrected(
    page: Page | None,
    kind: str,
    item: dict[str, Any],
    rules: dict[str, dict[str, Any]],
    sources: dict[str, FieldSource] | None,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return an item after rules, and what each did; ``sources`` then has the rules as sources."""
    from scrapy_ext.server.extraction.auto.extract_rules import apply_rules, as_sources

    applied = apply_rules(page, kind, item, rules)
    if sources is not None:
        as_sources(sources, item, applied)
    return applied


def _answers(page: Page, item: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    from scrapy_ext.api.extraction.attributes import read_attributes
    from scrapy_ext.server.extraction.auto.attributes import Attributes

    return Attributes(page, item).values(read_attributes(attributes))


def load(kind: str | None, *, pdf: bool = False, markdown: bool = False) -> None:
    """Import what the extraction of a kind, or that of PDFs, always needs, and the conversion to Markdown."""
    if kind is not None and kind not in KINDS:
        raise UnsupportedKindError(kind)
    if kind is not None and not pdf:
        _extractor(kind)
    modules = [f"pdf.{name}" for name in ("items", "reading") if pdf]
    if markdown:
        modules += ["markdown.pdf"] if pdf else ["markdown", "content.page_content"]
    for module in modules:
        import_module(f"{__name__}.{module}")


def preload() -> None:
    """Import all that extraction needs, so that the first page does not wait for the imports."""
    for kind in KINDS:
        load(kind)
    for pdf in (False, True):
        load("pageContent", pdf=pdf, markdown=True)


def _extractor(kind: str) -> Callable[[Page], Item]:
    module, function = _EXTRACTORS[kind]
    extractor: Callable[[Page], Item] = getattr(import_module(f"{__name__}.{module}"), function)
    return extractor


__all__ = [
    "KINDS",
    "KINDS_BY_STYLES",
    "Extracted",
    "UnsupportedKindError",
    "extract",
    "extract_from_pdf",
    "extract_more",
    "load",
    "preload",
]
