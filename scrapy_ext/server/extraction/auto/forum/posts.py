"""Posts of a thread as its page shows them.

The name of an author stands at the same kind of place in each post of a thread. So all short texts that may be one are
collected with their kind (an attribute for it, an element named so, a link to a profile, the text after "by") and their
place; the place that most posts have counts, and in a post without it the next best.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import chain, islice
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from scrapy_ext.compatibility.python import datetime_of_iso
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date, read
from scrapy_ext.server.extraction.auto.forum.bodies import boxes_of, elements_of, texts_of
from scrapy_ext.server.extraction.auto.forum.post_parts import PostText, names_by_place
from scrapy_ext.server.extraction.auto.page import Page, node_text, one_line
from scrapy_ext.server.extraction.auto.page.layout import class_and_id, step_of
from scrapy_ext.server.extraction.auto.page.line_breaks import remove_line
from scrapy_ext.server.extraction.auto.page.text import layout_text, lines, whole_number
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_NAME_LENGTH: Final = 60
#: A name is searched in so many elements of a post, without those of its text.
MAX_AUTHOR_ELEMENTS: Final = 250
#: The author of the only post of a page is also searched in so many elements before it.
MAX_BEFORE: Final = 200
#: An element with more others in it is not a name but a part with one.
MAX_INSIDE: Final = 5
#: Fewer posts may well have one author.
SEVERAL: Final = 4

_VOCABULARY: Final = load_vocabulary("forums")
_ATTRIBUTES: Final = _VOCABULARY.words("author_attributes")
_SURE, _LIKELY, _PROFILE = _VOCABULARY.patterns("author_name", "author_part", "profile_address")
_NOT_OF_AUTHOR, _NO_AUTHOR, _EDITED = _VOCABULARY.patterns("not_of_author", "no_author", "edited", flags=re.IGNORECASE)
_BY: Final = _VOCABULARY.pattern("by_author", re.IGNORECASE)
_NAME_TAGS: Final = frozenset({"a", "span", "b", "strong", "div", "p", "dt", "h3", "h4", "h5", "h6", "cite", "li", "i"})
#: Weights of the kinds of places.
_WEIGHTS: Final = {
    "attribute": 1.3, "stated": 1.2, "named link": 1.15, "named": 1.0, "profile": 0.9, "by": 0.7, "part": 0.6,
}  # fmt: skip


class _Place(NamedTuple):
    kind: str
    way: str


def authors_of(page: Page, boxes: dict[HtmlElement, HtmlElement]) -> dict[HtmlElement, str]:
    """Return the names of the authors of posts by the bodies of these, as far as the page shows them."""
    others = frozenset(boxes.values())
    found = {body: _names_in(_around(box, body, others), page) for body, box in boxes.items()}
    if len(boxes) == 1:
        body = next(iter(boxes))
        at = page.order.get(body, 0)
        if not found[body]:
            found[body] = _names_in(page.elements[max(0, at - MAX_BEFORE) : at], page)
    ranks = _ranks(list(found.values()), len(boxes))
    names = {}
    for body, by_place in found.items():
        best = max(by_place, key=lambda place: ranks[place], default=None)
        if best is not None:
            names[body] = by_place[best]
    return names


def _around(box: HtmlElement, body: HtmlElement, boxes: frozenset[HtmlElement]) -> Iterator[HtmlElement]:
    """Yield the elements of a post without those of its text and of other posts in it."""
    inside = {*body.iter("*"), *body.iterancestors()} if body is not box else set()
    return islice((node for node in elements_of(box, boxes) if node not in inside), MAX_AUTHOR_ELEMENTS)


def _ranks(posts: list[dict[_Place, str]], number: int) -> dict[_Place, float]:
    values: dict[_Place, list[str]] = defaultdict(list)
    for by_place in posts:
        for place, name in by_place.items():
            values[place].append(name)
    ranks = {}
    for place, names in values.items():
        # The same words in every post are a rank or a label.
        alike = len(names) >= SEVERAL and len(set(names)) == 1
        ranks[place] = _WEIGHTS[place.kind] * len(names) / number * (0.5 if alike else 1.0)
    return ranks


def _names_in(nodes: Iterator[HtmlElement] | list[HtmlElement], page: Page) -> dict[_Place, str]:
    """Return the first name at each place."""
    found: dict[_Place, str] = {}
    for node in nodes:
        for kind, text in _candidates(node, page):
            name = _settled(text)
            if name is not None:
                found.setdefault(_Place(kind, f"{_step(node.getparent())}/{step_of(node)}"), name)
    return found


def _step(node: HtmlElement | None) -> str:
    return step_of(node) if node is not None else ""


def _candidates(node: HtmlElement, page: Page) -> Iterator[tuple[str, str]]:
    outline, position = page.outline, page.order[node]
    attributes = outline.attributes[position]
    for attribute in _ATTRIBUTES:
        if value := attributes.get(attribute):
            yield "attribute", value
    if outline.ends[position] - position > MAX_INSIDE:
        return
    if attributes.get("itemprop") == "name" and any("author" in page.names(box).split() for box in _boxes(node)):
        yield "stated", attributes.get("content") or node_text(node, MAX_NAME_LENGTH + 1)
    if outline.tags[position] not in _NAME_TAGS or not (text := node_text(node, MAX_NAME_LENGTH + 5)):
        return
    found = _kind_of_text(node, page, text)
    if found is not None and not _is_of_another(node, page):
        yield found


def _kind_of_text(node: HtmlElement, page: Page, text: str) -> tuple[str, str] | None:
    """Return the kind of the place, and the name in its text."""
    named = any(_SURE.fullmatch(name) for name in page.names(node).split())
    profile = node.tag == "a" and _PROFILE.search(node.get("href") or "") is not None
    if named or profile:
        return "named link" if named and profile else "named" if named else "profile", text
    if match := _BY.fullmatch(text):
        return "by", match.group(1)
    if not len(node) and any(_LIKELY.search(page.names(box)) for box in (node, *_boxes(node))):
        return "part", text
    return None


def _boxes(node: HtmlElement) -> Iterator[HtmlElement]:
    return islice(node.iterancestors(), 2)


def _is_of_another(node: HtmlElement, page: Page) -> bool:
    """Return whether a part is about who edited the post, answered it or was quoted."""
    return any(_NOT_OF_AUTHOR.search(page.names(box)) or _EDITED.match(node_text(box, 60)) for box in _boxes(node))


def _settled(text: str) -> str | None:
    name = one_line(text).strip(" ,;:»·|-–—")
    if match := _BY.fullmatch(name):
        name = match.group(1)
    fits = 1 < len(name) <= MAX_NAME_LENGTH and any(map(str.isalnum, name))
    return name if fits and not _NO_AUTHOR.match(name) and not is_mostly_date(name) else None


# ── posts ──

MAX_TEXT_LENGTH: Final = 200_000
#: Elements of a post that are read.
MAX_ELEMENTS: Final = 600
MAX_MEDIA: Final = 50
MAX_HASHTAGS: Final = 50
_NUMBER_OF_POST = _VOCABULARY.pattern("number_of_post")
#: The date of a post may precede its text within so many elements.
MAX_LEADING: Final = 10
#: Longer lines are no dates.
MAX_DATE_LENGTH: Final = 100
_SIGNATURE: Final = re.compile(rf"^{_VOCABULARY.text('signature_line')}$", re.MULTILINE)
_DATE_LABEL: Final = _VOCABULARY.pattern("date_label", re.IGNORECASE)
_ID_ATTRIBUTES: Final = _VOCABULARY.words("id_attributes")
#: Attributes for what is shown beside an element that the mouse is over, such as the exact time.
_TOOLTIPS: Final = ("title", "data-tippy-content", "data-original-title", "data-bs-original-title", "data-tooltip")
_TIME_ATTRIBUTES: Final = (
    "datetime", "data-time", "data-timestamp", "data-date", "data-datetime", "content", *_TOOLTIPS,
)  # fmt: skip
_PERMALINK, _JOINED, _LIKES = _VOCABULARY.patterns("permalink", "joined", "likes")
_COUNT = re.compile(r"[+]?(-?\d{1,7})(?:\s*(?:likes?|points?|votes?|upvotes?|people|thanks))?", re.IGNORECASE)
_DATED: Final = frozenset({"data-time", "data-timestamp"})
_DATES: Final = frozenset({"datePublished", "dateCreated"})
_TITLED: Final = frozenset({"span", "abbr", "a"})
#: Elements whose ``title`` may be a date.
MAX_TITLED: Final = 5_000
_SMALL = _VOCABULARY.pattern("small_image", re.IGNORECASE)
_DROPPED = _VOCABULARY.pattern("dropped")
_DROPPED_TAGS: Final = frozenset({"button", "form", "select", "iframe", "input", "textarea", "audio", "video", "nav"})
_LOCATION, _MEMBER_SINCE = _VOCABULARY.patterns("location", "member_since", flags=re.IGNORECASE)


@dataclass(slots=True)
class Post:
    """The known data of a post."""

    text: str
    id: str | None = None
    url: str | None = None
    date: str | None = None
    author: str | None = None
    likes: int | None = None
    dislikes: int | None = None
    replies: int | None = None
    reposts: int | None = None
    location: str | None = None
    joined: str | None = None
    media: list[str] = field(default_factory=list)
    hashtags: list[str] = field(default_factory=list)


def posts_of(page: Page) -> list[Post]:
    """Return the posts that a page shows, in its order."""
    texts = {text.body: text for text in texts_of(page)}
    boxes = boxes_of(texts)
    boxes.update((text.body, text.box) for text in texts.values() if text.box is not None)
    dates, authors = _dates_by_box(page, boxes, texts), authors_of(page, boxes)
    if 2 * len(authors) < len(boxes):
        authors = _authors_by_place(page, boxes, texts) or authors
    others = frozenset(boxes.values())
    found = []
    for body, box in boxes.items():
        post = Post(text=_text(texts[body]))
        post.media, post.hashtags = _media(page, body), _hashtags(body)
        if not post.text and not post.media:
            continue
        around = [
            node
            for node in islice(elements_of(box, others), MAX_ELEMENTS)
            if body not in (node, *islice(node.iterancestors(), 8))
        ]
        leading = _leading_time(body)
        post.date = (
            dates.get(box)
            or (_date(page, leading) if leading is not None else None)
            or _in_text(page, texts[body].date)
        )
        post.author = authors.get(body)
        post.id = _number(box, body, around)
        post.url = _permalink(page, around, post.id) or _anchor(page, box, body, post.id)
        post.likes = _likes(page, around)
        post.location, post.joined = _author(page, around)
        found.append(post)
    return found


def _authors_by_place(
    page: Page, boxes: dict[HtmlElement, HtmlElement], texts: dict[HtmlElement, PostText]
) -> dict[HtmlElement, str]:
    """Return the names of authors that are known by nothing but their place in the posts."""
    found: Iterable[str | None] = (text.author for text in texts.values())
    if len(boxes) > 1 and not any(text.author or text.box is not None for text in texts.values()):
        found = names_by_place(page, list(boxes.values()), texts)
    return {body: name for body, raw in zip(boxes, found, strict=True) if raw and (name := _settled(raw))}


def _text(post: PostText) -> str:
    part = copy.deepcopy(post.body)
    part.tail = None
    pairs = list(zip(post.body.iter(), part.iter(), strict=True))
    for begin in (copied for node, copied in pairs if node in post.lines):
        remove_line(begin)
    for node in (copied for node, copied in pairs if node in post.beside):
        node.drop_tree()
    leading = _leading_time(part)
    if leading is not None:
        leading.drop_tree()
    for node in list(part.iterdescendants("*")):
        is_dropped = node.tag in _DROPPED_TAGS or _DROPPED.search(class_and_id(node))
        if is_dropped and node.getparent() is not None:
            node.drop_tree()
    text = lines(layout_text(part))[:MAX_TEXT_LENGTH]
    # A line of its own that separates the signature, as old forums put it below the text.
    signature = _SIGNATURE.search(text)
    return text[: signature.start()].rstrip() if signature and signature.start() else text


def _leading_time(body: HtmlElement) -> HtmlElement | None:
    """Return the ``<time>`` before all text of a post: its date rather than one that it is about."""
    for node in islice(body.iter("*"), MAX_LEADING):
        if node.tag == "time" and node is not body:
            return node
        if one_line(node.text) or (node is not body and one_line(node.tail)):
            return None
    return None


def _dates_by_box(
    page: Page, boxes: dict[HtmlElement, HtmlElement], texts: dict[HtmlElement, PostText]
) -> dict[HtmlElement, str]:
    """Return the first date of each box that is neither in its text nor of its author."""
    if not boxes:
        return {}
    order, outline = page.order, page.outline
    bodies = {order[body]: order[box] for body, box in boxes.items()}
    beside = {order[node] for text in texts.values() for node in text.beside}
    wanted = set(bodies.values())
    found: dict[int, str] = {}
    for position, text in chain(_dated(page).items(), _short_lines(page)):
        box = None
        in_text = True
        for around in outline.around(position):
            in_text = in_text and around not in beside
            if in_text and bodies.get(around, around) != around:
                break
            if around in wanted:
                box = around
                break
        if box is None or box in found or (text is not None and not _is_date(text)):
            continue
        node = outline.nodes[position]
        if not _is_of_author(page, node) and (date := _date(page, node)):
            found[box] = date
    return {outline.nodes[box]: date for box, date in found.items()}


def _dated(page: Page) -> dict[int, None]:
    """Return the positions of the elements whose tags or attributes have a date, the most reliable first."""
    times: list[int] = []
    named: list[int] = []
    titled: list[int] = []
    for position, (tag, attributes) in enumerate(zip(page.outline.tags, page.outline.attributes, strict=True)):
        if tag == "time":
            times.append(position)
        if attributes:
            if not _DATED.isdisjoint(attributes) or attributes.get("itemprop") in _DATES:
                named.append(position)
            if tag in _TITLED and not attributes.keys().isdisjoint(_TOOLTIPS):
                titled.append(position)
    return dict.fromkeys([*times, *named, *titled[:MAX_TITLED]])


def _short_lines(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the short texts with a digit: lines, then those with elements in each other, as a name in bold often is."""
    lines = {page.order[node]: text for node, text in page.numbered_lines}
    yield from ((position, text) for position, text in lines.items() if len(text) <= MAX_DATE_LENGTH)
    outline = page.outline
    for position in sorted(page.numbered.difference(lines)):
        if outline.ends[position] - position <= MAX_INSIDE + 1:
            text = node_text(outline.nodes[position], MAX_DATE_LENGTH + 1)
            if len(text) <= MAX_DATE_LENGTH:
                yield position, text


