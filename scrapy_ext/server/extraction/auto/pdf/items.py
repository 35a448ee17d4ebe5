"""Items of a PDF, an article or the content of a page, made of its text and its information: title, authors, dates.

The information counts where it is plausible. Programs fill it in by themselves: with the name of the file as the title,
of the account as the author, and with the moment in which the file was made for this download as the date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cached_property
from html import escape
from itertools import takewhile
from typing import Any, Final

from scrapy_ext.api.extraction.records import FieldSource
from scrapy_ext.server.extraction.auto.fields.authors import MAX_AUTHORS
from scrapy_ext.server.extraction.auto.fields.bylines import names_in
from scrapy_ext.server.extraction.auto.fields.dates import Date, machine_date
from scrapy_ext.server.extraction.auto.items import Article, Author, DetailsMetadata, PageContent
from scrapy_ext.server.extraction.auto.page import now
from scrapy_ext.server.extraction.auto.page.text import letters_of, one_line
from scrapy_ext.server.extraction.auto.pdf.paragraphs import (
    SAME_SIZE,
    Paragraph,
    paragraphs_of,
    text_of,
    usual_size,
    without_running_lines,
)
from scrapy_ext.server.extraction.auto.pdf.reading import PdfDocument, UnreadablePdfError
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_TITLE_LENGTH: Final = 300
#: A younger file was made for its download.
JUST_MADE: Final = timedelta(minutes=10)
#: A later change of the file is one of the document.
CHANGED: Final = timedelta(hours=1)
#: The year of the first PDFs.
EARLIEST_YEAR: Final = 1993
#: A description has at least so many words; fewer are a subject.
MIN_WORDS: Final = 4

_VOCABULARY: Final = load_vocabulary("documents")
_PROGRAM_TITLE = _VOCABULARY.pattern("program_title")
_NO_TITLE, _FILE_NAME, _URL, _NO_AUTHOR = _VOCABULARY.patterns(
    "no_title", "file_name", "url", "no_author", flags=re.IGNORECASE
)
_LETTER = re.compile(r"[^\W\d_]")
_DATE = re.compile(
    r"(?:D:)?(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?\s*(?:(Z).{0,6}|([+-])(\d\d)'?(\d\d)?'?)?", re.IGNORECASE
)
_LANGUAGE = re.compile(r"([a-z]{2})(?=$|[-_])")
_LISTED = re.compile(r"\s*[;\n]\s*")


def title_of(document: PdfDocument) -> str | None:
    """Return the title that the document states, without what programs write for one."""
    title = one_line(_PROGRAM_TITLE.sub("", _stated(document, "Title")))
    is_title = _LETTER.search(title) and len(title) <= MAX_TITLE_LENGTH
    return title if is_title and not any(each.search(title) for each in (_NO_TITLE, _FILE_NAME, _URL)) else None


def authors_of(document: PdfDocument) -> list[Author]:
    raw = _stated(document, "Author")
    programs = {letters_of(_stated(document, name)) for name in ("Creator", "Producer", "Title")}
    names = [name for part in _LISTED.split(raw) for name in names_in(part)]
    return [
        Author(name=name, nameRaw=raw)
        for name in dict.fromkeys(names)
        # A single word in lower case is the name of an account.
        if not _NO_AUTHOR.search(name) and not name.islower() and letters_of(name) not in programs
    ][:MAX_AUTHORS]


def published_on(document: PdfDocument) -> Date | None:
    """Return when the document was made, if not just now."""
    return _date(_stated(document, "CreationDate"))


def modified_on(document: PdfDocument) -> Date | None:
    """Return when the document was changed after it had been made."""
    created, modified = published_on(document), _date(_stated(document, "ModDate"))
    if created is None or modified is None:
        return None
    return modified if _moment(modified) - _moment(created) >= CHANGED else None


def description_of(document: PdfDocument) -> str | None:
    text = one_line(_stated(document, "Subject"))
    return text if len(text.split()) >= MIN_WORDS else None


def language_of(document: PdfDocument) -> str | None:
    """Return the ISO 639-1 code of the language that the document states."""
    match = _LANGUAGE.match((document.language or "").strip().lower())
    return match[1] if match else None


def _stated(document: PdfDocument, name: str) -> str:
    return document.information.get(name, "").strip()


def _date(raw: str) -> Date | None:
    match = _DATE.fullmatch(raw)
    if match is None:
        return None
    year, month, day, hour, minute, second, utc, sign, hours, minutes = match.groups()
    zone = "Z" if utc else f"{sign}{hours}:{minutes or '00'}" if sign else ""
    clock = f"T{hour}:{minute}:{second or '00'}{zone}" if hour else ""
    date = machine_date(f"{year}-{month}-{day}{clock}")
    if date is None or int(year) < EARLIEST_YEAR:
        return None
    return Date(date.iso, raw) if _moment(date) <= datetime.now(timezone.utc) - JUST_MADE else None


def _moment(date: Date) -> datetime:
    moment = datetime.fromisoformat(date.iso.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


# ── items of a PDF: an article, or the content of a page ──


#: Letters of a heading are larger than those of most of the text by this factor.
LARGE: Final = 1.15
#: Paragraphs at the begin of a document among which its heading is.
SEARCHED: Final = 30
#: The same where the title of the file says which one it is: pages that are printed begin with their menus.
SEARCHED_BY_TITLE: Final = 200
MAX_HEADLINE_LENGTH: Final = 300
#: A text of so many characters is certainly the content of a document, and that of an article.
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
        return title_of(self.document) or self.headline

    @cached_property
    def headline(self) -> str | None:
        """The heading of the text, else the title that the document states."""
        heading = self.titles
        return " ".join(part.text for part in heading) or title_of(self.document)

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

    def sources_of(self, item: dict[str, Any]) -> dict[str, FieldSource]:
        """Return the source of each field of the item that the document has."""
        stated = title_of(self.document)
        titles = {name: "pdf Title" if item.get(name) == stated else "heading" for name in ("headline", "title")}
        return {field: FieldSource(rule) for field, rule in (_SOURCES | titles).items() if field in item}

    @property
    def language(self) -> str | None:
        return language_of(self.document)

    @cached_property
    def titles(self) -> list[Paragraph]:
        """The paragraph that the stated title repeats, else those with the largest letters at the begin."""
        return self._titled or self._largest

    @property
    def _titled(self) -> list[Paragraph]:
        title = letters_of(title_of(self.document) or "")
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
    published, modified = published_on(document), modified_on(document)
    body = text_of(text.body)
    return Article(
        url=url,
        headline=text.headline,
        datePublished=published.iso if published else None,
        datePublishedRaw=published.raw if published else None,
        dateModified=modified.iso if modified else None,
        dateModifiedRaw=modified.raw if modified else None,
        authors=authors_of(document) or None,
        inLanguage=text.language,
        description=description_of(document),
        articleBody=body or None,
        articleBodyHtml=html_of(text.body) if body else None,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=0.6 if len(body) >= SHORT else 0.1),
    )


def html_of(paragraphs: Sequence[Paragraph]) -> str:
    """Return paragraphs as HTML."""
    lines = "\n\n".join(f"<p>{escape(paragraph.text)}</p>" for paragraph in paragraphs)
    return f"<article>\n\n{lines}\n\n</article>"
