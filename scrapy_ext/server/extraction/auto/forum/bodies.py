"""Elements with the texts of the posts of a thread, on pages of any forum software.

Elements are grouped by their names (``post-body``, ``message-content``, the ``bbWrapper`` of XenForo, the ``cooked`` of
Discourse) without digits. Of the groups named like the text of a post, that with the most text is chosen; then, as long
as each of its elements contains one of another group with most of its text, the inner one. Where no group is named so,
boxes that repeat with a date each are the posts. Where no name sets the text of a post apart, its parts do
(``post_parts.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date
from scrapy_ext.server.extraction.auto.forum.post_parts import PostText, are_posts, text_of_posts, without_labels
from scrapy_ext.server.extraction.auto.page import Page, node_text
from scrapy_ext.server.extraction.auto.page.layout import Parts, class_and_id, own_boxes, step_of, way_to
from scrapy_ext.server.extraction.auto.page.text import HEADINGS
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_POSTS: Final = 500
MAX_CANDIDATES: Final = 4_000
#: Longer texts of posts are not compared further, in characters.
MAX_BODY_LENGTH: Final = 20_000
#: The share of the text of the outer group that the inner one must have: the rest is the author, dates and buttons.
MOST: Final = 0.5
#: That share, where the inner one is clearly named as the text of a post and the outer one is not.
MOST_OF_SURE: Final = 0.05
#: Least average text, in characters, of boxes that only their dates identify: lists of threads have titles alone.
SHORTEST: Final = 60
#: An element with this many texts of posts is none itself.
FEWEST_HELD: Final = 2
#: Weights of the lengths of texts, by how clearly their elements are named as the text of a post.
_PLAIN, _LIKELY, _VAGUE = 1.0, 0.7, 0.4

_VOCABULARY: Final = load_vocabulary("forums")
_POST: Final = _VOCABULARY.text("post")
_SURE_NAME, _LIKELY_NAME, _VAGUE_NAME = _VOCABULARY.patterns("sure_name", "likely_name", "vague_name")
#: Names of spans that are posts, as of old software that has no elements for paragraphs.
_WHOLE_NAME: Final = re.compile(rf"{_POST}s?(?:text)?")
#: Names of the element of one post with its author, its date and its answers.
_ONE_POST: Final = re.compile(r"(?:post|message|comment|reply|answer|response)(?:[-_]?\d+)?")
_SIGNATURE: Final = _VOCABULARY.pattern("signature_line")
_NO_BODY, _OUTSIDE = _VOCABULARY.patterns("no_body", "outside")
_WANTED: Final = _VOCABULARY.words("wanted")
_OUTSIDE_TAGS: Final = frozenset({"nav", "footer", "aside", "dialog", "header", "blockquote"})
_NO_TAGS: Final = frozenset({
    "html", "body", "a", "span", "button", "input", "textarea", "img", "meta", "link", "ul", "ol", "h1", "h2", "h3",
    "i",
})  # fmt: skip
_CELLS: Final = frozenset({"td", "div", "li"})
#: Elements of whole posts without known names and dates, how many of them there are at least, and how many groups
#: of them are compared.
_POST_TAGS: Final = frozenset({"article", "div", "li", "section", "tr"})
FEWEST_ALIKE: Final = 3
MAX_GROUPS: Final = 4
#: Elements of the parts of a post beside its text, and how many elements of a post are searched for them.
_CELLS_OF_PARTS: Final = frozenset({"p", "div", "dl", "ul", "header", "footer"})
MAX_PARTS: Final = 200
_DIGITS = re.compile(r"\d+")


def texts_of(page: Page) -> list[PostText]:
    """Return the texts of the posts, in the order of the page."""
    bodies = _named_bodies(page)
    boxes = _by_dates(page) if len(bodies) < FEWEST_HELD else []
    if not bodies and not boxes:
        boxes = _by_likeness(page)
    if len(boxes) > 1:
        found = text_of_posts(page, boxes)
    elif len(bodies) > 1 and not all(map(_is_named_text, bodies)):
        found = [text._replace(box=None) for text in text_of_posts(page, bodies)]
    else:
        found = without_labels(page, bodies) if len(bodies) > 1 else [PostText(body) for body in bodies or boxes]
    return [text for text in found if not _SIGNATURE.match(node_text(text.body, 20))][:MAX_POSTS]


def _is_named_text(node: HtmlElement) -> bool:
    return any(_worth(name) == _PLAIN for name in _names(node))


def _named_bodies(page: Page) -> list[HtmlElement]:
    """Return the elements of the texts of posts, or of whole posts, by their names."""
    lengths = _Lengths()
    groups = _without_boxes_of_several(_groups(page, lengths))
    scores = {
        name: lengths.of(nodes) * _worth(name) * (1.0 if len(nodes) > 1 else 0.4) for name, nodes in groups.items()
    }
    best = max(scores, key=lambda name: scores[name], default=None)
    return [] if best is None else _around_spans(_narrowed(groups, best, lengths))[:MAX_POSTS]


class _Lengths(dict[HtmlElement, int]):
    """Lengths of the texts of elements in characters, each read once, as an element may be of several groups."""

    def __missing__(self, node: HtmlElement) -> int:
        length = self[node] = len(node_text(node, MAX_BODY_LENGTH))
        return length

    def of(self, nodes: Iterable[HtmlElement]) -> int:
        """Return the sum of the lengths."""
        return sum(map(self.__getitem__, nodes))


def _groups(page: Page, lengths: _Lengths) -> dict[str, list[HtmlElement]]:
    """Group the elements that may contain the text of a post by their names; none inside of another of its group."""
    outside = _outside(page)
    found: dict[str, dict[HtmlElement, None]] = {}
    for node in page.named(*_WANTED)[:MAX_CANDIDATES]:
        if (node.tag in _NO_TAGS and node.tag != "span") or outside.hold(node):
            continue
        for name in _names(node):
            worth = _worth(name)
            if not worth or (node.tag == "span" and worth < _PLAIN and not _WHOLE_NAME.fullmatch(name)):
                continue
            group = found.setdefault(name, {})
            # Of nested elements of one name, the outer one is the post: it contains quotes and answers.
            if not any(ancestor in group for ancestor in node.iterancestors()):
                group[node] = None
    main = main_of(page)
    groups = {name: _inside(main, list(nodes)) for name, nodes in found.items()}
    return {name: nodes for name, nodes in groups.items() if any(map(lengths.__getitem__, nodes))}


def main_of(page: Page) -> HtmlElement | None:
    """Return the element that a page marks as its main part, where it marks one."""
    found = [node for node in page.tree.iter("main", "div", "section") if "main" in (node.tag, node.get("role"))]
    return found[0] if len(found) == 1 else None


def _inside(main: HtmlElement | None, nodes: list[HtmlElement]) -> list[HtmlElement]:
    """Return the elements that are in the main part of a page, if any is: texts beside it are about the forum.

    The first post may stand before that part. It has the same parts as the others.
    """
    if main is None:
        return nodes
    inside = [node for node in nodes if main in node.iterancestors()]
    if not inside:
        return [node for node in nodes if node is not main]
    parts = _steps_in_post(inside[0])
    before = [node for node in nodes[: nodes.index(inside[0])] if _are_alike(_steps_in_post(node), parts)]
    return [*before[-1:], *inside]


def _steps_in_post(node: HtmlElement) -> frozenset[str]:
    """Return the steps to the parts of a post that have names: of its element, or of the element around its text."""
    for box in (node, node.getparent()):
        steps = frozenset(map(step_of, box.iterchildren("*"))) if box is not None and len(box) <= MAX_PARTS else ()
        named = frozenset(step for step in steps if "." in step)
        if len(named) > 1:
            return named
    return frozenset()


def _are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether posts have most of their parts, and several, in common: the first one has other buttons."""
    common = len(first & second)
    return common > 1 and 2 * common > max(len(first), len(second))


