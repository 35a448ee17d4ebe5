"""Positions of the elements of a page: around each other, relative to the heading, and in the parts that most pages
have.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.page.outline import GOES_ON
from scrapy_ext.server.extraction.auto.page.sources import highest
from scrapy_ext.server.extraction.auto.page.text import HEADINGS, Found, is_wide, layout_text, node_text, shown_text
from scrapy_ext.server.extraction.auto.page.urls import parts_of, site_of
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto.page.page import Page

_DIGITS = re.compile(r"\d+")
#: Most children of an element whose names apply to each of them.
MAX_CHILDREN: Final = 12
#: Links of a list item that are read.
MAX_LINKS: Final = 5
_WHOLE_PAGE: Final = frozenset({"html", "body", "main"})


#: Paragraphs of this length, in characters, are text; a summary has no more than so many of them.
MIN_PARAGRAPH: Final = 80
SUMMARY: Final = 1
#: Names of the parts with comments.
_COMMENTS = re.compile(
    r"(?:user[-_]?)?comments?(?:[-_]?(?:list|section|area|thread|body|item|box|wrap(?:per)?|content|\d+))?|commentlist"
)


class Parts:
    """Parts of a page of one kind. Verdicts are cached for each element on the way up.

    ``begins`` decides whether such a part begins at an element. An element for which ``ends`` is true is in none,
    whatever is around it. Neither is a method of an object that has these parts: such a cycle would keep the whole page
    until the garbage collector finds it.
    """

    def __init__(
        self, begins: Callable[[HtmlElement], bool], ends: Callable[[HtmlElement], bool] | None = None
    ) -> None:
        self._begins = begins
        self._ends = ends
        self._verdicts: dict[HtmlElement, bool] = {}

    def hold(self, node: HtmlElement) -> bool:
        """Return whether an element is such a part, or inside of one."""
        passed: list[HtmlElement] = []
        verdict = False
        current: HtmlElement | None = node
        while current is not None and not (self._ends and self._ends(current)):
            known = self._verdicts.get(current)
            if known is not None:
                verdict = known
                break
            passed.append(current)
            if self._begins(current):
                verdict = True
                break
            current = current.getparent()
        self._verdicts.update(dict.fromkeys(passed, verdict))
        return verdict


def class_and_id(node: HtmlElement) -> str:
    """Return the class and the id of an element in lower case, also of a copy, which has no place in the page."""
    return f"{node.get('class', '')} {node.get('id', '')}".lower()


def step_of(node: HtmlElement) -> str:
    """Return the tag of an element and its first class without digits: equal for elements of the same markup."""
    names = (node.get("class") or "").split(None, 1)
    return f"{node.tag}.{_DIGITS.sub('', names[0])[:40]}" if names else str(node.tag)


def way_to(node: HtmlElement, steps: int) -> str:
    """Return the last steps from the root to an element: equal for elements at the same kind of place."""
    return "/".join(step_of(step) for step in islice((node, *node.iterancestors()), steps))


def heading_above(node: HtmlElement, levels: int, siblings: int) -> HtmlElement | None:
    """Return the nearest heading before an element, beside it or beside one of the ``levels`` elements around it."""
    for around in islice((node, *node.iterancestors()), levels):
        for before in islice(around.itersiblings(preceding=True), siblings):
            headings = list(before.iter(*HEADINGS))
            if headings:
                return headings[-1]
    return None


def small_boxes(node: HtmlElement, steps: int) -> list[HtmlElement]:
    """Return those of the first elements around a node that have few children, so that their names apply to it."""
    return [box for box in islice(node.iterancestors(), steps) if next(islice(box, MAX_CHILDREN, None), None) is None]


def own_boxes(nodes: Iterable[HtmlElement]) -> dict[HtmlElement, HtmlElement]:
    """Return for each of several elements the outermost element that contains it and none of the others."""
    nodes = list(nodes)
    held = Counter(ancestor for node in nodes for ancestor in node.iterancestors())
    boxes = {}
    for node in nodes:
        boxes[node] = node
        for ancestor in node.iterancestors():
            if held[ancestor] > 1 or ancestor.tag in _WHOLE_PAGE:
                break
            boxes[node] = ancestor
    return boxes


_SHOPS: Final = load_vocabulary("products")
#: Names (in ``class`` and ``id``) of parts about other things: suggestions, menus, the cart.
_ELSEWHERE = _SHOPS.pattern("elsewhere")
_ELSEWHERE_TAGS: Final = frozenset({"nav", "footer"})
_WORD = re.compile(r"[^\W_]+")
_TITLE_NAMES: Final = ("title", "product-name", "productname", "product_name")
_NO_HEADINGS: Final = frozenset({"meta", "link", "title", "input", "img"})
MAX_HEADINGS: Final = 400
#: Longest text of a heading, in characters.
MAX_HEADING: Final = 500
#: Most elements of a card of another page.
MAX_CARD: Final = 60
#: More text beside its heading, in characters, is prose rather than a teaser.
MAX_TEASER: Final = 600
#: Longest text before the heading of a card, in characters: its section, author and date.
MAX_KICKER: Final = 80
#: Shortest title of a card that is no name of a person, in characters.
MIN_CARD_TITLE: Final = 25
#: A heading belongs to a title with this share of common words: one of ten, as titles also name the site and section.
ALIKE: Final = 0.1
#: The least sum of that share and 0.5 for an ``<h1>``: other headings need nearly half of the words.
ENOUGH: Final = 0.4


def _without_buttons(heading: HtmlElement) -> str:
    """Return the text of a heading without that of the buttons at its end: ``Welder``, not ``Welder Save job``.

    Behind a comma or the like, a button has a part of the name: ``Shelf, white, 77x147 cm``.
    """
    text = shown_text(heading, MAX_HEADING)
    buttons = [node for node in heading.iter("*") if node.tag == "button" or node.get("role") == "button"]
    for button in reversed(buttons):
        if button is not heading and (words := shown_text(button, MAX_HEADING)):
            name = text.removesuffix(words).rstrip()
            text = name if name and not name.endswith(GOES_ON) else text
    return text


class Focus:
    """The heading of the main subject of a page, and the distance of the page's elements from it.

    ``names`` are other names of the subject (in the markup, in the title), the most reliable first.
    """

    def __init__(self, page: Page, *names: str | None) -> None:
        self._page = page
        # A name without letters, such as a title of "-", says nothing.
        self._names = [words for name in names if name and (words := frozenset(words_of(name)))]
        self.heading = self._find_heading()
        self.path = frozenset(self.heading.iterancestors()) if self.heading is not None else frozenset()
        is_elsewhere = Found(_ELSEWHERE)
        self.heading_text: str | None = _without_buttons(self.heading) or None if self.heading is not None else None
        self._others = Parts(
            lambda node: node.tag in _ELSEWHERE_TAGS or is_elsewhere[page.names(node)],
            ends=self.path.__contains__,
        )
        self._cards = Parts(_Cards(page, self.heading_text).begins_at, ends=self.path.__contains__)
        # Without a heading, the text of a page may have the name of a comment.
        whole = 0 if self.path else len(node_text(page.tree))
        self._comments = Parts(
            lambda node: (
                any(map(_COMMENTS.fullmatch, page.names(node).split()))
                and not (whole and 2 * len(node_text(node)) > whole)
            ),
            ends=self.path.__contains__,
        )

    def distance(self, node: HtmlElement) -> int:
        """Return the number of elements between the heading and a node: negative before it, 0 without a heading."""
        if self.heading is None:
            return 0
        order = self._page.order
        return order.get(node, 0) - order.get(self.heading, 0)

    def lines(self, before: int, after: int) -> list[tuple[HtmlElement, str]]:
        """Return the lines from so many elements before the heading to so many after it; all without a heading."""
        page = self._page
        if self.heading is None:
            return page.lines
        at, positions = page.order[self.heading], page.line_positions
        return page.lines[bisect_left(positions, at - before) : bisect_right(positions, at + after)]

    def text_begins(self, far: int) -> int:
        """Return the distance from the heading where the text has begun behind its summary; at most ``far``."""
        begun = 0
        for node, text in self.lines(0, far):
            begun += node.tag == "p" and len(text) >= MIN_PARAGRAPH
            if begun > SUMMARY:
                return self.distance(node)
        return far

    def steps_apart(self, node: HtmlElement) -> int:
        """Return how many levels the heading lies below the innermost element that contains it and ``node``."""
        if self.heading is None:
            return 0
        inside = {node, *node.iterancestors()}
        for steps, ancestor in enumerate(self.heading.iterancestors()):
            if ancestor in inside:
                return steps
        return 0

    def elsewhere(self, node: HtmlElement) -> bool:
        """Return whether a node is in a part of the page about other things. No part with the heading is one."""
        return self._others.hold(node)

    def in_card(self, node: HtmlElement) -> bool:
        """Return whether a node is in a card of another page: a small box with a heading that links there."""
        return self._cards.hold(node)

    def in_comments(self, node: HtmlElement) -> bool:
        """Return whether a node is in a comment below the content, which has an author and a date of its own."""
        return self._comments.hold(node)

    def in_aside(self, node: HtmlElement) -> bool:
        """Return whether a node is beside the content."""
        return any(each.tag == "aside" and each not in self.path for each in node.iterancestors())

    def in_header(self, node: HtmlElement) -> bool:
        """Return whether a node is in the header of the page, and the heading is not."""
        header = node if node.tag == "header" else _holder(node, frozenset({"header"}))
        return header is not None and header not in self.path and _holder(header, _OF_CONTENT) is None

    def in_list_aside(self, node: HtmlElement) -> bool:
        """Return whether a node is in a list item beside the content: other pages have authors and dates there."""
        item = self._item_around(node)
        return item is not None and self.in_aside(item)

    def in_linked_item(self, node: HtmlElement) -> bool:
        """Return whether a node is in a list item that links to another page."""
        item = self._item_around(node)
        links = islice(item.iter("a"), MAX_LINKS) if item is not None else ()
        return any(url and not self._page.is_at(url) for link in links if (url := self._page.link(link.get("href"))))

    def _item_around(self, node: HtmlElement) -> HtmlElement | None:
        items = (each for each in (node, *node.iterancestors()) if each.tag == "li" and each not in self.path)
        return next(items, None)

    def _find_heading(self) -> HtmlElement | None:
        scored: list[tuple[float, HtmlElement]] = []
        first_order = _of_content(self._page, [node for node in self._page.tree.iter("h1") if node_text(node, 500)])
        # The only <h1> of some pages is the name of the site.
        is_named = bool(first_order) and all(is_of_site(self._page, node) for node in first_order)
        others = list(self._page.tree.iter("h2", "h3"))
        titles = [node for node in self._page.named(*_TITLE_NAMES) if len(node) <= 2 and node.tag not in _NO_HEADINGS]
        others = [node for node in [*others, *titles][:MAX_HEADINGS] if not names_other_page(self._page, node)]
        for position, node in enumerate([*first_order, *others][:MAX_HEADINGS]):
            words = frozenset(words_of(node_text(node, 500)))
            likeness = max((len(words & name) / len(words | name) for name in self._names), default=0.0)
            score = likeness + (0.5 if node.tag == "h1" and not is_named else 0.0) - position / 10_000
            # A heading of another order may be a part of the title.
            is_part = len(words) > 1 and any(words <= name for name in self._names)
            if likeness > ALIKE and (score > ENOUGH or (is_part and is_named)):
                scored.append((score, node))
        if scored:
            return highest(scored)
        # A lone <h1> is the heading of the page, whatever the title is.
        return first_order[0] if len(first_order) == 1 and not is_named else None


class _Cards:
    """Cards of other pages: small boxes with a heading that links there."""

    def __init__(self, page: Page, heading_text: str | None) -> None:
        self._page = page
        self._heading_text = heading_text

    def begins_at(self, box: HtmlElement) -> bool:
        outline = self._page.outline
        at = outline.order.get(box)
        if at is None or outline.ends[at] - at > MAX_CARD:
            return False
        heading = next(filter(self._names_other_page, box.iter("h2", "h3", "h4", "h5")), None)
        return heading is not None and _is_teaser(box, heading)

    def _names_other_page(self, heading: HtmlElement) -> bool:
        text, own = node_text(heading, 500), self._heading_text
        # Boxes about authors have their names as headings, and posts of a thread its title.
        is_name = len(text) < MIN_CARD_TITLE and not is_wide(text[:1] or " ")
        return not is_name and not (own and own in text) and names_other_page(self._page, heading)


def names_other_page(page: Page, heading: HtmlElement) -> bool:
    """Return whether a heading is the name of another page, as it is a link there."""
    text = node_text(heading, 500)
    # A link to a source is a part of the heading of a section.
    inner = [link for link in heading.iter("a") if 2 * len(node_text(link, 500)) > len(text)]
    links = (*inner, *islice(heading.iterancestors("a"), 1))
    urls = [url for link in links if (url := page.link(link.get("href")))]
    return bool(urls) and not any(map(page.is_at, urls))


def _is_teaser(box: HtmlElement, heading: HtmlElement) -> bool:
    """Return whether a box has its heading first, and no more text than a teaser below it."""
    title = node_text(heading, 500)
    text = node_text(box, MAX_TEASER + len(title) + 1)
    return len(text) - len(title) <= MAX_TEASER and text[: MAX_KICKER + len(title)].find(title) >= 0


#: Names of the logo of a site, as whole words.
_LOGO = load_vocabulary("page_parts").pattern("logo")
_OF_CONTENT: Final = frozenset({"article", "main"})


def _of_content(page: Page, headings: list[HtmlElement]) -> list[HtmlElement]:
    """Return the headings without the name of the site; all where there is nothing else.

    Those in the header of the page are names of the site where others stand in its content.
    """
    found = [node for node in headings if not is_of_site(page, node)] or headings
    if len(found) > 1 and any(_holder(node, _OF_CONTENT) is not None for node in found):
        found = [node for node in found if not _is_in_header(node)] or found
    return found


def is_of_site(page: Page, heading: HtmlElement) -> bool:
    """Return whether a heading is the name of the site: a link to its start, or named so. On that page it is not."""
    if _is_start(page.url):
        return False
    links = [*heading.iterancestors("a"), *heading.iter("a")]
    if any(leads_to_start(page, link) and node_text(link, 500) == node_text(heading, 500) for link in links):
        return True
    return any(_LOGO.search(page.names(box)) for box in (heading, *small_boxes(heading, 1)))


def leads_to_start(page: Page, link: HtmlElement) -> bool:
    """Return whether a link leads to the start page of the site."""
    url = page.link(link.get("href"))
    return url is not None and _is_start(url) and site_of(url) == site_of(page.url)


def _is_start(url: str) -> bool:
    parts = parts_of(url)
    return parts.path in ("", "/") and not parts.query


def _is_in_header(node: HtmlElement) -> bool:
    header = _holder(node, frozenset({"header"}))
    return header is not None and _holder(header, _OF_CONTENT) is None


def _holder(node: HtmlElement, tags: frozenset[str]) -> HtmlElement | None:
    return next((ancestor for ancestor in node.iterancestors() if ancestor.tag in tags), None)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case and without accents, as URLs have them."""
    text = text[:500]
    if not text.isascii():
        # URLs have no accents.
        text = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    return [word.lower() for word in _WORD.findall(text)]


