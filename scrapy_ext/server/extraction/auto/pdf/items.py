"""Items of a PDF: an article, or the content of a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from itertools import takewhile
from typing import Any, Final

from scrapy_ext.server.extraction.auto.items import Article, DetailsMetadata, PageContent
from scrapy_ext.server.extraction.auto.page import now
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.pdf import information
from scrapy_ext.server.extraction.auto.pdf.document import PdfDocument, UnreadablePdfError, usual_size
from scrapy_ext.server.extraction.auto.pdf.paragraphs import SAME_SIZE, Paragraph, paragraphs_of, text_of
from scrapy_ext.server.extraction.auto.pdf.running_lines import without_running_lines

#: Letters of a heading are larger than those of most of the text by this factor.
LARGE: Final = 1.15
#: Paragraphs at the begin of a document among which its heading is.
SEARCHED: Final = 30
#: The same where the title of the file says which one it is: pages that are printed begin with their menus.
SEARCHED_BY_TITLE: Final = 200
MAX_HEADLINE_LENGTH: Final = 300
#: Length of a text, in characters, from which it is certainly the content of a document, and that of an article.
ENOUGH: Final = 250
SHORT: Final = 400

#: The source of each field: an entry of the information of the file, or its text.
_SOURCES: Final = {
    "itemMain": "main text",
    "articleBody": "main text",
    "articleBodyHtml": "main text",
    "datePublished": "pdf CreationDate",
    "datePublishedRaw": "pdf CreationDate",
    "dateModified": "pdf ModDate",
    "dateModifiedRaw": "pdf ModDate",
    "authors": "pdf Author",
    "description": "pdf Subject",
    "inLanguage": "pdf Lang",
}


class PdfText:
    """The text of a document; raises :class:`UnreadablePdfError` for one without any."""

    def __init__(self, document: PdfDocument) -> None:
        self.document = document
        self.paragraphs = paragraphs_of(without_running_lines(document.pages))
        if not self.paragraphs:
            raise UnreadablePdfError(
                "has no text: its pages may be images, of a scanner for example, and text in images is not read (OCR)"
            )

    @cached_property
    def title(self) -> str | None:
        """The title that the document states, else its heading."""
        return information.title_of(self.document) or self.headline

    @cached_property
    def headline(self) -> str | None:
        """The heading of the text, else the title that the document states."""
        heading = self.titles
        return " ".join(part.text for part in heading) or information.title_of(self.document)

    @cached_property
    def body(self) -> list[Paragraph]:
        """The paragraphs without the heading, and without what is before it."""
        if not self.titles:
            return self.paragraphs
        at = self.paragraphs.index(self.titles[0])
        return self.paragraphs[:at] + self.paragraphs[at + len(self.titles) :]

    @cached_property
    def content(self) -> str:
        return text_of(self.paragraphs)

    @property
    def html(self) -> str:
        """The document as a page, for what is searched in pages."""
        language = escape(self.language or "")
        return (
            f'<html lang="{language}"><head><title>{escape(self.title or "")}</title></head>'
            f"<body>{html_of(self.paragraphs)}</body></html>"
        )

    def sources_of(self, item: dict[str, Any]) -> dict[str, str]:
        """Return the source of each field of the item that the document has."""
        stated = information.title_of(self.document)
        titles = {name: "pdf Title" if item.get(name) == stated else "heading" for name in ("headline", "title")}
        return {field: source for field, source in (_SOURCES | titles).items() if field in item}

    @property
    def language(self) -> str | None:
        return information.language_of(self.document)

    @cached_property
    def titles(self) -> list[Paragraph]:
        """The paragraph that the stated title repeats, else those with the largest letters at the begin."""
        return self._titled or self._largest

    @property
    def _titled(self) -> list[Paragraph]:
        title = letters_of(information.title_of(self.document) or "")
        same = [
            each
            for each in self.paragraphs[:SEARCHED_BY_TITLE]
            if len(each.text) <= MAX_HEADLINE_LENGTH
            and (letters := letters_of(each.text)) in title
            and 2 * len(letters) > len(title)
        ]
        return [max(same, key=lambda each: (each.size, len(each.text)))] if same else []

    @property
    def _largest(self) -> list[Paragraph]:
        begin = [each for each in self.paragraphs[:SEARCHED] if each.page == self.paragraphs[0].page]
        usual = usual_size((each.size, len(each.text)) for each in self.paragraphs)
        large = [each for each in begin if each.size >= LARGE * usual and letters_of(each.text)]
        if not large:
            return []
        largest = max(large, key=lambda each: each.size)
        # A heading may have several lines.
        lines = list(takewhile(lambda each: each.size * SAME_SIZE >= largest.size, begin[begin.index(largest) :]))
        return lines if sum(len(each.text) + 1 for each in lines) <= MAX_HEADLINE_LENGTH else []


def page_content(url: str, text: PdfText) -> PageContent:
    content = text.content
    sure = round(min(1.0, 0.1 + 0.9 * len(content) / ENOUGH), 2)
    return PageContent(
        url=url,
        headline=text.headline,
        title=text.title,
        itemMain=content,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=sure),
    )


def article(url: str, text: PdfText) -> Article:
    document = text.document
    published, modified = information.published_on(document), information.modified_on(document)
    body = text_of(text.body)
    return Article(
        url=url,
        headline=text.headline,
        datePublished=published.iso if published else None,
        datePublishedRaw=published.raw if published else None,
        dateModified=modified.iso if modified else None,
        dateModifiedRaw=modified.raw if modified else None,
        authors=information.authors_of(document) or None,
        inLanguage=text.language,
        description=information.description_of(document),
        articleBody=body or None,
        articleBodyHtml=html_of(text.body) if body else None,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=0.6 if len(body) >= SHORT else 0.1),
    )


def html_of(paragraphs: Sequence[Paragraph]) -> str:
    """Return paragraphs as HTML."""
    lines = "\n\n".join(f"<p>{escape(paragraph.text)}</p>" for paragraph in paragraphs)
    return f"<article>\n\n{lines}\n\n</article>"
