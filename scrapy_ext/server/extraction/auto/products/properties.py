"""Properties of a product: labels with values in its tables and lists, and in the lines of parts that hold no others.

Prices, opening hours and links to documents beside labels are no properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.prices import is_money
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.labelled import LABELLED_LINE, Pair, broken_lines, label_of
from scrapy_ext.server.extraction.auto.page.layout import heading_above, step_of
from scrapy_ext.server.extraction.auto.products.other_products import is_of_another
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The least number of lines of a part with labels, and the share of its lines that have one.
FEWEST: Final = 3
#: The same of a part that is named or headed as properties.
FEWEST_NAMED: Final = 2
MOST: Final = 0.75
MAX_LABEL_LENGTH: Final = 40
#: Most texts in elements of their own in a value.
MOST_PIECES: Final = 6
#: Longer values are sentences.
MAX_VALUE_LENGTH: Final = 120
MAX_BOXES: Final = 2_000
#: Elements around a part in whose names, and siblings before it in which a heading, is searched.
LEVELS: Final = 5
MAX_SIBLINGS: Final = 20

_VOCABULARY: Final = load_vocabulary("products")
_PART_NAME, _OTHER_PART, _PART_HEADING, _OTHER_HEADING, _DESCRIPTION, _NO_LABEL, _NO_VALUE, _SIZE = (
    _VOCABULARY.patterns(
        "property_part", "no_property_part", "property_heading", "no_property_heading", "description", "no_property",
        "no_property_value", "size", flags=re.IGNORECASE,
    )
)  # fmt: skip
#: Values of a table of deliveries, and of opening hours.
_SALE_VALUE, _OPENING, _CLOSED, _PRODUCT_TIME = _VOCABULARY.patterns(
    "sale_value", "opening_value", "closed", "product_time", flags=re.IGNORECASE
)
_FREE_SHIPPING: Final = load_vocabulary("money").pattern("free_shipping", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?。！？]\s*$")
#: Links to documents.
_DOCUMENT: Final = re.compile(r"\.(?:pdf|zip|docx?|xlsx?|dwg|step?)(?:$|[?#])", re.IGNORECASE)
_MODEL_NUMBER: Final = re.compile(r"\w-\w")
#: Hours of opening.
_TIME: Final = re.compile(r"\b\d{1,2}:\d\d\s?(?:[-–—]|[ap]\.?m)")
_LETTER: Final = re.compile(r"[^\W\d_]")
_DIGIT: Final = re.compile(r"\d")
_ROWS: Final = frozenset({"li", "div", "p", "tr"})
_LISTS: Final = frozenset({"table", "dl", "ul", "ol"})


def properties_on(page: Page, focus: Focus) -> list[Pair]:
    """Return the properties that a page shows: of tables and lists, then of lines and rows without a sign of theirs."""
    listed = (pair for pair in page.labelled.pairs if pair.listed)
    found: dict[tuple[HtmlElement, str], Pair] = {}
    for pair in chain(listed, _in_lines(page, focus), _in_rows(page, focus)):
        found.setdefault((pair.node, pair.label), pair)
    lists: dict[HtmlElement, list[Pair]] = {}
    for pair in found.values():
        lists.setdefault(_list_of(pair.node), []).append(pair)
    headings = _Headings(page, focus)
    others = {box for box, pairs in lists.items() if _is_other_list(page, focus, box, pairs, headings)}
    return [
        pair
        for pair in found.values()
        if _is_property(pair)
        and _list_of(pair.node) not in others
        and not focus.elsewhere(pair.node)
        and not _is_in_other_part(page, pair.node)
    ]


def _list_of(node: HtmlElement) -> HtmlElement:
    """Return the table or list of a value, else the element with the rows."""
    around = list(islice(node.iterancestors(), LEVELS - 1))
    box = next((each for each in around if each.tag in _LISTS), None)
    # A value behind its label is in a row of both.
    return box if box is not None else around[min(node.getprevious() is not None, len(around) - 1)]


def _is_other_list(page: Page, focus: Focus, box: HtmlElement, pairs: list[Pair], headings: _Headings) -> bool:
    """Return whether a list is one of deliveries, opening hours or the like, by what is above it or by its values."""
    for around in islice((box, *box.iterancestors()), LEVELS + 1):
        if _PART_NAME.search(page.names(around)):
            return False
        heading = headings[around]
        is_named = heading is not None and heading is not focus.heading
        if heading is not None and is_named and (headings.is_title(around) or not _is_tab(heading)):
            text = node_text(heading, MAX_LABEL_LENGTH)
            if _OTHER_HEADING.search(text):
                return True
            if _PART_HEADING.search(text):
                return False
            break
    if _OTHER_HEADING.search(_line_above(box)):
        return True
    row = next(box.iter("tr"), None) if box.tag == "table" else None
    if row is not None and len(row) > 1 and all(cell.tag == "th" for cell in row):
        return _OTHER_HEADING.search(node_text(row, 2 * MAX_LABEL_LENGTH)) is not None
    return len(pairs) >= FEWEST_NAMED and (_are_of_sale(pairs) or _are_hours(pairs))


def _line_above(box: HtmlElement) -> str:
    """Return the line above a list, where it may be a title: neither a fact nor a promise of free delivery."""
    line = box.getprevious()
    if line is None or next(line.iter("li", "a", "button"), None) is not None:
        return ""
    text = node_text(line, MAX_LABEL_LENGTH + 1)
    is_fact = LABELLED_LINE.match(text) or _DIGIT.search(text) or _FREE_SHIPPING.search(text)
    return "" if is_fact or len(text) > MAX_LABEL_LENGTH else text


def _title_of(box: HtmlElement) -> HtmlElement | None:
    """Return the caption of a table, or the summary of a part that opens."""
    first = next(iter(box), None)
    return first if first is not None and first.tag in {"caption", "summary"} else None


def _is_tab(heading: HtmlElement) -> bool:
    """Return whether a heading is one of a list of links to parts of the page."""
    around = (heading, *islice(heading.iterancestors(), 2))
    return any(each.tag in {"li", "nav"} or each.get("role") in {"tab", "tablist"} for each in around)


def _are_of_sale(pairs: list[Pair]) -> bool:
    """Return whether all values are times of delivery, prices or words such as "free", but not these words alone.

    Times that the product has itself are properties: its shelf life.
    """
    is_of_product = any(_PRODUCT_TIME.search(pair.label) for pair in pairs)
    if is_of_product and not any(_OTHER_HEADING.search(pair.label) for pair in pairs):
        return False
    found = [pair for pair in pairs if _SALE_VALUE.fullmatch(pair.value) or _is_price(pair)]
    return len(found) == len(pairs) and any(_DIGIT.search(pair.value) for pair in pairs)


def _are_hours(pairs: list[Pair]) -> bool:
    opening = sum(1 for pair in pairs if _OPENING.fullmatch(pair.value))
    return opening > 0 and opening + sum(1 for pair in pairs if _CLOSED.fullmatch(pair.value)) == len(pairs)


def _is_in_other_part(page: Page, node: HtmlElement) -> bool:
    """Return whether a part around an element is named as that of the delivery, the cookies or the like."""
    return any(
        _OTHER_PART.search(page.names(box)) for box in islice(node.iterancestors(), LEVELS - 1) if box.tag != "body"
    )


def _is_property(pair: Pair) -> bool:
    if _NO_LABEL.fullmatch(pair.label) or _NO_VALUE.fullmatch(pair.value) or _is_price(pair):
        return False
    links = list(islice(pair.node.iter("a"), 2))
    is_link = len(links) == 1 and node_text(links[0], MAX_VALUE_LENGTH) == pair.value
    return not (is_link and _DOCUMENT.search(links[0].get("href") or ""))


def _is_price(pair: Pair) -> bool:
    """Return whether a value is an amount of money; numbers of models and sizes have the letters of some currencies."""
    if not is_money(pair.value):
        return False
    return not (_MODEL_NUMBER.search(pair.value) or _SIZE.fullmatch(pair.label))


def _in_lines(page: Page, focus: Focus) -> Iterator[Pair]:
    """Yield the pairs of parts of which nearly every line is one: ``<li>Material: oak</li>``.

    The lines below a heading of something else are about that: the delivery, the seller, a review. Those in a box with
    a link to another page are about another product.
    """
    parts: dict[HtmlElement, list[tuple[HtmlElement, str]]] = {}
    for node, text in page.lines:
        parent = node.getparent()
        if node.tag in _ROWS and parent is not None:
            parts.setdefault(parent, []).append((node, text))
    broken: dict[HtmlElement, list[tuple[HtmlElement, str]]] = {}
    for node, text in broken_lines(page):
        broken.setdefault(node, []).append((node, text))
    headings = _Headings(page, focus)
    for lines, count in chain(((lines, len(part)) for part, lines in parts.items()), _with_lengths(broken)):
        pairs = [pair for node, text in lines if (pair := _pair_of(node, text))] if len(lines) >= FEWEST_NAMED else []
        sentences = sum(1 for pair in pairs if _SENTENCE.search(pair.value))
        is_part = len(pairs) >= max(FEWEST_NAMED, MOST * count) and 2 * sentences < len(pairs)
        if not is_part or is_of_another(focus, pairs[0].node):
            continue
        subject = _subject(page, focus, pairs[0].node, headings)
        if subject or (subject is None and len(pairs) >= FEWEST):
            yield from pairs


def _with_lengths(
    parts: dict[HtmlElement, list[tuple[HtmlElement, str]]],
) -> Iterator[tuple[list[tuple[HtmlElement, str]], int]]:
    return ((lines, len(lines)) for lines in parts.values())


def _pair_of(node: HtmlElement, text: str) -> Pair | None:
    match = LABELLED_LINE.match(text)
    if match is None or not _is_label(match[1]) or len(match[2]) > MAX_VALUE_LENGTH or _TIME.search(text):
        return None
    return Pair(label_of(match[1]), match[2].strip(), node, listed=True)


def _is_label(text: str) -> bool:
    return 1 < len(text) <= MAX_LABEL_LENGTH and _LETTER.search(text) is not None


def _in_rows(page: Page, focus: Focus) -> Iterator[Pair]:
    """Yield the pairs of rows of two texts, or of tables with several pairs in a row, in parts named as properties."""
    rows = [node for node in page.tree.iter(*_ROWS) if len(node) in {2, 4, 6}]
    parts: dict[tuple[HtmlElement, str], list[list[HtmlElement]]] = {}
    for row in rows:
        cells, parent = list(row), row.getparent()
        is_table = row.tag == "tr"
        if parent is None or is_table != (len(cells) > 2) or (is_table and any(cell.tag != "td" for cell in cells)):
            continue
        if all(not (text or "").strip() for text in (row.text, *(cell.tail for cell in cells))):
            parts.setdefault((parent, step_of(row)), []).append(cells)
    headings = _Headings(page, focus)
    for cells_of in islice(parts.values(), MAX_BOXES):
        rows_of = sum(len(cells) // 2 for cells in cells_of)
        if rows_of < FEWEST or not _subject(page, focus, cells_of[0][0].getparent(), headings):
            continue
        pairs = [
            (label_of(node_text(label, MAX_LABEL_LENGTH + 1)), value, node_text(value, MAX_VALUE_LENGTH + 1))
            for cells in cells_of
            for label, value in zip(cells[::2], cells[1::2], strict=True)
            if _pieces(label) == 1 and 1 <= _pieces(value) <= MOST_PIECES
        ]
        sound = [
            Pair(label, text, value, listed=True)
            for label, value, text in pairs
            if _is_label(label) and ":" not in label and 0 < len(text) <= MAX_VALUE_LENGTH
        ]
        names = {pair.label for pair in sound}
        if len(sound) >= max(FEWEST, MOST * len(pairs)) and len(names) == len(sound):
            yield from sound


def _pieces(node: HtmlElement) -> int:
    return sum(1 for text in islice(node.itertext(), MOST_PIECES + 1) if text.strip())


class _Headings(dict[HtmlElement, HtmlElement | None]):
    """The titles of elements, else the nearest headings beside them and before them.

    Each is searched once, as many parts are in the same one.
    """

    def __init__(self, page: Page, focus: Focus) -> None:
        super().__init__()
        # A link to the content of the page names no part of it.
        self._labels = {box: label for box, label in _labels_of_panels(page).items() if box not in focus.path}

    def __missing__(self, box: HtmlElement) -> HtmlElement | None:
        title = _title_of(box)
        title = self._labels.get(box) if title is None else title
        self[box] = found = heading_above(box, 1, MAX_SIBLINGS) if title is None else title
        return found

    def is_title(self, box: HtmlElement) -> bool:
        """Return whether the heading of an element is its own title rather than one before it."""
        return self[box] is not None and (self[box] is _title_of(box) or box in self._labels)


def _labels_of_panels(page: Page) -> dict[HtmlElement, HtmlElement]:
    """Return the tabs, buttons and links that show a part of the page, by that part: of several, the first."""
    elements, known = page.elements, page.with_attribute
    by_id: dict[str, HtmlElement] = {}
    for position in known.get("id", ()):
        if number := elements[position].get("id"):
            by_id.setdefault(number, elements[position])
    found: dict[HtmlElement, HtmlElement] = {}
    for position in known.get("aria-labelledby", ()):
        panel = elements[position]
        label = by_id.get(panel.get("aria-labelledby", ""))
        if label is not None and label is not panel:
            found.setdefault(panel, label)
    for name in ("aria-controls", "href"):
        for position in known.get(name, ()):
            label, target = elements[position], elements[position].get(name, "")
            panel = by_id.get(target.removeprefix("#")) if name == "aria-controls" or target[:1] == "#" else None
            text = node_text(label, MAX_LABEL_LENGTH + 1) if panel is not None and panel is not label else ""
            is_known = any(each.search(text) for each in (_OTHER_HEADING, _PART_HEADING, _DESCRIPTION))
            if panel is not None and is_known and len(text) <= MAX_LABEL_LENGTH:
                found.setdefault(panel, label)
    return found


def _subject(page: Page, focus: Focus, node: HtmlElement, headings: _Headings) -> bool | None:
    """Return whether the nearest name of a part, or heading above one, is that of properties; None without any.

    The heading of the product is above parts of all kinds.
    """
    for box in islice((node, *node.iterancestors()), LEVELS + 1):
        if _PART_NAME.search(page.names(box)):
            return True
        heading = headings[box]
        if heading is not None and heading is not focus.heading:
            text = node_text(heading, MAX_LABEL_LENGTH)
            if _OTHER_HEADING.search(text):
                return False
            if _PART_HEADING.search(text):
                return True
            return None if _DESCRIPTION.search(text) else False
    return None
