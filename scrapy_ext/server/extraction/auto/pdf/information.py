"""The information of a document: title, authors and dates, where they are plausible.

Programs fill them in by themselves: with the name of the file as the title, of the account as the author, and with the
moment in which the file was made for this download as the date.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Final

from scrapy_ext.server.extraction.auto.fields.authors import MAX_AUTHORS, names_in
from scrapy_ext.server.extraction.auto.fields.dates import Date, machine_date
from scrapy_ext.server.extraction.auto.items import Author
from scrapy_ext.server.extraction.auto.page.text import letters_of, one_line
from scrapy_ext.server.extraction.auto.pdf.document import PdfDocument
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
