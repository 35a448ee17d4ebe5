"""Pages and PDFs as Markdown: CommonMark with the tables and struck text of GFM.

The converter is of this package, as the libraries were not made for hostile pages: markdownify and html-to-markdown let
text such as ``<script>`` and ``[a](b)`` become HTML and links, keep links to scripts, and make one list of two;
trafilatura escapes nothing (docs/architecture/decisions.rst has more). Here text stays text, no HTML is written, and
time, size and nesting have bounds. And the text is that of ``pageContent``, block by block.
"""

from __future__ import annotations

from scrapy_ext.server.extraction.auto.markdown.document import Block
from scrapy_ext.server.extraction.auto.markdown.parts import Selection, Shown, WholePage
from scrapy_ext.server.extraction.auto.markdown.reading import MAX_LENGTH, MarkdownOptions, Reader
from scrapy_ext.server.extraction.auto.markdown.writing import written
from scrapy_ext.server.extraction.auto.page import Page

__all__ = ["MAX_LENGTH", "MarkdownOptions", "document_of", "markdown_of"]


def markdown_of(page: Page, options: MarkdownOptions) -> str:
    """Return a page as Markdown; empty for a page without content."""
    return written(document_of(page, options))


def document_of(page: Page, options: MarkdownOptions) -> list[Block]:
    """Return a page as the document that becomes its Markdown."""
    return Reader(page, _selection(page, options), options).blocks()


def _selection(page: Page, options: MarkdownOptions) -> Selection:
    chosen = _chosen(page, options)
    return chosen if options.hidden else Shown(page, chosen)


def _chosen(page: Page, options: MarkdownOptions) -> Selection:
    if options.content == "all":
        return WholePage(page)
    # Imported here: the content of a whole page needs no more than its tree.
    from scrapy_ext.server.extraction.auto.content.page_content import chosen_blocks
    from scrapy_ext.server.extraction.auto.markdown.parts import MainContent

    return MainContent(page, *chosen_blocks(page))
