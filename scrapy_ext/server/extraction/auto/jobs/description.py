"""Description and requirements of a job, and the part of its page with most of the text, where nothing names it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.articles.article import article_body, body_html
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.clean_html import cleaned, html_of, stated_html
from scrapy_ext.server.extraction.auto.page.clean_html import text_of as clean_text
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.auto.page.text import MAX_VALUE_LENGTH, Found
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

#: The share of the weight of an element that a child has to have to be followed: with less, the text is in several.
MOST_OF_WEIGHT: Final = 0.7
#: Shorter texts, in characters, are rather labels than prose, and count by this much, as menus have many.
PROSE: Final = 25
OF_LABELS: Final = 0.2
#: The share of the text that the part with the heading may have to be dropped with it: more is the description itself.
OF_HEADING: Final = 0.35

_VOCABULARY: Final = load_vocabulary("jobs")
_OTHER_PART: Final = _VOCABULARY.pattern("other_part")
_CONTROL_TEXT: Final = _VOCABULARY.pattern("control_text", re.IGNORECASE)
_OTHER_TAGS: Final = frozenset({
    "nav", "footer", "aside", "button", "select", "textarea", "dialog", "iframe", "input", "noscript", "template",
    "label",
})  # fmt: skip
_OTHER_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "dialog", "alertdialog", "search", "menu"})
#: Elements around whole pages.
_WHOLES: Final = frozenset({"html", "body", "main", "article"})
#: Elements that are not entered: their siblings belong to the text as well.
_TEXT_TAGS: Final = frozenset({"ul", "ol", "p", "dl", "li", "span", "font", "b", "strong"})


class TextPart:
    """The texts of a page by weight.

    The weight of an element is the length of its texts without those of links, menus, forms, dialogues and the like;
    short texts, which are labels, count little. From the body down, the child with most of the weight is followed until
    none has.
    """

    def __init__(self, page: Page, focus: Focus) -> None:
        self._page = page
        self._outline = page.outline
        self._focus = focus
        self._path = {page.order[node] for node in focus.path}
        self._is_named_other = Found(_OTHER_PART)

    def is_other(self, node: HtmlElement) -> bool:
        """Return whether a part about other things begins at an element."""
        return self._is_other(self._page.order[node])

    def _is_other(self, position: int) -> bool:
        tag, attributes = self._outline.tags[position], self._outline.attributes[position]
        if tag in _WHOLES or position in self._path:
            return False
        if tag in _OTHER_TAGS or attributes.get("role") in _OTHER_ROLES or position in self._page.hidden:
            return True
        names = self._page.all_names[position]
        return bool(names) and self._is_named_other[names]

    @cached_property
    def _weights(self) -> list[float]:
        """The weights by position."""
        tags, texts, tails, parents = (
            self._outline.tags, self._outline.texts, self._outline.tails, self._outline.parents,
        )  # fmt: skip
        weights = [0.0] * len(tags)
        for position in range(len(tags) - 1, -1, -1):
            weight = weights[position] + _weight(texts[position])
            if weight and self._is_other(position):
                weight = 0.0
            elif tags[position] == "a":
                weight *= OF_LABELS
            weights[position] = weight
            if position:
                weights[parents[position]] += weight + _weight(tails[position])
        return weights

    def weight(self, node: HtmlElement) -> float:
        return self._weights[self._page.order[node]]

    def find(self) -> HtmlElement | None:
        """Return the element with most of the text; None for a page without any."""
        outline, weights = self._outline, self._weights
        body = self._page.tree.find("body")
        position = None if body is None else self._page.order[body]
        while position is not None and weights[position] > 0:
            best = max(outline.children(position), key=weights.__getitem__, default=None)
            if best is None or outline.tags[best] in _TEXT_TAGS or weights[best] < MOST_OF_WEIGHT * weights[position]:
                return outline.nodes[position]
            position = best
        return None

    def pruned(self, node: HtmlElement) -> HtmlElement:
        """Return a copy of an element without the heading of the page, and without parts about other things."""
        twin = copy.deepcopy(node)
        twin.tail = None
        dropped = [
            theirs
            for ours, theirs in zip(node.iter(), twin.iter(), strict=True)
            if ours is not node and isinstance(ours.tag, str) and self._is_dropped(ours, node)
        ]
        for part in dropped:
            if part.getparent() is not None:
                part.drop_tree()
        return twin

    def _is_dropped(self, part: HtmlElement, whole: HtmlElement) -> bool:
        if part is self._focus.heading:
            return True
        if part in self._focus.path:
            return self.weight(part) <= OF_HEADING * self.weight(whole)
        if part.tag == "a" and len(part) <= 1:
            return _CONTROL_TEXT.fullmatch(" ".join(part.itertext()).strip()[:60]) is not None
        return self.is_other(part)


def _weight(text: str | None) -> float:
    length = len(text.strip()) if text else 0
    return length if length >= PROSE else OF_LABELS * length


# ── description and requirements of a job ──


#: Headings of the requirements for candidates.
_REQUIREMENTS = _VOCABULARY.caseless("requirements")
#: Shortest description, in characters.
MIN_LENGTH: Final = 120
MAX_NODES: Final = 60
MAX_REQUIREMENTS: Final = 50
MAX_REQUIREMENT_LENGTH: Final = 1_000
MAX_HEADINGS: Final = 2_000
MAX_HEADING_LENGTH: Final = 60

#: Longer pages have the text that an article would have: the parts of so many elements are not weighed.
MAX_ELEMENTS: Final = 50_000
MAX_LINES: Final = 20_000
#: Parts with more elements are no description: cleaning them takes time by the square of their number.
MAX_CLEANED: Final = 4_000
LABEL, NAMED, BELOW, MOST_TEXT = "label", "named part", "part below a heading", "part with the most text"
#: The share of the greatest weight of the parts that one of each source has to have to be taken before the others.
_LEAST_SHARES: Final = {LABEL: 0.3, NAMED: 0.47, BELOW: 0.3, MOST_TEXT: 0.0}
#: The share of the weight of a named part that one inside of it has to be taken instead.
NEARLY_ALL: Final = 0.7
#: The text below a heading is searched so many steps up from it, and has at least this weight.
MAX_STEPS: Final = 6
LEAST_BELOW: Final = 300
_DESCRIPTION_HEADING: Final = _VOCABULARY.caseless("description_heading")
_DESCRIPTION_LABEL: Final = _VOCABULARY.pattern("description_label", re.IGNORECASE)
_DESCRIPTION_NAMES: Final = _VOCABULARY.words("description_names")
_NO_DESCRIPTION = _VOCABULARY.pattern("no_description")
_NO_TAGS: Final = frozenset({"meta", "a", "button", "form"})
_INLINE_TAGS: Final = frozenset({"p", "span", "strong", "b", "font", "a", "em", "i", "u"})
_HEADING_TAGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "strong", "b", "dt", "summary", "p")


class JobDescription(NamedTuple):
    """A description as text and as clean HTML, its source, and the part of the page that it is from."""

    text: str | None
    html: str | None
    source: str
    node: HtmlElement | None = None


def description_of(page: Page, job: Thing | None, focus: Focus, headline: str | None) -> JobDescription:
    """Return the description of structured data, else of the part named or labelled so, else the main text.

    A part that has little of the text of the page is named so for another reason, as an introduction is.
    """
    stated = job.text("description", "responsibilities") if job else None
    if job is not None and stated and len(stated) >= MIN_LENGTH:
        return JobDescription(stated, stated_html(job, stated, page.base_url), origin(job, "description"))
    texts = TextPart(page, focus)
    parts = [(source, node) for source, node in _parts(page, focus, texts) if node is not None]
    most = max((texts.weight(node) for _, node in parts), default=0.0)
    for source, node in sorted(parts, key=lambda part: texts.weight(part[1]) < _LEAST_SHARES[part[0]] * most):
        if next(islice(node.iter(), MAX_CLEANED, None), None) is not None:
            continue
        part = texts.pruned(node)
        if source == BELOW:
            _drop_heading(part)
        clean = cleaned(part, page.base_url)
        text = clean_text(clean) if clean is not None else ""
        if clean is not None and len(text) >= MIN_LENGTH:
            return JobDescription(text, html_of(clean), source, node)
    body = article_body(page, focus, headline)
    if job is not None and stated and len(body.text) < max(MIN_LENGTH, len(stated)):
        # The page has only a heading, a button or the message that it loads.
        return JobDescription(stated, stated_html(job, stated, page.base_url), origin(job, "description"))
    return JobDescription(body.text or None, body_html(page, body), "main text", body.node)


def _parts(page: Page, focus: Focus, texts: TextPart) -> Iterator[tuple[str, HtmlElement | None]]:
    yield LABEL, _labelled(page)
    yield NAMED, _named(page, focus, texts)
    yield BELOW, _below_heading(page, focus, texts)
    if len(page.elements) <= MAX_ELEMENTS:
        yield MOST_TEXT, texts.find()


def _labelled(page: Page) -> HtmlElement | None:
    """Return the longest value of a label for the description, in a table or list."""
    found = [
        pair.node for pair in page.labelled.of(_DESCRIPTION_LABEL) if len(pair.value) >= MIN_LENGTH and pair.listed
    ]
    return max(found[:MAX_NODES], key=lambda node: len(node_text(node)), default=None)


def _below_heading(page: Page, focus: Focus, texts: TextPart) -> HtmlElement | None:
    """Return the smallest part with a line that announces the description, and with the text of one."""
    for node, text in page.lines[:MAX_LINES]:
        if len(text) > MAX_HEADING_LENGTH or not _DESCRIPTION_HEADING.fullmatch(text) or node.tag in _NO_TAGS:
            continue
        for part in islice(node.iterancestors(), MAX_STEPS):
            if (
                (part in focus.path and focus.distance(node) < 0)
                or part.tag in {"body", "html"}
                or texts.is_other(part)
            ):
                break
            if texts.weight(part) >= LEAST_BELOW and part.tag not in _INLINE_TAGS:
                return part
    return None


def _drop_heading(part: HtmlElement) -> None:
    for node in islice(part.iter("*"), 1, MAX_STEPS + 1):
        if _DESCRIPTION_HEADING.fullmatch(node_text(node, MAX_HEADING_LENGTH)):
            node.drop_tree()
            return


def _named(page: Page, focus: Focus, texts: TextPart) -> HtmlElement | None:
    """Return the named part with the most text that is not around the heading, or one inside with nearly all of it."""
    found: list[tuple[float, HtmlElement]] = []
    for node in page.named(*_DESCRIPTION_NAMES)[:MAX_NODES]:
        if node in focus.path or node.tag in _NO_TAGS or _NO_DESCRIPTION.search(page.names(node)):
            continue
        weight = texts.weight(node)
        if MIN_LENGTH <= weight < MAX_VALUE_LENGTH and not focus.elsewhere(node):
            found.append((weight * (4 if node.get("itemprop") == "description" else 1), node))
    most, best = max(found, key=lambda each: each[0], default=(0.0, None))
    # Later elements of the page that are inside of the best are inner ones.
    for weight, node in found:
        if weight >= NEARLY_ALL * most and best in node.iterancestors():
            best = node
    return best


def requirements_of(page: Page, job: Thing | None, focus: Focus) -> list[str] | None:
    """Return the requirements: of structured data, else the items of a list below a heading that announces them."""
    names = ("qualifications", "skills", "experienceRequirements", "educationRequirements")
    stated = [line for text in (job.texts(*names) if job else ()) for line in _points(text)]
    if stated:
        page.sources.note("requirements", origin(job, *names))
        return list(dict.fromkeys(stated))[:MAX_REQUIREMENTS]
    for heading in _headings(page):
        if focus.elsewhere(heading):
            continue
        items = _list_below(heading)
        points = [text for item in items if (text := node_text(item, MAX_REQUIREMENT_LENGTH))]
        if points:
            rule = f"list below {node_text(heading, MAX_HEADING_LENGTH)!r}"
            page.sources.note("requirements", rule, items[0].getparent())
            return points[:MAX_REQUIREMENTS]
    return None


def _points(text: str) -> Iterator[str]:
    for line in text.splitlines():
        point = one_line(line).lstrip("-•*· ")
        # Constants and lone numbers (months of experience) mean nothing to a reader.
        if len(point) > 3 and not point.isdigit():
            yield point[:MAX_REQUIREMENT_LENGTH]


def _headings(page: Page) -> Iterator[HtmlElement]:
    for node in islice(page.tree.iter(*_HEADING_TAGS), MAX_HEADINGS):
        text = node_text(node, MAX_HEADING_LENGTH + 1)
        if 3 < len(text) <= MAX_HEADING_LENGTH and _REQUIREMENTS.fullmatch(text):
            yield node


def _list_below(heading: HtmlElement) -> list[HtmlElement]:
    """Return the items of the list that follows a heading before any other text does."""
    node: HtmlElement | None = heading
    for _ in range(3):
        if node is None:
            return []
        following = node.getnext()
        if following is not None:
            found = following if following.tag in {"ul", "ol"} else next(following.iter("ul", "ol"), None)
            return [item for item in found if item.tag == "li"] if found is not None else []
        node = node.getparent()
    return []
