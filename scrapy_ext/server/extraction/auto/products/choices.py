"""Variants of a product by its only choice of a size or a colour: a drop-down list or radio buttons.

Where a page has several choices, whatever of and by whichever controls, their combinations are unknown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, takewhile
from typing import Final, Literal, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.price_notation import Role, code_of, place_on
from scrapy_ext.server.extraction.auto.fields.prices import is_money, prices_in
from scrapy_ext.server.extraction.auto.items import ProductVariant
from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import Parts, names_other_page
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.auto.products.offers import MAX_VARIANTS, OUT_OF_STOCK, availability_in
from scrapy_ext.server.extraction.auto.products.other_products import below_headings, is_of_another
from scrapy_ext.server.extraction.auto.products.swatches import swatches_on
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Lists and buttons that are read, and elements around them whose names are read.
MAX_LISTS: Final = 100
MAX_BUTTONS: Final = 1_000
MAX_AROUND: Final = 6
#: Longest option, note behind it, and label, in characters.
MAX_NAME_LENGTH: Final = 40
MAX_TEXT_LENGTH: Final = 120
MAX_LABEL_LENGTH: Final = 60
#: Most elements between a label and the choice below it, and between the heading and a choice.
MAX_DISTANCE: Final = 6
#: Lines around a choice that are passed over on the way to the one before it.
MAX_WRAPPERS: Final = 3
AFTER_HEADING: Final = 400
#: Texts of an option that are read, and words of a note behind its name.
MAX_PIECES: Final = 10
MAX_NOTE_WORDS: Final = 6

_VOCABULARY: Final = load_vocabulary("products")
_SIZE, _COLOR, _CHOOSE = _VOCABULARY.patterns("size_choice", "color_choice", "choose", flags=re.IGNORECASE)
_OTHER_PART = _VOCABULARY.pattern("no_choice_part")
#: Headings of parts with choices of their own; options of a filter, units of sizes, and buttons to order.
_OTHER_HEADING, _ALL_OPTIONS, _UNIT = _VOCABULARY.patterns(
    "no_choice_heading", "all_options", "size_unit", flags=re.IGNORECASE
)
_NO_VARIANT = _VOCABULARY.pattern("no_variant_choice", re.IGNORECASE)
_ORDER = _VOCABULARY.caseless("order")
#: A note behind the name of an option: ``M (sold out)``, ``L - €99.00``.
_NOTE: Final = re.compile(r"(.*?\S)\s*(?:[(\[]([^()\[\]]+)[)\]]|(?:\s[-–—|]|[,:])\s+(\S.*))")
#: A difference of prices, or the least of several.
_DIFFERENCE: Final = re.compile(r"[+±−]|^\s*-|\b(?:from|ab|dès|desde|od|da)\b", re.IGNORECASE)
_LABEL_END: Final = " :：*-–—"

Field = Literal["size", "color"]


class _Option(NamedTuple):
    """An option with the notes behind its name."""

    name: str
    notes: tuple[str, ...] = ()


class _Choice(NamedTuple):
    """The options of a choice, and what they are; None for something else than sizes or colours."""

    field: Field | None
    options: tuple[_Option, ...]


class _Found(NamedTuple):
    """A choice with the tag and the name of its controls: pages for several screens have the same one twice."""

    choice: _Choice
    tag: str
    name: str


def variants_on(page: Page, focus: Focus) -> list[ProductVariant] | None:
    """Return a variant for each option of the only choice of a size or colour; None where there is none or several."""
    if focus.heading is None:
        return None
    all_choices = _Choices(page, focus)
    found = list(all_choices.all())
    known = {each for each in found if each.choice.field is not None and _is_sound(each.choice)}
    choices = {each.choice for each in known}
    # Two lists of the same sizes with names of their own are those of two parts of a set.
    if len(choices) != 1 or len({each.name for each in known if each.tag == "select"}) > 1:
        return None
    field, options = choices.pop()
    names = frozenset(option.name.casefold() for option in options)
    others = (each.choice.options for each in found if each not in known)
    listed = (frozenset(option.name for option in each) for each in others)
    groups = (*listed, *swatches_on(page, focus, all_choices.is_of_product))
    if field is None or not all(_repeats(names, each) for each in groups):
        return None
    variants = [_variant(page, field, option) for option in options]
    # Some pages have a note for each option and show it by a script.
    if all(variant.availability == OUT_OF_STOCK for variant in variants):
        for variant in variants:
            variant.availability = None
    return variants


def _is_sound(choice: _Choice) -> bool:
    names = [option.name for option in choice.options]
    return (
        1 < len(names) <= MAX_VARIANTS
        and len(set(names)) == len(names)
        and not all(map(_UNIT.fullmatch, names))
        and not any(len(name) > MAX_NAME_LENGTH or is_money(name) or availability_in(name) for name in names)
    )


def _variant(page: Page, field: Field, option: _Option) -> ProductVariant:
    variant = ProductVariant()
    setattr(variant, field, option.name)
    for note in option.notes:
        variant.availability = variant.availability or availability_in(note)
        found = prices_in(note, place_on(page))
        if found.price and found.marked and found.role in {Role.PRICE, Role.GROSS} and not _DIFFERENCE.search(note):
            variant.price, variant.currencyRaw = found.price
            variant.currency = code_of(found.price.currency_raw, place_on(page))
    return variant


class _Choices:
    """The choices of sizes and colours of a page, with the elements that label them."""

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._focus = focus
        self._labels: dict[str, HtmlElement] = {}
        for label in page.tree.iter("label"):
            if number := label.get("for"):
                self._labels.setdefault(number, label)

    def all(self) -> Iterator[_Found]:
        """Yield the choices that change the product: drop-down lists, then sets of radio buttons."""
        for node in islice(self._page.tree.iter("select"), MAX_LISTS):
            entries = list(islice(node.iter("option"), MAX_VARIANTS + 2))
            texts = [node_text(entry, MAX_TEXT_LENGTH) for entry in entries]
            if not entries or _ALL_OPTIONS.fullmatch(texts[0].strip(_LABEL_END)):
                continue
            has_prompt = _is_prompt(entries[0], texts[0])
            options = _options(texts[has_prompt:])
            # Groups may be the same sizes in several units.
            has_groups = next(islice(node.iter("optgroup"), 1, None), None) is not None
            if self.is_of_product(node) and not has_groups:
                labels = (*texts[:has_prompt], *self._labels_of(node))
                field = _field_of(labels, options)
                if field or _is_of_variants((node.get("name") or "", *labels), options):
                    yield _Found(_Choice(field, options), "select", node.get("name") or "")
        for buttons in _button_sets(self._page):
            options = tuple(option for node in buttons if (option := self._option_of(node)) is not None)
            is_filter = bool(options) and _ALL_OPTIONS.fullmatch(options[0].name) is not None
            if len(buttons) > 1 and not is_filter and self.is_of_product(buttons[0]):
                labels = tuple(self._labels_of_set(buttons[0]))
                field = _field_of(labels, options) if len(options) == len(buttons) else None
                name = buttons[0].get("name") or ""
                if field or _is_of_variants((name, *labels), options):
                    unnamed = (_Option(f"#{place}") for place in range(len(options), len(buttons)))
                    yield _Found(_Choice(field, (*options, *unnamed)), "input", name)

    def is_of_product(self, node: HtmlElement) -> bool:
        """Return whether a choice is one of the product at the heading."""
        page, focus = self._page, self._focus
        around = takewhile(lambda part: part not in focus.path, (node, *node.iterancestors()))
        return (
            0 < focus.distance(node) <= AFTER_HEADING
            and not is_of_another(focus, node)
            and not self._below_headings.hold(node)
            and not self._is_aside(node)
            and not self._is_below_other_heading(node)
            and not any(_OTHER_PART.search(page.names(part)) for part in islice(around, MAX_AROUND))
        )

    @cached_property
    def _below_headings(self) -> Parts:
        """The parts below headings of suggestions."""
        known = frozenset(below_headings(self._page, self._focus))
        return Parts(known.__contains__, ends=self._focus.path.__contains__)

    def _is_aside(self, node: HtmlElement) -> bool:
        """Return whether a choice is beside the content, in a part without a button to order."""
        aside = next(node.iterancestors("aside"), None)
        if aside is None or aside in self._focus.path:
            return False
        buttons = (node_text(button, MAX_LABEL_LENGTH) for button in islice(aside.iter("button"), MAX_LISTS))
        return not any(map(_ORDER.search, buttons))

    def _is_below_other_heading(self, node: HtmlElement) -> bool:
        """Return whether the last heading before a choice is one of reviews or the like, or names another product.

        One that begins with a number counts the reviews of the product: ``12 reviews``.
        """
        before = bisect_left(self._headings, self._page.order[node])
        if not before:
            return False
        heading = self._page.elements[self._headings[before - 1]]
        text = node_text(heading, MAX_LABEL_LENGTH)
        is_other = not text[:1].isdigit() and _OTHER_HEADING.search(text) is not None
        # One before the name of the product is none above its choices.
        is_behind = self._focus.distance(heading) > 0
        return is_behind and (is_other or names_other_page(self._page, heading))

    @cached_property
    def _headings(self) -> list[int]:
        heading = self._focus.heading
        return [self._page.order[node] for node in self._page.tree.iter(*HEADINGS) if node is not heading]

    def _labels_of(self, node: HtmlElement) -> Iterator[str]:
        """Yield the labels of a list, the surest first."""
        yield from self._stated_labels(node)
        label = self._labels.get(node.get("id") or "")
        if label is not None:
            yield node_text(label, MAX_LABEL_LENGTH + 1)
        yield from (one_line(around.text) for around in islice(node.iterancestors(), 2) if around.tag == "label")
        yield from self._line_before(node)

    def _labels_of_set(self, node: HtmlElement) -> Iterator[str]:
        """Yield the labels of a set of buttons, by its first one."""
        for around in islice(node.iterancestors(), MAX_AROUND):
            if around.tag == "fieldset" or around.get("role") in {"radiogroup", "group"}:
                yield from self._stated_labels(around)
                legend = around.find("legend")
                if legend is not None:
                    yield node_text(legend, MAX_LABEL_LENGTH + 1)
        yield from self._line_before(node)

    def _stated_labels(self, node: HtmlElement) -> Iterator[str]:
        yield one_line(node.get("aria-label"))
        found = self._by_id.get(node.get("aria-labelledby") or "")
        if found is not None:
            yield node_text(found, MAX_LABEL_LENGTH + 1)

    @cached_property
    def _by_id(self) -> dict[str, HtmlElement]:
        nodes = (self._page.elements[position] for position in self._page.with_attribute.get("id", ()))
        return {number: node for node in nodes if (number := node.get("id"))}

    def _line_before(self, node: HtmlElement) -> Iterator[str]:
        """Yield the text right before an element, and the line before it."""
        page = self._page
        previous, parent = node.getprevious(), node.getparent()
        text = previous.tail if previous is not None else parent.text if parent is not None else ""
        yield one_line((text or "")[:MAX_TEXT_LENGTH])
        at = page.order[node]
        behind = bisect_left(page.line_positions, at)
        for line, text in reversed(page.lines[max(0, behind - MAX_WRAPPERS) : behind]):
            if page.outline.ends[page.order[line]] <= at:
                if at - page.order[line] <= MAX_DISTANCE:
                    yield text
                return

    def _option_of(self, button: HtmlElement) -> _Option | None:
        """Return the option of a radio button, by its label."""
        label = self._labels.get(button.get("id") or "")
        if label is None:
            label = next((each for each in islice(button.iterancestors(), 2) if each.tag == "label"), button)
        pieces = (one_line(piece[:MAX_TEXT_LENGTH]) for piece in islice(label.itertext(), MAX_PIECES))
        # Some labels have their text twice: for readers of screens too.
        texts = list(dict.fromkeys(text for text in pieces if text)) or [one_line(button.get("aria-label"))]
        notes = tuple(filter(_is_note, texts[1:]))
        # Another text is a part of the name as likely as an unknown note.
        if not texts[0] or len(notes) < len(texts) - 1:
            return None
        option = _option(texts[0])
        return _Option(option.name, (*option.notes, *notes))


def _field_of(labels: Iterable[str], options: tuple[_Option, ...]) -> Field | None:
    """Return what a label says that its options are. It may name the chosen one: ``Size: M``."""
    names = {option.name for option in options}
    for text in labels:
        label, _, chosen = text.partition(":")
        whole = label if chosen.strip() in names else text
        if len(whole) <= MAX_LABEL_LENGTH:
            if _SIZE.fullmatch(whole.strip(_LABEL_END)):
                return "size"
            if _COLOR.fullmatch(whole.strip(_LABEL_END)):
                return "color"
    return None


def _is_of_variants(labels: Iterable[str], options: tuple[_Option, ...]) -> bool:
    """Return whether options of something else than sizes or colours change the product.

    Numbers of pieces, units of sizes, prices with and without a subscription and the like do not.
    """
    names = [option.name for option in options]
    texts = (*labels, *names)
    return not (
        (names and all(name.strip("+ ").isdecimal() for name in names))
        or (names and all(map(_UNIT.fullmatch, names)))
        or any(len(text) <= MAX_LABEL_LENGTH and _NO_VARIANT.search(text) for text in texts)
    )


def _repeats(names: frozenset[str], group: frozenset[str]) -> bool:
    """Return whether a group of options is the same choice as one with these names, or none with one option alone."""
    return len(group) < 2 or 2 * len(names & {name.casefold() for name in group}) >= min(len(names), len(group))


def _is_prompt(option: HtmlElement, text: str) -> bool:
    """Return whether the first entry of a list is none of its options: ``Choose a size``."""
    is_label = any(pattern.fullmatch(text.strip(_LABEL_END)) for pattern in (_SIZE, _COLOR))
    is_empty = option.get("value") == "" or not any(map(str.isalnum, text))
    return is_empty or is_label or _CHOOSE.search(text) is not None


def _button_sets(page: Page) -> Iterator[list[HtmlElement]]:
    """Yield the radio buttons with the same name, and the elements that are shown as such in the same group."""
    sets: dict[str, list[HtmlElement]] = {}
    for node in islice(page.tree.iter("input"), MAX_BUTTONS):
        if node.get("type") == "radio" and (name := node.get("name")):
            sets.setdefault(name, []).append(node)
    yield from sets.values()
    for group in page.by_role.get("radiogroup", ())[:MAX_LISTS]:
        buttons = [node for node in islice(group.iter("*"), MAX_BUTTONS) if node.get("role") == "radio"]
        if buttons:
            yield buttons


def _options(texts: list[str]) -> tuple[_Option, ...]:
    """Return the entries of a list, without a note that all of them have: ``40 - see our size table``."""
    matches = [match for text in texts if (match := _NOTE.fullmatch(text))]
    notes = {match[2] or match[3] for match in matches}
    if 1 < len(texts) == len(matches) and len(notes) == 1 and not any(map(_is_note, notes)):
        texts = [match[1] for match in matches]
    return tuple(map(_option, texts))


def _option(name: str) -> _Option:
    """Return an option by its text: its name, and the notes on its price and whether it is in stock."""
    notes: tuple[str, ...] = ()
    while (match := _NOTE.fullmatch(name)) and _is_note(match[2] or match[3]):
        name, notes = match[1], (match[2] or match[3], *notes)
    return _Option(name, notes)


def _is_note(text: str) -> bool:
    return len(text.split()) <= MAX_NOTE_WORDS and (availability_in(text) is not None or is_money(text))