def _is_date(text: str) -> bool:
    by = _BY.fullmatch(text)
    behind = text[by.end(1) :].strip(" ,;:»·|-–—") if by else text
    if is_mostly_date(text) or is_mostly_date(behind):
        return True
    return _DATE_LABEL.match(text) is not None and any(map(str.isdigit, text))


def _is_of_author(page: Page, node: HtmlElement) -> bool:
    parent = node.getparent()
    near = node_text(parent, 80) if parent is not None else ""
    names = " ".join(page.names(ancestor) for ancestor in (node, *islice(node.iterancestors(), 2)))
    return _JOINED.search(f"{near} {names}".lower()[:400]) is not None


def _date(page: Page, node: HtmlElement) -> str | None:
    for name in _TIME_ATTRIBUTES:
        value = (node.get(name) or "").strip()
        if value.isascii() and value.isdigit() and len(value) in {10, 13}:
            return in_utc(datetime.fromtimestamp(int(value[:10]), timezone.utc).isoformat())
        found = read(value, page) if value and any(map(str.isdigit, value)) and len(value) <= 60 else None
        if found is not None:
            return in_utc(found.iso)
    return _in_text(page, node_text(node, MAX_DATE_LENGTH))


def _in_text(page: Page, text: str | None) -> str | None:
    found = read(text, page)
    return in_utc(found.iso) if found is not None else None


