"""Choices of a product by links, buttons or images side by side, such as swatches of colours: names of their options.

A group of elements that are alike is one where it has a name such as "swatches", or stands below a label of sizes or
colours.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.urls import parts_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Elements behind the heading that are read, and options of a group.
AFTER_HEADING: Final = 400
MAX_OPTIONS: Final = 40
#: Elements inside of an option, and the longest name of one, in characters.
MAX_OPTION: Final = 12
MAX_NAME_LENGTH: Final = 40
MAX_LABEL_LENGTH: Final = 60
#: Lines before a group that may be its label, and elements between the label and the group.
MAX_LINES: Final = 3
MAX_DISTANCE: Final = 4
#: Elements around a group whose names are those of the group, and elements beside the options in one.
MAX_AROUND: Final = 2
BESIDE: Final = 2

_VOCABULARY: Final = load_vocabulary("products")
_SIZE, _COLOR, _NO_VARIANT = _VOCABULARY.patterns(
    "size_choice", "color_choice", "no_variant_choice", flags=re.IGNORECASE
)
_NO_OPTION = _VOCABULARY.pattern("no_option", re.IGNORECASE)
_CHOICE_NAME, _OTHER_PART = _VOCABULARY.patterns("choice_names", "no_swatch_part")
_CONTROLS: Final = frozenset({"a", "button", "img"})
_ROLES: Final = frozenset({"radio", "button", "option"})
_FORMS: Final = frozenset({"input", "select", "textarea", "h1", "h2", "h3", "p", "table"})
_LABEL_END: Final = " :：*-–—"


def swatches_on(page: Page, focus: Focus, is_of_product: Callable[[HtmlElement], bool]) -> Iterator[frozenset[str]]:
    """Yield the names of the options of each group; an option without one has its place as a name."""
    if focus.heading is None:
        return
    begin = page.order[focus.heading] + 1
    for node in page.elements[begin : begin + AFTER_HEADING]:
        # Buttons to order and the like stand beside options, and may look as they do.
        options = [option for option in _options(node) if not _NO_OPTION.search(_name(option))]
        if len(options) < 2:
            continue
        # Options that link to other pages are entries of a list of these, unless they are swatches.
        group = node.getparent()
        around = node if group is None or group in focus.path else group
        if _is_choice(page, focus, options) and is_of_product(around):
            yield frozenset(_name(option) or f"#{place}" for place, option in enumerate(options))


def _options(first: HtmlElement) -> list[HtmlElement]:
    """Return the elements side by side that are options like the first one; none where it is not the first."""
    before = first.getprevious()
    if not _is_option(first) or (before is not None and before.tag == first.tag and _is_option(before)):
        return []
    behind = takewhile(lambda each: each.tag == first.tag and _is_option(each), first.itersiblings())
    return [first, *islice(behind, MAX_OPTIONS)]


def _is_option(box: HtmlElement) -> bool:
    inside = list(islice(box.iter("*"), MAX_OPTION + 1))
    is_small = len(inside) <= MAX_OPTION and not any(part.tag in _FORMS for part in inside)
    has_control = any(part.tag in _CONTROLS or part.get("role") in _ROLES for part in inside)
    return is_small and (has_control or _CHOICE_NAME.search((box.get("class") or "").lower()) is not None)


def _name(option: HtmlElement) -> str:
    if text := node_text(option, MAX_NAME_LENGTH + 1):
        return text
    texts = (part.get(name) for part in islice(option.iter("*"), MAX_OPTION) for name in ("alt", "title", "aria-label"))
    return next((one_line(text) for text in texts if text), "")


def _is_choice(page: Page, focus: Focus, options: list[HtmlElement]) -> bool:
    first = options[0]
    # The names of an element around are those of the options where it holds little else.
    own = takewhile(lambda part: part not in focus.path and len(part) <= len(options) + BESIDE, first.iterancestors())
    names = " ".join(page.names(part) for part in (first, *islice(own, MAX_AROUND)))
    label = _label(page, first)
    if any(_NO_VARIANT.search(text) or _OTHER_PART.search(text) for text in (names, label)):
        return False
    if _are_other_pages(page, focus, options):
        return False
    if any(len(_name(option)) > MAX_NAME_LENGTH for option in options):
        return False
    of_label = label.partition(":")[0].strip(_LABEL_END)
    return any(each.fullmatch(of_label) for each in (_SIZE, _COLOR)) or _CHOICE_NAME.search(names) is not None


def _are_other_pages(page: Page, focus: Focus, options: list[HtmlElement]) -> bool:
    """Return whether options lead to pages of other products. Those with the name of the product in their path, or the
    path of the page, are of the product: ``/oak-chair-red``.
    """
    own = parts_of(page.url).path.rpartition(".html")[0] or parts_of(page.url).path.rstrip("/")
    name = "-".join(re.findall(r"\w+", (focus.heading_text or "").lower()))
    links = [next(islice(option.iter("a"), 1), None) for option in options]
    paths = [parts_of(page.link(link.get("href")) or "").path for link in links if link is not None]
    others = [path for path in paths if not path.startswith(own) and not (name and name in path.lower())]
    return bool(others) and len(others) == len(paths) >= len(options) - 1


def _label(page: Page, first: HtmlElement) -> str:
    """Return what is before the first option: the text right before it, or a line without a control behind it."""
    parent = first.getparent()
    around = (first, *(() if parent is None or parent.getprevious() is not None else (parent,)))
    stated = next((text for each in around if (text := _text_before(each))), "")
    if stated or (parent is not None and (stated := one_line(parent.get("aria-label")))):
        return stated[:MAX_LABEL_LENGTH]
    outline, at = page.outline, page.order[first]
    behind = bisect_left(page.line_positions, at)
    for line, text in reversed(page.lines[max(0, behind - MAX_LINES) : behind]):
        begin = page.order[line]
        if outline.ends[begin] <= at:
            is_near = at - begin <= MAX_DISTANCE and _FORMS.isdisjoint(outline.tags[outline.ends[begin] : at])
            return text if is_near and len(text) <= MAX_LABEL_LENGTH else ""
    return ""


def _text_before(node: HtmlElement) -> str:
    previous, parent = node.getprevious(), node.getparent()
    return one_line(previous.tail if previous is not None else parent.text if parent is not None else "")