#: The share of the page's text that a ``<main>`` around the content has at least: menus and footer may be longer than a
#: short text, and some pages have an empty ``<main>``.
SMALLEST_MAIN: Final = 0.2

_LANDMARKS: Final = frozenset({"nav", "footer", "aside", "form", "button", "select", "iframe", "dialog"})
_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "dialog", "search"})
_BOXES: Final = frozenset({"div", "section", "ul", "ol", "aside", "header"})
_LISTS: Final = load_vocabulary("lists")
_NAMED = _LISTS.pattern("landmark")
_SPACE = re.compile(r"\s+")


def between_landmarks(page: Page) -> str:
    """Return the text of a page without that of its landmarks (menus, header, footer and the like)."""
    original = _main(page)
    node = copy.deepcopy(original)
    for part in list(node.iterdescendants("*")):
        if part.getparent() is not None and _is_landmark(part, in_body=original.tag == "body"):
            part.drop_tree()
    return layout_text(node)


def _main(page: Page) -> HtmlElement:
    body = page.tree.find("body")
    body = page.tree if body is None else body
    mains = page.tree.xpath("//main | //*[@role='main']")
    main = max(mains, key=_length, default=body)
    return main if _length(main) >= SMALLEST_MAIN * _length(body) else body


def _is_landmark(node: HtmlElement, *, in_body: bool) -> bool:
    if node.tag in _LANDMARKS or (in_body and node.tag == "header"):
        return True
    if node.get("role") in _ROLES or node.get("aria-hidden") == "true":
        return True
    return node.tag in _BOXES and bool(_NAMED.search(class_and_id(node)))


def _length(node: HtmlElement) -> int:
    return len(_SPACE.sub("", "".join(node.itertext())))
