"""Posts of a thread: as its page shows them, and as its structured data has them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from typing import Final

import html_text
from lxml.html import HtmlElement

from scrapy_ext.compatibility.python import datetime_of_iso
from scrapy_ext.server.extraction.auto.fields.dates import is_mostly_date, read
from scrapy_ext.server.extraction.auto.forum.authors import authors_of
from scrapy_ext.server.extraction.auto.forum.bodies import bodies_of, boxes_of
from scrapy_ext.server.extraction.auto.page import Page, Thing, node_text, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.text import lines
from scrapy_ext.server.extraction.vocabulary import load_vocabulary

MAX_TEXT_LENGTH: Final = 200_000
#: Elements of a post that are read.
MAX_ELEMENTS: Final = 600
MAX_MEDIA: Final = 50
MAX_HASHTAGS: Final = 50

_VOCABULARY: Final = load_vocabulary("forums")
_NUMBER_OF_POST = _VOCABULARY.pattern("number_of_post")
#: Elements of a body in which its date may precede the text.
MAX_LEADING: Final = 10
#: Longer lines are no dates.
MAX_DATE_LENGTH: Final = 100
_SIGNATURE: Final = re.compile(rf"^{_VOCABULARY.text('signature_line')}$", re.MULTILINE)
_DATE_LABEL: Final = _VOCABULARY.pattern("date_label", re.IGNORECASE)
_ID_ATTRIBUTES: Final = _VOCABULARY.words("id_attributes")
_TIME_ATTRIBUTES: Final = ("datetime", "data-time", "data-timestamp", "data-date", "data-datetime", "content", "title")
_PERMALINK, _JOINED, _LIKES = _VOCABULARY.patterns("permalink", "joined", "likes")
_COUNT = re.compile(r"[+]?(-?\d{1,7})(?:\s*(?:likes?|points?|votes?|upvotes?|people|thanks))?", re.IGNORECASE)
_DATED: Final = "//*[@data-time or @data-timestamp or @itemprop='datePublished' or @itemprop='dateCreated']"
_SMALL = re.compile(r"smil|emoji|emoticon|avatar|icon|spacer|pixel|rank|badge|/flags?/", re.IGNORECASE)
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
    boxes = boxes_of(bodies_of(page))
    dates, authors = _dates_by_box(page, boxes), authors_of(page, boxes)
    found = []
    for body, box in boxes.items():
        post = Post(text=_text(body))
        post.media, post.hashtags = _media(page, body), _hashtags(body)
        if not post.text and not post.media:
            continue
        around = [
            node for node in islice(box.iter("*"), MAX_ELEMENTS) if body not in (node, *islice(node.iterancestors(), 8))
        ]
        leading = _leading_time(body)
        post.date = dates.get(box) or (_date(page, leading) if leading is not None else None)
        post.author = authors.get(body)
        post.id = _number(box, body, around)
        post.url = _permalink(page, around, post.id) or _anchor(page, box, body, post.id)
        post.likes = _likes(page, around)
        post.location, post.joined = _author(page, around)
        found.append(post)
    return found


def _text(body: HtmlElement) -> str:
    part = copy.deepcopy(body)
    part.tail = None
    leading = _leading_time(part)
    if leading is not None:
        leading.drop_tree()
    for node in list(part.iterdescendants("*")):
        names = f"{node.get('class') or ''} {node.get('id') or ''}".lower()
        if (node.tag in _DROPPED_TAGS or _DROPPED.search(names)) and node.getparent() is not None:
            node.drop_tree()
    text = lines(str(html_text.extract_text(part)))[:MAX_TEXT_LENGTH]
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


def _dates_by_box(page: Page, boxes: dict[HtmlElement, HtmlElement]) -> dict[HtmlElement, str]:
    """Return the first date of each box that is neither in its text nor of its author."""
    bodies, wanted = set(boxes), set(boxes.values())
    nodes: dict[HtmlElement, None] = dict.fromkeys(page.tree.iter("time"))
    nodes.update(dict.fromkeys(page.tree.xpath(_DATED)))
    nodes.update(dict.fromkeys(page.tree.xpath("//span[@title] | //abbr[@title] | //a[@title]")[:5_000]))
    shown = [node for node, text in page.lines if len(text) <= MAX_DATE_LENGTH and _is_date(text)]
    found: dict[HtmlElement, str] = {}
    for node in (*nodes, *shown):
        box = None
        for ancestor in (node, *node.iterancestors()):
            if ancestor in bodies and ancestor is not boxes[ancestor]:
                break
            if ancestor in wanted:
                box = ancestor
                break
        if box is None or box in found or _is_of_author(page, node):
            continue
        date = _date(page, node)
        if date:
            found[box] = date
    return found


def _is_date(text: str) -> bool:
    return is_mostly_date(text) or (_DATE_LABEL.match(text) is not None and any(map(str.isdigit, text)))


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
    found = read(node_text(node, MAX_DATE_LENGTH), page)
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
    for node in around:
        if _LIKES.search(page.names(node)) and not len(node) > 3:
            match = _COUNT.fullmatch(node_text(node, 30))
            if match:
                return max(0, int(match.group(1)))
    return None


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
    sizes = [
        int(size)
        for name in ("width", "height")
        if (size := node.get(name) or "").isascii() and size.isdigit() and len(size) < 6
    ]
    return bool(sizes) and max(sizes) <= 32


def _hashtags(body: HtmlElement) -> list[str]:
    texts = (node_text(link, 60) for link in body.iter("a"))
    return list(dict.fromkeys(text for text in texts if re.fullmatch(r"#\w{1,50}", text)))[:MAX_HASHTAGS]


THREAD_TYPES: Final = ("DiscussionForumPosting", "Question", "SocialMediaPosting")
MAX_POSTS: Final = 500
MAX_DEPTH: Final = 10

_REACTIONS: Final = {
    "LikeAction": "likes", "AgreeAction": "likes", "DislikeAction": "dislikes", "DisagreeAction": "dislikes",
    "CommentAction": "replies", "ReplyAction": "replies", "ShareAction": "reposts",
}  # fmt: skip


def thread_of(page: Page) -> Thing | None:
    """Return the entity that is the thread: its first post, with the others as its comments or answers."""
    things = page.markup.things(*THREAD_TYPES)
    return max(things[:5], key=lambda thing: len(thing.properties), default=None)


def posts_in(page: Page, thread: Thing | None) -> list[Post]:
    """Return the posts of a thread: the first and its answers, in the order of the structured data."""
    if thread is None:
        return []
    found: list[Post] = []
    for thing in _things(thread, MAX_DEPTH):
        text = thing.text("text", "articleBody", "commentText", "description")
        if text:
            found.append(_post(page, thing, text))
        if len(found) >= MAX_POSTS:
            break
    return found


def _things(thread: Thing, depth: int) -> Iterator[Thing]:
    yield thread
    if depth > 0:
        names = ("acceptedAnswer", "suggestedAnswer") if "Question" in thread.types else ("comment",)
        for thing in thread.things(*names):
            # A remark on an answer to a question is no post of its own.
            yield from _things(thing, 0 if "Answer" in thing.types else depth - 1)


def _post(page: Page, thing: Thing, text: str) -> Post:
    date = read(thing.text("datePublished", "dateCreated"), page)
    post = Post(text=text, date=in_utc(date.iso) if date else None)
    post.url = page.link(thing.text("url") or thing.id)
    post.id = thing.text("identifier")
    author = next(iter(thing.values("author", "creator")), None)
    post.author = (one_line(text_of(author)) or None) if author is not None else None
    for counter in thing.things("interactionStatistic"):
        names = {text.rpartition("/")[2] for text in counter.texts("interactionType")}
        names |= {name for action in counter.things("interactionType") for name in action.types}
        member = next((_REACTIONS[name] for name in names if name in _REACTIONS), None)
        if member is not None:
            setattr(post, member, _stated_count(counter.text("userInteractionCount")))
    post.likes = post.likes if post.likes is not None else _stated_count(thing.text("upvoteCount"))
    post.dislikes = post.dislikes if post.dislikes is not None else _stated_count(thing.text("downvoteCount"))
    post.replies = (
        post.replies if post.replies is not None else _stated_count(thing.text("commentCount", "answerCount"))
    )
    return post


def _stated_count(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
