"""The posts of a thread in the structured data of its page: discussions with comments, questions with answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scrapy_ext.server.extraction.auto.fields.dates import read
from scrapy_ext.server.extraction.auto.forum.posts import Post, in_utc
from scrapy_ext.server.extraction.auto.page.markup import Thing
from scrapy_ext.server.extraction.auto.page.page import Page

THREAD_TYPES: Final = ("DiscussionForumPosting", "Question", "SocialMediaPosting")
MAX_POSTS: Final = 500
MAX_DEPTH: Final = 10

_REACTIONS: Final = {
    "LikeAction": "likes", "AgreeAction": "likes", "DislikeAction": "dislikes", "DisagreeAction": "dislikes",
    "CommentAction": "replies", "ReplyAction": "replies", "ShareAction": "reposts",
}  # fmt: skip


def thread_of(page: Page) -> Thing | None:
    """The thing that is the thread: its first post, with the others as its comments or answers."""
    things = page.markup.things(*THREAD_TYPES)
    return max(things[:5], key=lambda thing: len(thing.properties), default=None)


def posts_in(page: Page, thread: Thing | None) -> list[Post]:
    """The posts of a thread: the first, and those in answer to it, in the order of the markup."""
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
            # What people remark on an answer to a question is no post of its own.
            yield from _things(thing, 0 if "Answer" in thing.types else depth - 1)


def _post(page: Page, thing: Thing, text: str) -> Post:
    date = read(thing.text("datePublished", "dateCreated"), page)
    post = Post(text=text, date=in_utc(date.iso) if date else None)
    post.url = page.link(thing.text("url") or thing.id)
    post.id = thing.text("identifier")
    for counter in thing.things("interactionStatistic"):
        names = {text.rpartition("/")[2] for text in counter.texts("interactionType")}
        names |= {name for action in counter.things("interactionType") for name in action.types}
        member = next((_REACTIONS[name] for name in names if name in _REACTIONS), None)
        if member is not None:
            setattr(post, member, _count(counter.text("userInteractionCount")))
    post.likes = post.likes if post.likes is not None else _count(thing.text("upvoteCount"))
    post.dislikes = post.dislikes if post.dislikes is not None else _count(thing.text("downvoteCount"))
    post.replies = post.replies if post.replies is not None else _count(thing.text("commentCount", "answerCount"))
    return post


def _count(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