def _without_boxes_of_several(groups: dict[str, list[HtmlElement]]) -> dict[str, list[HtmlElement]]:
    """Drop the groups whose elements contain several texts that are clearly named as those of posts."""
    sure = {node for name, nodes in groups.items() if _worth(name) == _PLAIN and len(nodes) > 1 for node in nodes}
    held = Counter(ancestor for node in sure for ancestor in node.iterancestors() if ancestor not in sure)
    found = {}
    for name, nodes in groups.items():
        inner = max((held[node] for node in nodes), default=0)
        # A post and its text may have the same name.
        if _worth(name) == _PLAIN or inner < FEWEST_HELD or inner < sum(1 for node in nodes if held[node]):
            found[name] = nodes
    return found


def _names(node: HtmlElement) -> set[str]:
    return {_DIGITS.sub("#", name)[:60] for name in class_and_id(node)[:500].split()[:15]}


def _worth(name: str) -> float:
    if _NO_BODY.search(name):
        return 0.0
    if _SURE_NAME.fullmatch(name):
        return _PLAIN
    if _LIKELY_NAME.fullmatch(name):
        return _LIKELY
    return _VAGUE if _VAGUE_NAME.fullmatch(name) else 0.0


def _outside(page: Page) -> Parts:
    def begins(node: HtmlElement) -> bool:
        named = node.tag in _OUTSIDE_TAGS or _OUTSIDE.search(page.names(node))
        # A part with the heading of the page is the page, whatever its name.
        return bool(named) and node.tag != "body" and next(node.iter("h1"), None) is None

    return Parts(begins)


