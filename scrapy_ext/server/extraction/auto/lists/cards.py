"""Contents of an entry of a list: name, image, price, date, authors and summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields import images
from scrapy_ext.server.extraction.auto.fields.authors import leads_to_author
from scrapy_ext.server.extraction.auto.fields.bylines import name_before_date, names_in, names_of_line, part_with
from scrapy_ext.server.extraction.auto.fields.dates import WRITTEN, Date, is_mostly_date, read
from scrapy_ext.server.extraction.auto.fields.prices import Money, is_money
from scrapy_ext.server.extraction.auto.items import Author, Image
from scrapy_ext.server.extraction.auto.lists.name_parts import (
    BADGE,
    MAX_NAME_LENGTH,
    SENTENCE,
    headline_in,
    main_first,
    names_in_link,
)
from scrapy_ext.server.extraction.auto.lists.repeats import ListEntry
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.formulas import is_formula
from scrapy_ext.server.extraction.auto.page.layout import heading_above, words_of
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, shown_text
from scrapy_ext.server.extraction.auto.page.urls import same_page, slug_of
from scrapy_ext.server.extraction.auto.products.shown_prices import PriceTags
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The elements of an entry that are read.
MAX_ELEMENTS: Final = 400
MAX_LINE_LENGTH: Final = 120
#: Elements of an entry with a button alone in which its name is searched.
MAX_LINES: Final = 12
MAX_TEXT_LENGTH: Final = 3_000
#: Shorter paragraphs are labels.
SHORTEST_SUMMARY: Final = 40
MAX_SUMMARY_LENGTH: Final = 5_000
#: Where the heading of some entries is searched: the entry and the elements around it, and those before each.
LEVELS_TO_HEADING: Final = 3
MAX_SIBLINGS: Final = 60
#: Elements with more are no lines.
MOST_PARTS: Final = 4
#: The least number of letters of a name with an amount in it.
LETTERS_OF_HEADLINE: Final = 25
#: The least score of a price among the few texts of an entry.
ENOUGH_FOR_PRICE: Final = 0.5

_VOCABULARY: Final = load_vocabulary("lists")
_TITLE_NAME, _NOT_TITLE, _DATE_NAME = _VOCABULARY.patterns("title_name", "not_title", "date_name")
_AUTHOR_NAME, _NOT_AUTHOR, _SUMMARY_NAME = _VOCABULARY.patterns("author_name", "not_author", "summary_name")
#: Texts of links that name nothing ("read more").
LEADS_ON = _VOCABULARY.pattern("leads_on", re.IGNORECASE)
#: Texts in the place of a name that are none.
_NO_NAME = _VOCABULARY.pattern("no_name", re.IGNORECASE)
_BEHIND = re.compile(r"background(?:-image)?\s*:[^;]{0,40}url\(\s*[\"']?([^\"')]+)")
#: Times relative to now, and the words for that.
_RELATIVE, _AGO = _VOCABULARY.patterns("relative", "ago", flags=re.IGNORECASE)
#: Signs between the parts of a line.
_BETWEEN = re.compile(r"\s*[|·•／]\s*|\s[–—/]\s")
#: Elements of lines; headlines and links may begin with the same words.
_LINE_TAGS: Final = frozenset({"p", "div", "span", "small", "footer"})
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:]{5,8}\S*")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_NUMBER_ATTRIBUTES: Final = ("data-asin", "data-product-id", "data-productid", "data-item-id", "data-pid", "data-sku")
_MODEL_NUMBER = re.compile(r"\d{2,8}(?:[-/]\d{1,8}){1,4}")
_CENTS = re.compile(r"\d[.,]\d\d(?!\d)")
_PLAIN_NUMBER = re.compile(r"[\w.-]{1,60}")
#: The end of a text that was cut.
_DOTS = re.compile(r"\s*(?:\.{2,4}|…)$")


class EntryContent:
    """The elements of an entry and their contents, independent of its main link."""

    def __init__(self, page: Page, entry: ListEntry) -> None:
        self.page = page
        self._node, self._url = entry.node, entry.url
        self.language = page.language
        self.elements = list(islice(entry.elements(), MAX_ELEMENTS))
        self.text = entry.text(MAX_TEXT_LENGTH)
        self._names = {node: page.names(node) for node in self.elements}

    @cached_property
    def names(self) -> str:
        """The names of the entry and its parts, in lower case."""
        return " ".join(islice((names for names in self._names.values() if names), 40))

    @cached_property
    def formulas(self) -> list[str]:
        """The texts of its formulas, with the dollar signs around them."""
        return [node_text(node, MAX_NAME_LENGTH) for node in self.elements if is_formula(node)]

    @cached_property
    def markup(self) -> frozenset[str]:
        """The kinds of its elements: their tags with their names."""
        return frozenset(f"{node.tag} {names}" for node, names in self._names.items())

    @cached_property
    def image(self) -> Image | None:
        """The first image that is no icon or placeholder."""
        return next(iter(self.images), None)

    @cached_property
    def images(self) -> list[Image]:
        """The images that are no icons or placeholders, in the order of the entry."""
        found = images.of_nodes(self.page, (node for node in self.elements if node.tag == "img"))
        return found or images.images(self.page, self._other_pictures())

    def _other_pictures(self) -> Iterator[str]:
        for node in self.elements:
            if node.tag == "source" and (offered := node.get("data-srcset") or node.get("srcset")):
                yield offered.strip().split(None, 1)[0].rstrip(",")
            elif match := _BEHIND.search(node.get("style") or node.get("data-bg") or ""):
                yield match.group(1)

    @cached_property
    def tags(self) -> PriceTags:
        return PriceTags.of_entry(self.page, self.elements)

    @cached_property
    def price(self) -> Money | None:
        return self.tags.price_of_entry(ENOUGH_FOR_PRICE)

    @cached_property
    def date(self) -> Date | None:
        """The date of the entry: of a ``<time>``, an element named so, a line that is a date, or the heading above."""
        for node in self.elements:
            named = node.tag == "time" or _DATE_NAME.search(self._names[node])
            if not named and (len(node) > MOST_PARTS or not any(map(_DIGIT.search, _own_texts(node)))):
                continue
            text = node_text(node, MAX_LINE_LENGTH + 1)
            if len(text) > MAX_LINE_LENGTH or not (named or self._has_date(text)):
                continue
            inner = node.find(".//time[@datetime]") if len(node) else None
            exact = inner.get("datetime") if inner is not None else None
            marked = node.find(".//abbr[@title]") if len(node) else None
            titled = _ISO.match(node.get("title") or (marked.get("title") if marked is not None else None) or "")
            for candidate in (
                node.get("datetime"),
                exact,
                node.get("content"),
                titled.group() if titled else None,
                text,
            ):
                if date := read(candidate, self.page):
                    return date
        heading = heading_above(self._node, LEVELS_TO_HEADING, MAX_SIBLINGS)
        text = node_text(heading, MAX_LINE_LENGTH + 1) if heading is not None else ""
        return read(text, self.page) if is_mostly_date(text, self.language) else None

    def _has_date(self, line: str) -> bool:
        """Return whether a line, or a part of it between bars or dots, is a date and little else."""
        return any(is_mostly_date(part, self.language) for part in (line, *_BETWEEN.split(line)))

    @cached_property
    def is_dated(self) -> bool:
        """True for an entry with a date, or with a time relative to now (``3 hours ago``)."""
        return self.date is not None or any(
            _RELATIVE.fullmatch(part)
            for node in self.elements
            if _AGO.search(node.text or "")
            for part in _BETWEEN.split(node_text(node, MAX_LINE_LENGTH))
        )

    @cached_property
    def authors(self) -> list[Author] | None:
        for node in self.elements:
            names = self._names[node]
            named = _AUTHOR_NAME.search(names) and not _NOT_AUTHOR.search(names)
            if not named and not _is_author_link(node):
                continue
            raw = node_text(node, MAX_LINE_LENGTH + 1)
            if is_mostly_date(raw, self.language):
                raw = name_before_date(raw)
            found = names_in(raw) if 0 < len(raw) <= MAX_LINE_LENGTH else []
            if found:
                return [Author(name=name, nameRaw=part_with(raw, found)) for name in found]
        return None

    @cached_property
    def authors_of_line(self) -> list[Author] | None:
        """The authors of a line that says who wrote the entry, where no element is named so."""
        for node in self.elements:
            raw = node_text(node, MAX_LINE_LENGTH + 1) if node.tag in _LINE_TAGS else ""
            if found := names_of_line(raw):
                return [Author(name=name, nameRaw=part_with(raw, found)) for name in found]
        return None

    @cached_property
    def summary(self) -> str | None:
        """The summary of the entry: the element named so, else the paragraphs."""
        named = [node for node in self.elements if _SUMMARY_NAME.search(self._names[node])]
        # An element with a heading is a box around the whole.
        named = [node for node in named if next(node.iter(*HEADINGS), None) is None]
        for nodes in (named[:1], [node for node in self.elements if node.tag == "p"]):
            texts = [text for node in nodes if len(text := self._without_lead_on(node)) >= SHORTEST_SUMMARY]
            if texts:
                return "\n".join(texts)[:MAX_SUMMARY_LENGTH]
        return None

    def _without_lead_on(self, node: HtmlElement) -> str:
        """Return the text of a part without a link to the entry at its end (``Read more``)."""
        text = shown_text(node, MAX_SUMMARY_LENGTH)
        links = node.findall(".//a")[-1:]
        words = node_text(links[0], MAX_LINE_LENGTH) if links else ""
        if not words or not text.endswith(words) or not LEADS_ON.fullmatch(words):
            return text
        url = self.page.link(links[0].get("href"))
        return text.removesuffix(words).rstrip() if url is not None and same_page(url, self._url) else text

    @cached_property
    def number(self) -> str | None:
        """The site's own identifier of the product, in an attribute."""
        for node in self.elements[:5]:
            for attribute in _NUMBER_ATTRIBUTES:
                value = one_line(node.get(attribute))
                if value and _PLAIN_NUMBER.fullmatch(value):
                    return value
        return None

    @cached_property
    def links(self) -> int:
        """The number of URLs that the entry links to."""
        return len({node.get("href") for node in self.elements if node.tag == "a"})

    def titles(self) -> list[HtmlElement]:
        """Return the first elements that are named as titles."""
        return [
            node
            for node in self.elements
            if (names := self._names[node]) and _TITLE_NAME.search(names) and not _NOT_TITLE.search(names)
        ][:3]


