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
    # Names of authors are not found in the code of a page that names nothing.
    assert {post["metadata"]["probability"] > 0.5 for post in posts} == {software != "nameless"}


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


def in_cells(n: int) -> str:
    """A post of old software: the text in a span of a table's cell, below it a line and the signature."""
    signature = "<br>_________________<br>Keep it lit" if n else ""
    return f"""<tr><td class=row1><span class=name><a name={n}></a><b>Ada{n}</b></span><br><span class=postdetails>
    Joined: 13 May 2001</span></td><td class=row1><table><tr><td><span class=postdetails>Posted: {DAYS[n]} 1:14 am
    &nbsp; Post subject:</span></td></tr><tr><td><span class=postbody>{TEXTS[n]}</span>
    <span class=gensmall>{signature}</span></td></tr></table></td></tr><tr><td>Back to top</td></tr>"""


def test_texts_in_cells_end_before_the_line_of_the_signature() -> None:
    posts = extract("forumThread", page(f"<table class=forumline>{''.join(map(in_cells, range(3)))}</table>"), URL)[
        "posts"
    ]
    assert [post["text"] for post in posts] == TEXTS
    assert [post["author"]["name"] for post in posts] == ["Ada0", "Ada1", "Ada2"]
    assert [post["datePublished"][:10] for post in posts] == DAYS


def test_a_time_before_the_text_is_the_date_of_the_post() -> None:
    def post(n: int) -> str:
        return f"""<div id=post_{n} class=post><div class=user><div class=username>Ada{n}</div></div>
        <div class=contents>
        <a href=#post-{n}><time datetime="{DAYS[n]} 14:27:06">9 months ago</time></a><p>{TEXTS[n]}</p></div></div>"""

    posts = extract("forumThread", page("".join(map(post, range(3)))), URL)["posts"]
    assert [(post["text"], post["datePublished"][:10]) for post in posts] == list(zip(TEXTS, DAYS, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "<p class=meta>Posted by Ada{n} on {day}</p>",
        "<p class=meta>by Ada{n}</p>",
        "<a href=/members/ada{n}.12/>Ada{n}</a>",
        "<div class=postprofile><strong>Ada{n}</strong></div>",
        "<div data-author=Ada{n}></div>",
        "<div><p>edited <a class=nick>Bob</a></p></div><div><p><a class=nick href=/u/{n}>Ada{n}</a></p></div>",
        "<b class=rank>Member</b><span class=nick>Ada{n}</span>",
    ],
)
def test_the_author_of_a_post_is_found_by_attribute_name_profile_or_word(name: str) -> None:
    def post(n: int) -> str:
        return f"""<div class=post id=p{n}>{name.format(n=n, day=DAYS[n])}<time datetime={DAYS[n]}>{DAYS[n]}</time>
        <div class=post-body>{TEXTS[n]}</div></div>"""

    posts = extract("forumThread", page("".join(map(post, range(3)))), URL)["posts"]
    assert [post.get("author", {}).get("name") for post in posts] == ["Ada0", "Ada1", "Ada2"]


def in_a_span(n: int) -> str:
    return f"""<tr class=athing id={900 + n}><td><table><tr><td><img width={40 * n}></td><td class=default><div>
    <span class=comhead><a href="user?id=Ada{n}">Ada{n}</a> <span class=age title="{DAYS[n]}T00:14:43">
    <a href="item?id={900 + n}">{n + 1} hours ago</a></span> | <a href="item?id=1">parent</a></span></div><br>
    <span class=comment><font>{TEXTS[n]}</font></span><p><u><a href="reply?id={n}">reply</a></u></p></td></tr></table>
    </td></tr>"""


def test_posts_that_are_spans_in_rows_of_a_table_are_found() -> None:
    posts = extract("forumThread", page(f"<table>{''.join(map(in_a_span, range(3)))}</table>"), URL)["posts"]
    assert [(post["text"], post["author"]["name"], post["datePublished"][:10]) for post in posts] == [
        (text, f"Ada{n}", DAYS[n]) for n, text in enumerate(TEXTS)
    ]


def test_a_post_in_several_spans_has_the_quotes_between_them() -> None:
    def post(n: int) -> str:
        quote = f"<table><tr><td class=quote>{TEXTS[n - 1]}</td></tr></table><span class=postbody>So I think.</span>"
        text = f"<span class=postbody>{TEXTS[n]}</span>{quote if n else ''}"
        return f"<tr><td><span class=name>Ada{n}</span></td><td><table><tr><td>{text}</td></tr></table></td></tr>"

    posts = extract("forumThread", page(f"<table>{''.join(map(post, range(3)))}</table>"), URL)["posts"]
    assert [post["text"] for post in posts] == [
        TEXTS[0], f"{TEXTS[1]}\n{TEXTS[0]}\nSo I think.", f"{TEXTS[2]}\n{TEXTS[1]}\nSo I think.",
    ]  # fmt: skip


def test_the_start_of_a_thread_around_alike_posts_is_not_the_date_of_the_first() -> None:
    entry = (
        '<div class="entry"><b class="author">{0}</b> <time datetime="2024-05-0{1}">May</time>'
        '<div class="post-body">{2} wrote about oil, wicks and the wind of last night, at length.</div></div>'
    )
    posts = "".join(entry.format(name, day, name) for day, name in enumerate(("Ada", "Ben", "Cy"), start=1))
    start = '<p>Started by <b class="author">Dora</b> <time datetime="2024-04-03">April</time></p>'
    found = extract("forumThread", page(f'<div class="post">{start}{posts}</div>'), URL)["posts"]
    assert [(each["author"]["name"], each["datePublished"][:10]) for each in found] == [
        ("Ada", "2024-05-01"),
        ("Ben", "2024-05-02"),
        ("Cy", "2024-05-03"),
    ]


def test_a_date_behind_from_is_the_date_of_its_post() -> None:
    body = '<div class="post-body">{0} lamps burn on the pier tonight.</div>'
    post = f'<div class="post"><p>from Jan {{0}}, 2024</p>{body}</div>'
    found = extract("forumThread", page("".join(map(post.format, (3, 4, 5)))), URL)["posts"]
    assert [each["datePublished"][:10] for each in found] == ["2024-01-03", "2024-01-04", "2024-01-05"]


@pytest.mark.parametrize("name", ["message-info-body", "post-body"])
def test_texts_of_posts_are_found_by_names_with_information_in_them(name: str) -> None:
    post = "<div class=post><p>Member no. {n}</p><div class={name}>Lamp {n} burns since the winter.</div></div>"
    html = "".join(post.format(n=n, name=name) for n in (1, 2, 3))
    item = extract("forumThread", f"<title>Lamps</title><main><h1>Lamps</h1>{html}</main>", URL)
    assert [each["text"] for each in item["posts"]] == [f"Lamp {n} burns since the winter." for n in (1, 2, 3)]