def _narrowed(groups: dict[str, list[HtmlElement]], name: str, lengths: _Lengths) -> list[HtmlElement]:
    """Return the elements of a group, or of the innermost group with one element in each and most of its text."""
    nodes = groups[name]
    sure = _worth(name) == _PLAIN
    for _ in range(4):
        outer = set(nodes)
        length = lengths.of(nodes)
        apart = sum(map(_length_of_parts, nodes))
        inner = []
        for inner_name, other in groups.items():
            is_sure = _worth(inner_name) == _PLAIN
            most = MOST_OF_SURE if is_sure and not sure else MOST
            holders = Counter(holder for node in other if (holder := _holder(node, outer)) is not None)
            if len(holders) < 0.8 * len(nodes) or max(holders.values()) > 1:
                continue
            own = lengths.of(node for node in other if _holder(node, outer) is not None)
            if most * (length - apart) <= own < length:
                inner.append((own, is_sure, other))
        if not inner:
            break
        # The outermost group first: a step too far would lose text.
        _, sure, nodes = max(inner, key=lambda each: each[0])
    return nodes


def _length_of_parts(node: HtmlElement) -> int:
    """Return the length of the parts of a post that are surely not of its text: its heading, author and signature."""
    parts = [
        part
        for part in islice(node.iterdescendants("*"), MAX_PARTS)
        if part.tag in HEADINGS or (part.tag in _CELLS_OF_PARTS and _NO_BODY.search(class_and_id(part)))
    ]
    inside = {inner for part in parts for inner in part.iterdescendants("*")}
    return sum(len(node_text(part, MAX_BODY_LENGTH)) for part in parts if part not in inside)


def _around_spans(nodes: list[HtmlElement]) -> list[HtmlElement]:
    """Return the texts of posts, of those in several spans the cell around them: quotes stand between the spans."""
    spans = Counter(node.getparent() for node in nodes if node.tag == "span")
    found: dict[HtmlElement, None] = {}
    for node in nodes:
        parent = node.getparent()
        parted = node.tag == "span" and parent is not None and parent.tag in _CELLS and spans[parent] > 1
        found[parent if parted and parent is not None else node] = None
    return list(found)


def _holder(node: HtmlElement, outer: set[HtmlElement]) -> HtmlElement | None:
    return next((ancestor for ancestor in node.iterancestors() if ancestor in outer), None)


