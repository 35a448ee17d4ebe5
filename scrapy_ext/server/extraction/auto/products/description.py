"""Description of a product: of its structured data, or as the page shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.prices import currency_in
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html, text_of
from scrapy_ext.server.extraction.auto.page.sources import highest
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, layout_text, plain
from scrapy_ext.server.extraction.auto.products.availability import (
    LINES_AFTER_HEADING,
    MAX_LINE_LENGTH,
    MAX_STATEMENTS,
    is_hidden,
)
from scrapy_ext.server.extraction.auto.products.offers import IN_STOCK, availability_in
from scrapy_ext.server.extraction.auto.products.other_subjects import OtherSubjects
from scrapy_ext.server.extraction.auto.products.ratings import MAX_TEXT_LENGTH, rating_in
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

_VOCABULARY: Final = load_vocabulary("products")
#: Shorter texts are no description.
MIN_LENGTH: Final = 40
MAX_DESCRIPTIONS: Final = 60
#: The fewest words of a paragraph that is a description without being named so; letters, in scripts without spaces.
FEWEST_WORDS: Final = 4
FEWEST_LETTERS: Final = 20
#: The fewest words of a paragraph in which words about the stock, delivery or payment may be part of a description, and
#: the words that stand before those about the stock there.
FEWEST_OF_PROSE: Final = 8
WORDS_BEFORE: Final = 4
#: Most words of the statement itself: "out of stock".
MAX_STATEMENT_WORDS: Final = 3
#: A longer text is no better.
ENOUGH: Final = 4_000

_CHOICE, _STOCK, _OTHER_PART = _VOCABULARY.patterns(
    "choice_words", "stock_word", "no_property_heading", flags=re.IGNORECASE
)
_TAX: Final = load_vocabulary("money").pattern("gross", re.IGNORECASE)
#: Scripts without spaces between words.
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DESCRIPTION_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION, _DESCRIPTION, _NOTICE = _VOCABULARY.patterns("no_description", "description", "notice")
_NUMBER_LINE = _VOCABULARY.pattern("number_line", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_SENTENCE_END: Final = re.compile(r"[.!?…。！？।؟]\W*$")
_HEADING_LINE: Final = re.compile(rf"(?:{_VOCABULARY.text('description_heading')})\s*[:：.]?", re.IGNORECASE)
#: The heading of a description in its first line, or with a colon after it.
_OWN_HEADING: Final = re.compile(
    rf"\s*(?:{_VOCABULARY.text('description_heading')})(?:\s*[:：]\s+|\s*：|[^\S\n]*\n\s*)", re.IGNORECASE
)


class ProductDescription(NamedTuple):
    """A description as text and as clean HTML, either may be unknown, and the part of the page that it is from."""

    text: str | None = None
    html: str | None = None
    node: HtmlElement | None = None


def description_of(page: Page, product: Thing | None, focus: Focus) -> ProductDescription:
    """Return the longer of the descriptions in structured data, which may be cut, and on the page."""
    stated = product.text("description") if product else None
    others = OtherSubjects(page, focus)
    node = _node(page, focus, others)
    if node is not None:
        clean = cleaned(node, page.base_url)
        if clean is not None:
            _drop_first_lines(clean)
        text = text_of(clean) if clean is not None else ""
        if clean is not None and len(text) > len(stated or ""):
            return ProductDescription(text, html_of(clean), node)
    if product is not None and stated:
        return ProductDescription(_without_heading(stated), stated_html(product, stated, page.base_url))
    of_page = plain(page.meta("og:description", "description")) or _paragraphs(page, focus, others)
    return ProductDescription(_without_heading(of_page) if of_page else None)


def _without_heading(text: str) -> str:
    """Return a description without the heading in its first line, or before a colon."""
    return text[match.end() :] if (match := _OWN_HEADING.match(text)) and match.end() < len(text) else text


def _drop_first_lines(clean: HtmlElement) -> None:
    """Remove the first lines of a description that hold nothing but its heading or a number of the product."""
    while (line := _line_at_beginning(clean)) is not None:
        if _is_no_description(line.text) and len(line):
            line.text = None
            line[0].drop_tree()
        else:
            line.tail = (line.tail or "").lstrip()
            line.drop_tree()
    first = next((part for part in clean.iter() if (part.text or "").strip()), None)
    if first is not None:
        first.text = _without_heading((first.text or "").lstrip())


def _line_at_beginning(clean: HtmlElement) -> HtmlElement | None:
    """Return the element with the first line of a description, or with it before a line break, where it is none."""
    for part in clean.iter():
        line = node_text(part, MAX_LINE_LENGTH + 1)
        if part is not clean and _is_no_description(line):
            return part
        if (part.text or "").strip():
            is_broken = len(part) > 0 and part[0].tag == "br" and _is_no_description(part.text)
            return part if is_broken else None
    return None


def _is_no_description(line: str | None) -> bool:
    line = one_line(line)
    return 0 < len(line) <= MAX_LINE_LENGTH and any(
        each.fullmatch(line) is not None for each in (_NUMBER_LINE, _HEADING_LINE)
    )


def _paragraphs(page: Page, focus: Focus, others: OtherSubjects) -> str | None:
    """Return the paragraphs of one element that follow the heading: of several elements, those with the most text."""
    if focus.heading is None:
        return None
    found: dict[HtmlElement | None, list[str]] = {}
    for node in islice(page.tree.iter("p"), MAX_STATEMENTS):
        if not 0 < focus.distance(node) <= LINES_AFTER_HEADING or focus.elsewhere(node) or others.hold(node):
            continue
        text = node_text(node)
        if _describes(node, text) and not is_hidden(page, node) and not _is_notice(page, node):
            found.setdefault(node.getparent(), []).append(text if node.find(".//br") is None else layout_text(node))
    best = max(map(_prose, found.values()), key=lambda texts: sum(map(len, texts)), default=None)
    return "\n".join(best) if best else None


def _prose(texts: list[str]) -> list[str]:
    """Return the paragraphs without short lines of facts beside others: dates, numbers, sizes of files."""
    return [text for text in texts if not _is_fact(text)] or texts


def _is_fact(text: str) -> bool:
    is_short = len(text.split()) < FEWEST_OF_PROSE and len(text) <= MAX_TEXT_LENGTH
    return is_short and _DIGIT.search(text) is not None and _SENTENCE_END.search(text) is None


def _describes(node: HtmlElement, text: str) -> bool:
    """Return whether a paragraph may describe a product: some words that are no price, rating, state of the stock or
    link."""
    links = sum(len(node_text(link)) for link in node.iter("a"))
    words = len(text.split())
    return (
        (words >= FEWEST_WORDS or len(_UNSPACED.findall(text[:MAX_LINE_LENGTH])) >= FEWEST_LETTERS)
        and links * 2 < len(text)
        and not _states_stock(text, words)
        and not (words < FEWEST_OF_PROSE and any(each.search(text) for each in (_OTHER_PART, _STOCK, _TAX)))
        and currency_in(text) is None
        and (len(text) > MAX_TEXT_LENGTH or rating_in(text) is None)
        and next(node.iter("button", "input", "select", "label"), None) is None
    )


def _states_stock(text: str, words: int) -> bool:
    """Return whether a paragraph is a statement about the stock: it is short, or begins with one.

    What is available in four colours is described rather than in stock.
    """
    state = availability_in(text)
    is_of_choice = state == IN_STOCK and words >= FEWEST_OF_PROSE and _CHOICE.search(text) is not None
    if state is None or (is_of_choice and not (_STOCK.search(text) or _OTHER_PART.search(text))):
        return False
    begin = " ".join(text.split()[: WORDS_BEFORE + MAX_STATEMENT_WORDS])
    return words < FEWEST_OF_PROSE or availability_in(begin) is not None


def _node(page: Page, focus: Focus, others: OtherSubjects) -> HtmlElement | None:
    """Return the named part with the most text that is neither the whole page nor about something else."""
    return highest(_scored_parts(page, focus, others))


def _scored_parts(page: Page, focus: Focus, others: OtherSubjects) -> Iterator[tuple[float, HtmlElement]]:
    for node in page.named(*_DESCRIPTION_NAMES)[:MAX_DESCRIPTIONS]:
        if node in focus.path or node.tag in {"meta", "a", "button"} or _NO_DESCRIPTION.search(page.names(node)):
            continue
        if node.get("itemprop") != "description" and others.hold(node):
            continue
        length = len("".join(node.itertext()))
        if MIN_LENGTH <= length <= MAX_VALUE_LENGTH and not focus.elsewhere(node) and not _is_notice(page, node):
            yield min(length, ENOUGH) + ENOUGH * _sureness(page, node), node


def _is_notice(page: Page, node: HtmlElement) -> bool:
    """Return whether a part is a notice on cookies or the like."""
    return any(_NOTICE.search(page.names(part)) for part in (node, *islice(node.iterancestors(), 8)))


def _sureness(page: Page, node: HtmlElement) -> int:
    """Return how sure a part is the description: marked as it, then named so; controls belong to an order."""
    if node.get("itemprop") == "description":
        return 3
    named = _DESCRIPTION.search(page.names(node)) is not None
    return (2 if named else 1) - (next(node.iter("select", "input", "button"), None) is not None)
