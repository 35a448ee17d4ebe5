"""Parts of a product's page about other subjects than the product: answers to questions, reviews, delivery, the shop.

Such a part stands below its title: a heading, the summary of a part that opens, a term, a tab, a control that folds its
part in and out, or a line that is a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page import Focus, Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import Parts
from scrapy_ext.server.extraction.auto.page.questions import is_question
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: Longest title, longest question, and shortest question, in characters.
MAX_TITLE_LENGTH: Final = 60
MAX_QUESTION_LENGTH: Final = 200
SHORTEST_QUESTION: Final = 4
#: Titles that are read, elements behind one, and elements around one that hold nothing else.
MAX_TITLES: Final = 600
MAX_SIBLINGS: Final = 60
MOST_WRAPPERS: Final = 3
#: Elements inside of one behind a title in which the next title is searched.
MAX_INSIDE: Final = 300

_VOCABULARY: Final = load_vocabulary("products")
_SUBJECT, _ANSWERS, _MIXED, _OWN_QUESTION, _STATEMENT = _VOCABULARY.patterns(
    "no_description_heading", "answers_part", "mixed_heading", "own_question", "bold_statement", flags=re.IGNORECASE
)
_CONTROLS: Final = frozenset({"button", "label", "a"})
_TITLES: Final = HEADINGS | {"summary", "dt", "legend"}
_LINES: Final = frozenset({"div", "span", "b", "strong", "li"})
_BOLD: Final = frozenset({"b", "strong"})
#: Elements in which a title is one of several side by side.
_TABS: Final = frozenset({"li", "ul", "ol", "nav"})
_FOLDING: Final = frozenset({"aria-expanded", "aria-controls", "data-toggle", "data-bs-toggle", "data-target"})


class OtherSubjects(Parts):
    """The parts of a product's page about other subjects. The element of a title is in none of its own."""

    def __init__(self, page: Page, focus: Focus) -> None:
        known = frozenset(_parts(page, focus))
        super().__init__(
            lambda node: node in known or _ANSWERS.search(page.names(node)) is not None or _is_answered(node),
            ends=focus.path.__contains__,
        )


class _Title(NamedTuple):
    """A title, and its order: 1 to 6 for headings, more for others."""

    node: HtmlElement
    order: int


def _parts(page: Page, focus: Focus) -> Iterator[HtmlElement]:
    for title in islice(_titles(page), MAX_TITLES):
        if title.node is not focus.heading and title.node not in focus.path and _is_other(focus, title.node):
            yield from _below(title, focus)
    for node, panel in _tabs(page):
        if panel not in focus.path and _is_other(focus, node):
            yield panel


def _titles(page: Page) -> Iterator[_Title]:
    for node in page.tree.iter(*_TITLES):
        yield _Title(node, int(node.tag[1]) if node.tag in HEADINGS else 7)
    for node in page.by_role.get("heading", ()):
        level = node.get("aria-level", "")
        yield _Title(node, int(level) if level in {"1", "2", "3", "4", "5", "6"} else 2)
    for node in page.tree.iter("button", "label", "a"):
        if _folds(node):
            yield _Title(node, 7)
    for node, text in page.lines:
        is_line = node.tag in _LINES or (node.tag == "p" and _is_bold(node))
        if is_line and ((is_question(text) and len(text) >= SHORTEST_QUESTION) or node.tag == "p"):
            yield _Title(node, 7)


def _folds(node: HtmlElement) -> bool:
    """Return whether a control may fold the part behind it in and out: no tab, and no link to another place."""
    if node.get("role") == "tab" or any(each.tag in _TABS for each in islice(node.iterancestors(), 1)):
        return False
    if node.tag == "a" and node.get("href", "#") not in {"", "#"}:
        return not _FOLDING.isdisjoint(node.attrib)
    if _FOLDING.isdisjoint(node.attrib):
        text = node_text(node, MAX_QUESTION_LENGTH + 1)
        # A button for those who have questions is above anything.
        return is_question(text) and len(text) >= 2 * SHORTEST_QUESTION and _SUBJECT.search(text) is None
    return True


def _is_bold(node: HtmlElement) -> bool:
    """Return whether a paragraph is nothing but bold letters."""
    first = next(iter(node), None)
    return (
        first is not None
        and first.tag in _BOLD
        and len(node) == 1
        and not (node.text or "").strip()
        and not (first.tail or "").strip(" :")
    )


def _is_other(focus: Focus, title: HtmlElement) -> bool:
    """Return whether a title is a question or names another subject, apart from the name of the product in it.

    A description may begin with a question of its own, and stand in one part with something else.
    """
    text = node_text(title, MAX_QUESTION_LENGTH + 1)
    if len(text) > MAX_QUESTION_LENGTH:
        return False
    name = focus.heading_text or ""
    if name:
        text = text.replace(name, " ")
    subject = _SUBJECT.search(text.strip()) if len(text) <= MAX_TITLE_LENGTH else None
    if is_question(text) and len(text) >= SHORTEST_QUESTION:
        return subject is not None or _OWN_QUESTION.search(text.strip()) is None
    return (
        subject is not None
        and _MIXED.search(text.strip()) is None
        # A box for shipping, a book of reviews.
        and subject.group().casefold() not in name.casefold()
        and not (title.tag in {"p", *_BOLD} and _STATEMENT.search(text))
    )


def _below(title: _Title, focus: Focus) -> Iterator[HtmlElement]:
    """Yield the elements behind a title, up to the next title of the same order."""
    box = title.node
    for around in islice(box.iterancestors(), MOST_WRAPPERS):
        if box.getnext() is not None or len(around) > 1 or around in focus.path or around.tag in _TABS:
            break
        box = around
    for behind in islice(box.itersiblings(), MAX_SIBLINGS):
        if behind in focus.path or (isinstance(behind.tag, str) and _has_title(behind, title)):
            break
        yield behind


def _has_title(part: HtmlElement, title: _Title) -> bool:
    """Return whether a part is or begins another title of the same order as one before it, or of a higher one."""
    ending = [f"h{order}" for order in range(1, min(title.order, 6) + 1)]
    if title.order > len(ending) and title.node.tag not in HEADINGS:
        if part.tag == title.node.tag and part.get("class") == title.node.get("class") and title.node.tag != "div":
            return part.tag != "p" or _is_bold(part)
        ending.append("summary")
    return next(islice(part.iter(*ending), 1), None) is not None


def _tabs(page: Page) -> Iterator[tuple[HtmlElement, HtmlElement]]:
    """Yield the tabs with their panels."""
    by_id: dict[str, HtmlElement] = {}
    for position in page.with_attribute.get("id", ()):
        node = page.elements[position]
        by_id.setdefault(node.get("id", ""), node)
    for node in page.by_role.get("tab", ()):
        panel = by_id.get(node.get("aria-controls") or node.get("href", "")[1:])
        if panel is not None:
            yield node, panel
    for node in page.tree.iter("a"):
        href = node.get("href", "")
        if len(href) > 1 and href[0] == "#" and any(each.tag == "li" for each in islice(node.iterancestors(), 2)):
            panel = by_id.get(href[1:])
            if panel is not None:
                yield node, panel


def _is_answered(node: HtmlElement) -> bool:
    """Return whether a paragraph begins with a question in bold letters, before its answer."""
    if node.tag != "p" or (node.text or "").strip():
        return False
    first = next(iter(node), None)
    if first is None or first.tag not in _BOLD:
        return False
    text = node_text(first, MAX_QUESTION_LENGTH + 1)
    return SHORTEST_QUESTION <= len(text) <= MAX_QUESTION_LENGTH and is_question(text)
