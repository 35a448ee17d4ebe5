"""Threads, in the structure of usual forum software: its elements and classes, with words of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://forum.example.com/threads/keeping-lamps-lit.4711/"
SCHEMA = "https://schema.org/"
TEXTS = [
    "My lamp goes out whenever the wind turns north. What do you do against it?",
    "Trim the wick a little shorter, and put the glass on before you carry it outside.",
    "I had the same for years. A wider glass was all that it took, and now it burns all night.",
]
DAYS = ["2024-03-01", "2024-03-02", "2024-03-05"]


def page(posts: str, title: str = "Keeping lamps lit") -> str:
    return f"""<html lang=en><head><title>{title} | Harbour forum</title></head><body>
    <nav class=menu><a href=/>Home</a><a href=/new>What's new</a></nav><div class=content-wrap>
    <h1>{title}</h1>{posts}</div>
    <aside class=sidebar><div class=post-content>Somebody else wrote about ropes yesterday, at great length.</div>
    </aside>
    <form class=quick-reply><textarea class=message></textarea></form><footer>About this forum and its rules</footer>"""


def phpbb(n: int) -> str:
    return f"""<div id=p{100 + n} class="post has-profile bg{n % 2}"><div class=inner>
    <dl class=postprofile id=profile{n}>
    <dt><a href=/u{n} class=username>Ada{n}</a></dt><dd class=profile-joined><strong>Joined:</strong> 5 May 2001</dd>
    <dd class=profile-posts><strong>Posts:</strong> 12</dd></dl><div class=postbody><div id=post_content{100 + n}>
    <h3><a href="./viewtopic.php?p={100 + n}#p{100 + n}">Re: Keeping lamps lit</a></h3>
    <p class=author>by <b>Ada{n}</b> » <time datetime="{DAYS[n]}T10:00:00+00:00">{DAYS[n]}</time></p>
    <div class=content>{TEXTS[n]}</div><div class=signature id=sig{n}>Stay dry</div></div></div></div></div>"""


def discourse(n: int) -> str:
    return f"""<div id=post_{n + 1} class="topic-body crawler-post"><div class=crawler-post-meta>
    <span class=creator>Ada{n}</span>
    <span class=crawler-post-infos>
    <time datetime="{DAYS[n]}T10:00:00Z" class=post-time>March</time> <span>{n + 1}</span></span></div>
    <div class=post><p>{TEXTS[n]}</p></div><div><span class=post-likes>{n + 3} Likes</span></div></div>"""


def xenforo(n: int) -> str:
    return f"""<article class="message message--post" data-content="post-{100 + n}" id=js-post-{100 + n}>
    <span id=post-{100 + n}></span>
    <div class=message-inner><div class="message-cell message-cell--user"><h4>Ada{n}</h4><dl><dt>Joined</dt>
    <dd>May 5, 2001</dd></dl></div>
    <div class="message-cell message-cell--main"><header class=message-attribution>
    <a href=/threads/k.4711/post-{100 + n}>
    <time class=u-dt datetime="{DAYS[n]}T12:00:00+0200">{DAYS[n]}</time>
    </a> <a href=/threads/k.4711/post-{100 + n}>#{n + 1}</a></header>
    <div class="message-content js-messageContent"><div class=message-userContent>
    <article class="message-body js-selectToQuote">
    <div class=bbWrapper>{TEXTS[n]}</div></article></div></div><footer class=message-footer><button>Like</button>
    </footer></div></div>
    </article>"""


def vbulletin(n: int) -> str:
    return f"""<table id=post{100 + n} class=tborder><tr>
    <td class=thead>{DAYS[n]}, 10:00 AM
    <a href="showthread.php?p={100 + n}#post{100 + n}" id=postcount{100 + n}>#{n + 1}</a></td></tr><tr><td class=alt2>
    <a class=bigusername href=/m{n}>Ada{n}</a><div>Join Date: May 2001</div><div>Location: Bergen</div></td></tr>
    <tr><td class=alt1 id=td_post_{100 + n}><div id=post_message_{100 + n}>{TEXTS[n]}</div></td></tr></table>"""


def invision(n: int) -> str:
    return f"""<article id=elComment_{100 + n} class="cPost ipsBox ipsComment">
    <aside class="ipsComment_author cAuthorPane">
    <h3>Ada{n}</h3><ul><li>Members</li>
    <li>12 posts to this day, and a long line about the boats that Ada{n} has owned</li></ul></aside>
    <div class=ipsComment_content><p><a href="/topic/4711-lamps/#findComment-{100 + n}">Posted
    <time datetime="{DAYS[n]}T10:00:00Z">{DAYS[n]}</time></a></p><div class=cPost_contentWrap>
    <div data-role=commentContent class="ipsType_normal ipsType_richText"><p>{TEXTS[n]}</p></div></div></div>
    </article>"""


def answers(n: int) -> str:
    kind = "question" if n == 0 else "answer"
    return f"""<div class={kind} id={kind}-{100 + n} data-{kind}id={100 + n}><div class=votecell>
    <div class="js-vote-count">{n + 7}</div></div>
    <div class=postcell><div class="s-prose js-post-body"><p>{TEXTS[n]}</p></div><div class=user-info>
    <div class=user-action-time>asked <span title="{DAYS[n]} 10:00:00Z" class=relativetime>March</span></div>
    <div class=user-details>Ada{n}</div>
    </div></div><div class=comments><div class=comment-text>What a nice lamp that is.</div></div></div>"""


def nameless(n: int) -> str:
    return f"""<div class=x{n}><div class=q><b>Ada{n}</b>
    <time datetime="{DAYS[n]}T10:00:00Z">{DAYS[n]}</time></div>
    <p class=z>{TEXTS[n]}</p></div>"""


SOFTWARE = {each.__name__: each for each in (phpbb, discourse, xenforo, vbulletin, invision, answers, nameless)}


@pytest.mark.parametrize("software", SOFTWARE)
def test_the_posts_of_a_thread_are_found_by_the_structure_of_usual_software(software: str) -> None:
    item = extract("forumThread", page("".join(SOFTWARE[software](n) for n in range(3))), URL)
    assert item["topic"] == {"name": "Keeping lamps lit"}
    posts = item["posts"]
    if software == "nameless":
        assert [text in post["text"] for text, post in zip(TEXTS, posts, strict=True)] == [True] * 3
    else:
        assert [post["text"] for post in posts] == TEXTS
    assert [post["datePublished"][:10] for post in posts] == DAYS
    assert all(post["metadata"]["probability"] > 0.5 for post in posts)


@pytest.mark.parametrize("software", ["phpbb", "xenforo", "vbulletin", "invision", "answers"])
def test_posts_have_their_number_and_address(software: str) -> None:
    posts = extract("forumThread", page("".join(SOFTWARE[software](n) for n in range(3))), URL)["posts"]
    assert [post["postId"] for post in posts] == ["100", "101", "102"]
    assert all(post["postId"] in post["url"] for post in posts)
    assert len({post["url"] for post in posts}) == 3


def test_likes_and_facts_about_authors_are_kept() -> None:
    liked = extract("forumThread", page("".join(discourse(n) for n in range(3))), URL)
    assert [post["reactions"] for post in liked["posts"]] == [{"likes": 3}, {"likes": 4}, {"likes": 5}]
    located = extract("forumThread", page("".join(vbulletin(n) for n in range(3))), URL)
    assert located["posts"][0]["author"]["location"] == "Bergen"


@pytest.mark.parametrize("forum", [phpbb, discourse, xenforo, vbulletin])
def test_posts_have_the_names_of_their_authors(forum: Callable[[int], str]) -> None:
    posts = extract("forumThread", page("".join(forum(n) for n in range(3))), URL)["posts"]
    assert [post["author"]["name"] for post in posts] == ["Ada0", "Ada1", "Ada2"]


def discussion(comments: int) -> dict[str, Any]:
    return {
        "@context": "https://schema.org",
        "@type": "DiscussionForumPosting",
        "headline": "Keeping lamps lit",
        "text": TEXTS[0],
        "url": URL,
        "datePublished": f"{DAYS[0]}T12:00:00+02:00",
        "author": {"@type": "Person", "name": "Ada0"},
        "interactionStatistic": [
            {"@type": "InteractionCounter", "interactionType": f"{SCHEMA}LikeAction", "userInteractionCount": 9},
            {"@type": "InteractionCounter", "interactionType": {"@type": "CommentAction"}, "userInteractionCount": 2},
        ],
        "comment": [
            {"@type": "Comment", "text": TEXTS[n], "datePublished": DAYS[n], "url": f"{URL}post-{100 + n}"}
            for n in range(1, 1 + comments)
        ],
    }  # fmt: skip


def test_posts_of_markup_alone_have_text_date_address_and_reactions() -> None:
    script = f'<script type="application/ld+json">{json.dumps(discussion(2))}</script>'
    item = extract("forumThread", page(script), URL)
    assert [post["text"] for post in item["posts"]] == TEXTS
    assert item["posts"][0]["reactions"] == {"likes": 9, "replies": 2}
    assert item["posts"][0]["datePublished"] == "2024-03-01T10:00:00Z"
    assert item["posts"][1]["url"] == f"{URL}post-101"


def test_where_markup_has_the_first_post_only_the_page_is_read_and_knows_what_markup_knows() -> None:
    script = f'<script type="application/ld+json">{json.dumps(discussion(0))}</script>'
    item = extract("forumThread", page(script + "".join(xenforo(n) for n in range(3))), URL)
    assert [post["text"] for post in item["posts"]] == TEXTS
    assert item["posts"][0]["reactions"] == {"likes": 9, "replies": 2}
    assert item["posts"][0]["metadata"]["probability"] > 0.95


def test_a_question_and_its_answers_in_microdata_are_posts() -> None:
    html = f"""<div itemscope itemtype="https://schema.org/QAPage"><div itemprop=mainEntity itemscope
    itemtype="https://schema.org/Question"><h1 itemprop=name>Lamps?</h1><div itemprop=text>{TEXTS[0]}</div>
    <div itemprop=acceptedAnswer itemscope itemtype="https://schema.org/Answer"><div itemprop=text>{TEXTS[1]}</div>
    <span itemprop=upvoteCount>12</span></div></div></div>"""
    item = extract("forumThread", html, "https://example.com/questions/77/lamps")
    assert item["topic"] == {"name": "Lamps?"}
    assert item["threadId"] == "77"
    assert [post["text"] for post in item["posts"]] == TEXTS[:2]
    assert item["posts"][1]["reactions"]["likes"] == 12


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/t/lamps-of-2024/931828", "931828"),
        ("/t/lamps/931828/12", "931828"),
        ("/threads/lamps-2024.4711/page-2", "4711"),
        ("/viewtopic.php?f=7&t=112320", "112320"),
        ("/showthread.php?t=7481802", "7481802"),
        ("/topic/188682-new-2500x-lamp/", "188682"),
        ("/questions/964/how-to-light", "964"),
        ("/r/lamps/comments/1rl4mew/lamps/", "1rl4mew"),
        ("/forum/lamps/1488296-lamps.html", "1488296"),
        ("/about", None),
    ],
)
def test_the_number_of_a_thread_is_found_in_its_url(path: str, number: str | None) -> None:
    item = extract("forumThread", page("".join(phpbb(n) for n in range(2))), f"https://forum.example.com{path}")
    assert item.get("threadId") == number


def test_pictures_of_posts_are_kept_but_not_smilies() -> None:
    html = phpbb(0).replace(TEXTS[0], f"{TEXTS[0]} <img src=/lamp.jpg><img src=/smilies/1.gif><a href=/x>#lamps</a>")
    post = extract("forumThread", page(html + phpbb(1)), URL)["posts"][0]
    assert post["mediaUrls"] == [{"url": "https://forum.example.com/lamp.jpg"}]
    assert post["hashtags"] == ["#lamps"]


def test_a_page_without_posts_has_none() -> None:
    item = extract("forumThread", "<title>About</title><h1>About</h1>", URL)
    assert "posts" not in item