def in_utc(iso: str) -> str:
    """Return a date with a zone in UTC; unchanged without a zone."""
    moment = datetime_of_iso(iso)
    return iso if moment.tzinfo is None else moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(box: HtmlElement, body: HtmlElement, around: list[HtmlElement]) -> str | None:
    for node in (body, box, *around[:60]):
        for name in _ID_ATTRIBUTES:
            value = (node.get(name) or "").strip()
            if re.fullmatch(r"[\w-]{1,40}", value):
                return value
        match = _NUMBER_OF_POST.search((node.get("id") or node.get("name") or "").lower()[:100])
        if match:
            return match.group(1)
    return None


def _permalink(page: Page, around: list[HtmlElement], number: str | None) -> str | None:
    """Return the link to the post itself: that with its number, else the first that looks like one."""
    links = [(link, url) for link in around if link.tag == "a" and (url := page.link(link.get("href")))]
    if number and len(number) > 2:
        for _, url in links:
            if url.endswith(
                ("#" + number, "-" + number, "_" + number, "=" + number, "/" + number, "#p" + number, "post" + number)
            ):
                return url
    return next((url for _, url in links if _PERMALINK.search(url) and "reply" not in url and "quote" not in url), None)


def _anchor(page: Page, box: HtmlElement, body: HtmlElement, number: str | None) -> str | None:
    for node in (box, body):
        own = node.get("id") or ""
        if number and own.endswith(number) and re.fullmatch(r"[\w-]{1,60}", own):
            return f"{page.url.partition('#')[0]}#{own}"
    return None