class Card:
    """An entry of a list with its contents and the name that its link gives it.

    ``shared`` is the text of all links of the list, ``labels`` are texts in the links of several of its entries.
    """

    def __init__(
        self, entry: ListEntry, block: EntryContent, shared: str | None = None, labels: frozenset[str] = frozenset()
    ) -> None:
        self._shared = shared
        self._labels = labels
        self.entry = entry
        self.url = entry.url
        self.content = block

    @cached_property
    def headings(self) -> list[HtmlElement]:
        """The headings of the entry: those in or around its link first, the longest of these first."""
        link = self.entry.link
        around = {link, *link.iterancestors(), *link.iter("*")}
        found = [node for node in self.content.elements if node.tag in HEADINGS and node_text(node, MAX_NAME_LENGTH)]
        near = [node for node in found if node in around]
        return main_first(near) + [node for node in found if node not in around]

    @cached_property
    def linked_heading(self) -> HtmlElement | None:
        """The heading in or around the link of the entry."""
        link = self.entry.link
        first = self.headings[0] if self.headings else None
        if first is None or not (first is link or link in first.iter("a") or first in link.iter(*HEADINGS)):
            return None
        return first

    @property
    def _headings_of_same_url(self) -> list[HtmlElement]:
        """The headings in or around other links of the entry to its URL: the first link may have a badge alone."""
        own = self.entry.link
        links = {node for node in self.content.elements if node.tag == "a" and node.get("href") == own.get("href")} - {
            own
        }
        around = {node for link in links for node in (link.getparent(), *link.iter(*HEADINGS))}
        return [node for node in self.headings if node in around][:1]

    @cached_property
    def name(self) -> str | None:
        """The name of the entry: the heading, the part named so, or the text of the link, in this order.

        None where the only texts are calls to action, or more than a name.
        """
        link = self.entry.link
        own = names_in_link(link, self.content.titles(), self._labels)
        labels = [one_line(link.get(label)) for label in ("title", "aria-label")]
        heading = self.linked_heading
        candidates = [headline_in(self.content.page, heading)] if heading is not None else []
        if heading is None:
            candidates += [headline_in(self.content.page, node) for node in self._headings_of_same_url]
        if not any(own):
            # The heading begins with the name of its section.
            headings = [node_text(node, MAX_NAME_LENGTH) for node in self.headings[:1]]
            candidates += [label for label in labels if label and any(text.endswith(label) for text in headings)]
        candidates += own
        candidates += [node_text(node, MAX_NAME_LENGTH) for node in (*self.content.titles(), *self.headings)]
        candidates += labels
        candidates += [one_line(node.get("alt")) for node in link.iter("img")]
        # A link around the whole entry has all of its text, the name first.
        said = node_text(link, MAX_NAME_LENGTH)
        pictures = islice((node for node in self.content.elements if node.tag == "img"), 2)
        candidates += [alt for node in pictures if (alt := one_line(node.get("alt"))) and said.startswith(alt)]
        name = next((text for text in candidates if self._is_name(text)), None)
        if name is None and self.leads_on and said:
            name = next((text for text in self._lines() if self._is_name(text)), None)
        name = name or self._model_number() or self._only_name()
        return None if name is None else self._whole(name, labels)

    @cached_property
    def leads_on(self) -> bool:
        """True if the text of the link names nothing: a call to action, or what all links of the list have."""
        text = node_text(self.entry.link, MAX_NAME_LENGTH)
        return text == self._shared or LEADS_ON.fullmatch(text) is not None

    def _lines(self) -> Iterator[str]:
        """Yield the texts of the first elements before the link: a button stands behind what it leads to."""
        before = takewhile(lambda node: node is not self.entry.link, self.content.elements)
        for node in islice(before, MAX_LINES):
            text = one_line(node.text)
            if text and len(text) <= MAX_LINE_LENGTH and not text.endswith("."):
                yield text

    def _whole(self, name: str, labels: Iterable[str]) -> str:
        """Return the name, or for one that ends in dots the label or the description of a picture that continues it."""
        begin = _DOTS.sub("", name)
        if begin == name:
            return name
        pictures = islice((node for node in self.content.elements if node.tag == "img"), 4)
        longer = (*labels, *(one_line(node.get("alt")) for node in pictures))
        whole = (text for text in longer if len(begin) < len(text) < MAX_NAME_LENGTH and text.startswith(begin))
        return next((text for text in whole if _DOTS.sub("", text) != begin), name)

    def _only_name(self) -> str | None:
        """Return the text in the link that may be a name, if there is only one beside badges and prices, or only one
        in the URL, or only one that no other entry has; in an entry with a date, the first that is not much shorter
        than the others."""
        texts = dict.fromkeys(one_line(part) for part in islice(self.entry.link.itertext(), MAX_LINES) if part.strip())
        names = [text for text in texts if self._is_name(text) and not BADGE.fullmatch(text)]
        in_url = [text for text in names if self._is_in_url(text)] if len(names) > 1 else names
        if len(in_url) == 1:
            return in_url[0]
        # A summary is a sentence, and what many entries have is the name of a section.
        own = [text for text in names if text not in self._labels and not SENTENCE.search(text)]
        # A maker stands before the name, a colour behind it.
        if len(own) == 1 and all(len(text) < len(own[0]) for text in names[: names.index(own[0])]):
            return own[0]
        if not own or not self.content.is_dated:
            return None
        longest = max(map(len, own))
        return next((text for text in own if 2 * len(text) >= longest), None)

    def _is_in_url(self, text: str) -> bool:
        """Return whether the words of a text are most of those of the URL, as names are: ``/p/oak-table-4711``."""
        own, words = (frozenset(words_of(each)) for each in (slug_of(self.url) or "", text))
        return len(words) > 1 and words <= own and 2 * len(words) > len(own)

    def _model_number(self) -> str | None:
        """Return the text of an element named as a title, where it is a number of several digits alone."""
        texts = (node_text(node, MAX_NAME_LENGTH) for node in self.content.titles())
        return next((text for text in texts if _MODEL_NUMBER.fullmatch(text)), None)

    def _is_name(self, text: str) -> bool:
        if len(text) >= MAX_NAME_LENGTH or not _LETTER.search(text) or LEADS_ON.fullmatch(text) or text == self._shared:
            return False
        plain = text
        for formula in self.content.formulas:
            plain = plain.replace(formula, " ")
        if is_money(plain) and not self._is_heading(text):
            return False
        return not _NO_NAME.search(text) and not is_mostly_date(text, self.content.language)

    def _is_heading(self, text: str) -> bool:
        """Return whether a text is that of the linked heading, with more than a price: a headline may have amounts.

        Amounts with cents are prices.
        """
        if self.linked_heading is None or sum(map(str.isalpha, text)) < LETTERS_OF_HEADLINE or _CENTS.search(text):
            return False
        return text == node_text(self.linked_heading, MAX_NAME_LENGTH)


def _own_texts(node: HtmlElement) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        yield child.tail or ""


def _is_beside_date(line: str, name: str) -> bool:
    """Return whether a line with a date has a name without other words before it: not ``3 May: Meet Jane Doe``."""
    date = WRITTEN.search(line)
    if date is None:
        return False
    before = WRITTEN.sub(" ", line.partition(name)[0])
    return _LETTER.search(before) is None or names_in(f"{before}{name}") == names_in(name)


def _is_author_link(node: HtmlElement) -> bool:
    """Return whether a link names the author: marked so, or to the page of a person in a short line with a date, or
    behind its "by".

    Persons whom an entry is about have such pages, too.
    """
    if "author" in (node.get("rel") or "").lower().split():
        return True
    parent = node.getparent()
    if node.tag != "a" or parent is None or not leads_to_author(node):
        return False
    name, line = node_text(node, MAX_LINE_LENGTH), node_text(parent, MAX_LINE_LENGTH + 1)
    if len(line) > MAX_LINE_LENGTH:
        return False
    return _is_beside_date(line, name) or (not line.startswith(name) and names_in(line) == names_in(name))