def _by_dates(page: Page) -> list[HtmlElement]:
    """Return the outermost boxes with one date each, of dates in the same kind of place, if they have more text."""
    outside = _outside(page)
    shown = (node for node, text in page.numbered_lines if len(text) <= 50 and is_mostly_date(text))
    dates = [node for node in (*page.tree.iter("time"), *shown) if not outside.hold(node)]
    by_way: dict[str, dict[HtmlElement, None]] = {}
    for node in list(dict.fromkeys(dates))[:MAX_CANDIDATES]:
        by_way.setdefault(way_to(node, 6), {})[node] = None
    best: list[HtmlElement] = []
    for nodes in by_way.values():
        if len(nodes) > max(1, len(best)):
            boxes = list(boxes_of(nodes).values())
            if sum(len(node_text(box, 300)) for box in boxes) > SHORTEST * len(boxes):
                best = boxes
    return _with_those_around(best, dates, page.order)


def _with_those_around(
    boxes: list[HtmlElement], dates: Iterable[HtmlElement], order: Mapping[HtmlElement, int]
) -> list[HtmlElement]:
    """Return the elements of posts, and those of the same markup with the posts that these answer."""
    if len({step_of(box) for box in boxes}) != 1:
        return boxes
    step, inside = step_of(boxes[0]), {ancestor for box in boxes for ancestor in box.iterancestors()}
    found = dict.fromkeys(boxes)
    for date in dates:
        box = next((each for each in date.iterancestors() if step_of(each) == step), None)
        if box is not None and box in inside:
            found[box] = None
    return sorted(found, key=order.__getitem__)


def _by_likeness(page: Page) -> list[HtmlElement]:
    """Return the elements of the same markup beside each other with the most text, if they are posts."""
    outside = _outside(page)
    found: dict[tuple[HtmlElement, str], list[HtmlElement]] = {}
    for node in page.elements[:MAX_CANDIDATES]:
        parent = node.getparent()
        if parent is not None and node.tag in _POST_TAGS and not outside.hold(node):
            found.setdefault((parent, step_of(node)), []).append(node)
    lengths = {
        key: sum(len(node_text(node, 300)) for node in nodes[:MAX_POSTS])
        for key, nodes in found.items()
        if len(nodes) >= FEWEST_ALIKE
    }
    for key in sorted(lengths, key=lengths.__getitem__, reverse=True)[:MAX_GROUPS]:
        nodes = found[key][:MAX_POSTS]
        if lengths[key] > SHORTEST * len(nodes) and are_posts(page, nodes):
            return nodes
    return []


def boxes_of(bodies: Iterable[HtmlElement]) -> dict[HtmlElement, HtmlElement]:
    """Return the box of each body: the outermost element that contains it and no other."""
    bodies = list(bodies)
    if len(bodies) == 1:
        return {body: _lone_box(body) for body in bodies}
    boxes = own_boxes(bodies)
    own = frozenset(boxes.values())
    before: set[HtmlElement] = set()
    for body, box in boxes.items():
        parent = box.getparent()
        # Below its own text, the element of a post holds the posts that answer it. Posts that are alike are a list.
        if parent is not None and parent not in before and any(map(_ONE_POST.fullmatch, class_and_id(parent).split())):
            alike = [inner for inner in parent if inner in own and step_of(inner) == step_of(box)]
            boxes[body] = parent if len(alike) == 1 else box
        before.update(body.iterancestors())
    return boxes


def elements_of(box: HtmlElement, boxes: Container[HtmlElement]) -> Iterator[HtmlElement]:
    """Yield the elements of a box without those of other boxes in it."""
    left = [box]
    while left:
        node = left.pop()
        if isinstance(node.tag, str):
            yield node
        left += [inner for inner in reversed(node) if inner not in boxes]


def _lone_box(body: HtmlElement) -> HtmlElement:
    """Return the box of the only post of a page: up to an element that is named a post."""
    for ancestor, _ in zip(body.iterancestors(), range(6), strict=False):
        if ancestor.tag == "article" or re.search(rf"(?:^|[\s_-]){_POST}(?:$|[\s_-])", class_and_id(ancestor)):
            return ancestor
    return body
