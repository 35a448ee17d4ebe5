"""Threads of forums, and questions with their answers: the posts of structured data, and those that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from scrapy_ext.server.extraction.auto import probability
from scrapy_ext.server.extraction.auto.fields.dates import read
from scrapy_ext.server.extraction.auto.fields.headline import headline_of, without_site
from scrapy_ext.server.extraction.auto.forum.bodies import main_of
from scrapy_ext.server.extraction.auto.forum.posts import Post, in_utc, posts_of
from scrapy_ext.server.extraction.auto.items import (
    DetailsMetadata,
    ForumThread,
    ListMetadata,
    Reactions,
    SocialMediaPost,
    SocialMediaPostAuthor,
    Topic,
    Url,
)
from scrapy_ext.server.extraction.auto.page import Focus, Page, Thing, now, one_line
from scrapy_ext.server.extraction.auto.page.markup import text_of
from scrapy_ext.server.extraction.auto.page.sources import origin
from scrapy_ext.server.extraction.auto.page.text import letters_of, whole_number
from scrapy_ext.server.extraction.auto.page.urls import parts_of

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
    return whole_number((text or "").strip(), 9)


_SIGN = re.compile(r"\s*[|»·•:–—-]\s")
#: Texts with this many equal first letters and digits are of one post.
ALIKE: Final = 40

#: ``/t/name/12``, ``/threads/name.12``, ``/topic/12-name``, ``/comments/1abc2d``, ``/12-name.html``, ``/name-12``.
_ID_IN_PATH = re.compile(
    r"/t/[^/]{1,200}/(\d{1,15})(?=/|$)|/t/(\d{1,15})(?=/|$)|/threads?/(?:[^/]{0,200}\.)?(\d{1,15})(?=/|$)"
    r"|/(?:topics?|questions?|discussions?|posts?|talk/[^/]{1,200})/(\d{1,15})(?=[-/]|$)"
    r"|/comments/([a-z0-9]{5,8})(?=/|$)|/(\d{4,15})-[^/]{1,200}$|[-_/.](\d{3,15})(?:\.html?)?/?$",
    re.IGNORECASE,
)
_ID_IN_QUERY = re.compile(r"(?:^|&)(?:t|tid|topic|thread|threadid|topic_id|id)=(\d{1,15})")


def extract(page: Page) -> ForumThread:
    """Return the thread of a page. Only ``url`` and ``metadata`` are always present."""
    thread = thread_of(page)
    stated, shown = posts_in(page, thread), posts_of(page)
    posts = _together(stated, shown)
    if posts:
        markup = "markup" if thread is None else f"{thread.syntax} {min(thread.types, default='')}"
        page.sources.note("posts", "parts of the page" if posts is shown else markup)
    topic = _topic(page, thread)
    sure = _probability(page, thread, posts)
    return ForumThread(
        url=page.url,
        topic=Topic(name=topic) if topic else None,
        threadId=page.sources.first(
            "threadId",
            (origin(thread, "identifier"), lambda: thread.text("identifier") if thread else None),
            ("url of the page", lambda: _id_of(page.url)),
            ("link canonical", lambda: _id_of(page.canonical_url or "")),
        ),
        posts=[_item(page, post, sure) for post in posts] or None,
        metadata=ListMetadata(dateDownloaded=now()),
    )


def _together(stated: list[Post], shown: list[Post]) -> list[Post]:
    """Return the posts of the page or, where it shows fewer, of structured data; each completed from the other."""
    more = len(shown) > len(stated) and (
        not stated or 2 * sum(post.date is not None or post.id is not None for post in shown) >= len(shown)
    )
    # The page shows as many posts as structured data has, which cuts them short.
    longer = len(shown) == len(stated) and sum(len(post.text) for post in shown) > sum(
        len(post.text) for post in stated
    )
    chosen, other = (shown, stated) if more or longer else (stated, shown)
    by_text = {_beginning(post.text): post for post in reversed(other)}
    for post in chosen:
        twin = by_text.get(_beginning(post.text))
        for name in Post.__slots__ if twin is not None else ():
            if name != "text" and not getattr(post, name):
                setattr(post, name, getattr(twin, name))
    return chosen


def _beginning(text: str) -> str:
    return letters_of(text[: 4 * ALIKE])[:ALIKE]


def _topic(page: Page, thread: Thing | None) -> str | None:
    focus, main = Focus(page, page.meta("og:title", "twitter:title"), page.title), main_of(page)
    beside = main is not None and focus.heading is not None and main not in focus.path
    return page.sources.first(
        "topic",
        (origin(thread, "headline", "name"), lambda: one_line(thread.text("headline", "name")) if thread else None),
        # Beside the main part stands the name of the forum.
        ("line that the title begins with", lambda: _begin_of_title(page) if beside else None),
        ("h1", lambda: focus.heading_text),
        ("title", lambda: without_site(page, headline_of(page, thread, focus) or "")),
        form=lambda name: {"name": name},
    )


def _begin_of_title(page: Page) -> str | None:
    """Return the longest line of a page with which its title begins, before a sign and the name of the site."""
    title = one_line(page.title)
    texts = (text for _, text in page.lines if title.startswith(text) and _SIGN.match(title, len(text)))
    return max(texts, key=len, default=None)


def _id_of(url: str) -> str | None:
    parts = parts_of(url)
    match = _ID_IN_QUERY.search(parts.query) or _ID_IN_PATH.search(parts.path)
    return next((group for group in match.groups() if group), None) if match else None


def _item(page: Page, post: Post, sure: float) -> SocialMediaPost:
    reactions = (post.likes, post.dislikes, post.replies, post.reposts)
    author = SocialMediaPostAuthor(name=post.author, location=post.location, dateAccountCreated=post.joined)
    return SocialMediaPost(
        url=post.url or page.url,
        postId=post.id,
        text=post.text or None,
        datePublished=post.date,
        reactions=Reactions(likes=post.likes, dislikes=post.dislikes, replies=post.replies, reposts=post.reposts)
        if any(count is not None for count in reactions)
        else None,
        hashtags=post.hashtags or None,
        mediaUrls=[Url(url=url) for url in post.media] or None,
        author=author if post.author or post.location or post.joined else None,
        metadata=DetailsMetadata(dateDownloaded=now(), probability=sure),
    )


def _probability(page: Page, thread: Thing | None, posts: list[Post]) -> float:
    """Return the probability that posts are those of a thread."""
    if not posts:
        return probability.LEAST
    authors = sum(bool(post.author) for post in posts) / len(posts)
    types = thread.types if thread is not None else frozenset()
    marked, several = "DiscussionForumPosting" in types, len(posts) > 1
    unmarked = not marked and "Question" not in types
    dated = 2 * sum(post.date is not None for post in posts) >= len(posts)
    signs = {
        "marked": marked,
        # Pages that answer questions mark these as well, without authors.
        "question": not marked and "Question" in types and authors > 0,
        "dated": unmarked and several and dated,
        "undated": unmarked and several and not dated,
        "several": several,
        "authors": authors,
    }
    return probability.of("post", page, signs)