def _likes(page: Page, around: list[HtmlElement]) -> int | None:
    found: dict[bool, int] = {}
    for node in around:
        names = page.names(node)
        if _LIKES.search(names) and not len(node) > 3 and (match := _COUNT.fullmatch(node_text(node, 30))):
            # Some have the count as it would be with the reader's vote as well.
            found.setdefault("unvoted" in names.split(), max(0, int(match.group(1))))
    return found.get(True, found.get(False))


def _author(page: Page, around: list[HtmlElement]) -> tuple[str | None, str | None]:
    """Return the location of the author of a post, and the date of joining, as the box shows them; never the name."""
    location = joined = None
    for node in around:
        if len(node) > 3 or (location and joined):
            continue
        text = node_text(node, 100)
        if not location and (match := _LOCATION.fullmatch(text)):
            location = one_line(match.group(1))
        if not joined and (match := _MEMBER_SINCE.fullmatch(text)):
            date = read(match.group(1), page)
            joined = date.iso if date else None
    return location, joined


def _media(page: Page, body: HtmlElement) -> list[str]:
    urls: dict[str, None] = {}
    for node in body.iter("img", "video", "source", "iframe"):
        reference = node.get("data-src") or node.get("data-url") or node.get("src")
        url = page.link(reference)
        if url and not _SMALL.search(f"{page.names(node)} {reference}") and not _tiny(node):
            urls[url] = None
    return list(urls)[:MAX_MEDIA]


def _tiny(node: HtmlElement) -> bool:
    sizes = [size for name in ("width", "height") if (size := whole_number(node.get(name), 5)) is not None]
    return bool(sizes) and max(sizes) <= 32


def _hashtags(body: HtmlElement) -> list[str]:
    texts = (node_text(link, 60) for link in body.iter("a"))
    return list(dict.fromkeys(text for text in texts if re.fullmatch(r"#\w{1,50}", text)))[:MAX_HASHTAGS]
