"""Threads of forums, and questions with their answers."""

from __future__ import annotations

import re
from typing import Final

from scrapy_ext.server.extraction.auto.fields.headings import headline_of, without_site
from scrapy_ext.server.extraction.auto.forum.posts import Post, posts_in, posts_of, thread_of
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
from scrapy_ext.server.extraction.auto.page.records import origin
from scrapy_ext.server.extraction.auto.page.text import letters_of
from scrapy_ext.server.extraction.auto.page.urls import parts_of

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
    sure = _probability(thread, posts)
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
    focus = Focus(page, page.meta("og:title", "twitter:title"), page.title)
    return page.sources.first(
        "topic",
        (origin(thread, "headline", "name"), lambda: one_line(thread.text("headline", "name")) if thread else None),
        ("h1", lambda: focus.heading_text),
        ("title", lambda: without_site(page, headline_of(page, thread, focus) or "")),
    )


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


def _probability(thread: Thing | None, posts: list[Post]) -> float:
    if thread is not None:
        return 0.98
    dated = sum(post.date is not None for post in posts)
    return 0.9 if len(posts) > 1 and 2 * dated >= len(posts) else 0.6 if len(posts) > 1 else 0.3
