"""Threads of software that no name identifies: their parts are known by what the posts have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://stoves.example.com/t/4711"
POSTS = [
    ("Marta Holm", "12 March 2024, 10:15", "There is a crack in the chimney, two hands above the pipe. Is it safe?"),
    ("olek77", "12 March 2024, 11:02", "Do not heat it. Have a sweep look at it first, gas can come through."),
    ("Marta Holm", "13 March 2024, 08:40", "Thank you, he comes on Friday. I will report what he said."),
    ("b. reyes", "15 March 2024, 19:21", "Mine was only the plaster. Took an hour to mend."),
]
DAYS = ["2024-03-12T10:15:00", "2024-03-12T11:02:00", "2024-03-13T08:40:00", "2024-03-15T19:21:00"]


def page(thread: str) -> str:
    return f"""<html lang=en><head><title>Crack in the chimney - Stove talk</title></head><body>
    <header><a href=/>Stove talk</a> <a href=/rules>Rules</a></header>{thread}<footer>© 2024 Stove talk</footer>"""


def of_each(write: Callable[[int, str, str, str], str]) -> str:
    return "<h1>Crack in the chimney</h1>" + "".join(write(number, *post) for number, post in enumerate(POSTS))


def items(number: int, name: str, day: str, text: str) -> str:
    likes = f"<a href=#l>Like ({number})</a>"
    return f"""<li class=msg><div class=who>{name}</div><div class=when>{day}</div><div class=txt>{text}</div>
    <div class=act><a href=#r>Reply</a> <a href=#q>Quote</a> {likes}</div></li>"""


def cells(number: int, name: str, day: str, text: str) -> str:
    return f"""<table><tr><td class=left><b>{name}</b><br>Member<br>Posts: {number * 13}</td>
    <td class=right><small>{day}</small><br>{text}<br><a href=#q>Quote</a> <a href=#r>Report</a></td></tr></table>"""


def nameless(number: int, name: str, day: str, text: str) -> str:
    return f"""<div><div><strong>{name}</strong> <em>{day}</em></div><div><p>{text}</p></div>
    <div><a href=#r>Reply</a> <a href=#l>Like</a></div></div>"""


def paragraphs(number: int, name: str, day: str, text: str) -> str:
    return f"""<li><p class=n>{name}</p><p class=d>{day}</p><p>{text}</p><p class=x><a href=#a>Antworten</a> |
    <a href=#z>Zitieren</a></p></li>"""


def posts_of(html: str) -> list[dict[str, Any]]:
    posts: list[dict[str, Any]] = extract("forumThread", html, URL)["posts"]
    return posts


@pytest.mark.parametrize("write", [items, cells, nameless, paragraphs])
def test_posts_have_text_author_and_date_without_a_name_that_is_known(write: Callable[..., str]) -> None:
    posts = posts_of(page(of_each(write)))

    assert [post["text"] for post in posts] == [text for _, _, text in POSTS]
    assert [post["author"]["name"] for post in posts] == [name for name, _, _ in POSTS]
    assert [post["datePublished"] for post in posts] == DAYS


def test_a_text_of_several_paragraphs_is_whole() -> None:
    def write(number: int, name: str, day: str, text: str) -> str:
        more = "<p>One more thing, about the pipe.</p>" if number == 1 else ""
        return f"<div><i>{name}</i><span>{day}</span><div><p>{text}</p>{more}</div><button>Reply</button></div>"

    texts = [post["text"] for post in posts_of(page(of_each(write)))]

    assert texts[1] == f"{POSTS[1][2]}\nOne more thing, about the pipe."
    assert texts[0] == POSTS[0][2]


def test_a_greeting_is_of_the_text() -> None:
    greetings = ["Hello all", "Dear Marta", "Many thanks", "Good evening"]

    def write(number: int, name: str, day: str, text: str) -> str:
        return f"<div><i>{name}</i><span>{day}</span><div><p>{greetings[number]}</p><p>{text}</p></div></div>"

    posts = posts_of(page(of_each(write)))

    assert [post["text"].split("\n")[0] for post in posts] == greetings
    assert [post["author"]["name"] for post in posts] == [name for name, _, _ in POSTS]


def test_posts_without_dates_are_known_by_their_buttons() -> None:
    def write(number: int, name: str, day: str, text: str) -> str:
        return f"<div class=z><p class=k>{name} wrote:</p><div>{text}</div><a href=/r/{number}>Reply</a></div>"

    posts = posts_of(page(of_each(write)))

    assert [(post["author"]["name"], post["text"]) for post in posts] == [(name, text) for name, _, text in POSTS]


def test_teasers_of_other_pages_are_no_posts() -> None:
    def write(number: int, name: str, day: str, text: str) -> str:
        link = f"/news/{number}"
        return f"<div class=z><a href={link}><b>{name}</b></a><div>{text}</div><a href={link}>Read on</a></div>"

    assert "posts" not in extract("forumThread", page(of_each(write)), URL)


def test_one_author_of_all_posts_may_be_a_label_and_is_none() -> None:
    def write(number: int, name: str, day: str, text: str) -> str:
        return items(number, "Marta Holm", day, text)

    posts = posts_of(page(of_each(write)))

    assert [post["text"] for post in posts] == [text for _, _, text in POSTS]
    assert not any("author" in post for post in posts)


def test_the_word_before_the_comma_of_a_day_is_no_author() -> None:
    def write(number: int, name: str, day: str, text: str) -> str:
        return f"<div class=z><p>{name.split(maxsplit=1)[0]}, {day}</p><div>{text}</div><a href=#r>Reply</a></div>"

    assert not any("author" in post for post in posts_of(page(of_each(write))))


def test_answers_below_a_post_are_no_part_of_it() -> None:
    def write(number: int) -> str:
        name, day, text = POSTS[number]
        inner = f"<div class=k>{write(1)}{write(3)}</div>" if number == 0 else ""
        return f"<div class=c><p><a href=/~{number}>{name}</a> <i>{day}</i></p><div class=t>{text}</div>{inner}</div>"

    posts = posts_of(page(write(0)))

    assert [(post["author"]["name"], post["datePublished"]) for post in posts] == [
        (POSTS[number][0], DAYS[number]) for number in (0, 1, 3)
    ]
    assert [post["text"] for post in posts] == [POSTS[number][2] for number in (0, 1, 3)]


@pytest.mark.parametrize("tools", ["", "<div class=tools><a href=#e>Edit</a></div>"])
def test_the_first_post_may_stand_before_the_main_part(tools: str) -> None:
    def write(number: int, more: str = "") -> str:
        name, day, text = POSTS[number]
        parts = f"<div class=who>{name}</div><div class=when>{day}</div><div class=txt>{text}</div>"
        return f"<div class=message>{parts}{more}</div>"

    others = "".join(write(number, "<div class=act><a href=#r>Reply</a></div>") for number in (1, 2, 3))
    posts = posts_of(page(f"<h1>Crack in the chimney</h1>{write(0, tools)}<main>{others}</main>"))

    assert [post["author"]["name"] for post in posts] == [name for name, _, _ in POSTS]


def test_posts_that_are_the_same_keep_their_texts() -> None:
    posts = posts_of(page("".join(f"<div class=post><b class=author>A{n}</b><p>Thanks, {n}.</p></div>" for n in "123")))

    assert [post["author"]["name"] for post in posts] == ["A1", "A2", "A3"]
    assert all("Thanks" in post["text"] for post in posts)


@pytest.mark.parametrize("greeting", ["Hello", "Hi all!", "Thanks,"])
@pytest.mark.parametrize(
    "text",
    [
        "<div class=txt><p>{greeting}</p><p>{text}</p></div>",
        "<p>{greeting}</p><p>{text}</p>",
        "<div><div>{greeting}</div><div>{text}</div></div>",
        "<div class=txt><b>{greeting}</b> {text}</div>",
        "<div class=txt>{greeting}<br>{text}</div>",
    ],
)
def test_a_greeting_that_all_posts_begin_with_is_of_their_texts(text: str, greeting: str) -> None:
    def write(number: int, name: str, day: str, said: str) -> str:
        body = text.format(greeting=greeting, text=said)
        return f"<div class=k><div class=who>{name}</div><div class=when>{day}</div>{body}<a href=#r>Reply</a></div>"

    posts = posts_of(page(of_each(write)))

    assert [" ".join(post["text"].split()) for post in posts] == [f"{greeting} {said}" for _, _, said in POSTS]
    assert [post["author"]["name"] for post in posts] == [name for name, _, _ in POSTS]


def test_labels_and_words_of_thanks_below_the_texts_are_told_apart() -> None:
    def write(number: int, name: str, day: str, said: str) -> str:
        left = f"<td class=left><b>{name}</b><br>Member<br>Posts: 12</td>"
        right = (
            f"<td class=right><small>{day}</small><div><b>Message:</b> {said}<br>Regards</div><a href=#q>Quote</a></td>"
        )
        return f"<table><tr>{left}{right}</tr></table>"

    posts = posts_of(page(of_each(write)))

    for post, (_, _, said) in zip(posts, POSTS, strict=True):
        assert said in post["text"]
        assert post["text"].endswith("Regards")
        assert not any(word in post["text"] for word in ("Member", "Quote", "Message"))


@pytest.mark.parametrize(
    "post",
    [
        "<div class=k><div class=who>{name}</div><i>{day}</i><div><p>{text}</p><p role=button>Go</p></div></div>",
        "<div class=k><div class=who>{name}</div><i>{day}</i><div><p>{text}</p><p onclick=r()>Go</p></div></div>",
        "<div class=k><div>{name}</div><div>Member</div><div>{day}</div><div>{text}</div></div>",
        "<div class=k><p>{name}</p><p>Moderator</p><p>{day}</p><p>{text}</p></div>",
        "<div class=k><div class=who>{name}</div><i>{day}</i><div><p>{text}</p><p>Antworten</p></div></div>",
        "<div class=k><div class=who>{name}</div><i>{day}</i><div><p>{text}</p><p>Répondre</p></div></div>",
    ],
)
def test_ranks_and_what_readers_may_do_are_no_greetings(post: str) -> None:
    def write(_: int, name: str, day: str, said: str) -> str:
        return post.format(name=name, day=day, text=said)

    posts = posts_of(page(of_each(write)))

    assert [(each["author"]["name"], each["text"]) for each in posts] == [(name, text) for name, _, text in POSTS]


def _broken(*lines: str) -> str:
    return "".join(
        f"<div class=post>{'<br>'.join(lines).format(name=name, day=day, text=text)}</div>"
        for name, day, text in zip(NAMES_OF_BROKEN, (2, 3, 4), TEXTS_OF_BROKEN, strict=True)
    )


NAMES_OF_BROKEN = ["Ada Berg", "Tom Vik", "Ole Rud"]
TEXTS_OF_BROKEN = [
    "My lamp goes out whenever the wind turns north. What do you do against it?",
    "Trim the wick a little shorter, and put the glass on before you carry it outside.",
    "I had the same for years. A wider glass was all that it took, and now it burns all night.",
]


@pytest.mark.parametrize(
    "posts",
    [
        _broken("{name}", "Member", "{day} March 2024, 10:00", "{text}", "Report post"),
        _broken("<b>{name}</b>", "Member", "{day} March 2024", "", "{text}", "", "Reply | Quote | Report post"),
        _broken("{name}", "Member", "Posts: 1{day}", "Joined: 5 May 2001", "{day} March 2024", "{text}", "Reply"),
        _broken("{name}", "{day} March 2024", "{text}", "<a href=/r>Reply</a> | <a href=/q>Report post</a>"),
        _broken("{name}", "Miembro", "{day} de marzo de 2024", "{text}", "Responder · Citar · Denunciar"),
        _broken("{name}", "Member", "{day} March 2024", "{text}", "Report post").replace(
            "class=post", "class=postbody"
        ),
    ],
)
def test_lines_between_breaks_that_are_no_text_are_names_dates_and_labels(posts: str) -> None:
    html = f"<title>Lamps | Harbour forum</title><h1>Lamps</h1><div class=wrap>{posts}</div>"
    found = extract("forumThread", html, "https://forum.example.com/t/12")["posts"]
    assert [post["text"] for post in found] == TEXTS_OF_BROKEN
    assert [post["author"]["name"] for post in found] == NAMES_OF_BROKEN
    assert [post["datePublished"][:10] for post in found] == ["2024-03-02", "2024-03-03", "2024-03-04"]


def test_labels_below_the_text_of_a_named_part_are_left_out_and_greetings_stay() -> None:
    posts = "".join(
        f"<article><p>{name}</p><time>3 March 2024</time><div class=post-content>Hi all,<br>{text}<br>Report post</div>"
        "</article>"
        for name, text in zip(NAMES_OF_BROKEN, TEXTS_OF_BROKEN, strict=True)
    )
    found = extract("forumThread", f"<h1>Lamps</h1>{posts}", "https://forum.example.com/t/12")["posts"]
    assert [post["text"] for post in found] == [f"Hi all,\n{text}" for text in TEXTS_OF_BROKEN]


@pytest.mark.parametrize(
    "lines",
    [
        ["I saw it on", "5 May 2023", "and then no more."],
        ["Concerts are on these days:", "5 May 2023", "6 May 2023", "7 May 2023"],
    ],
)
def test_days_in_the_lines_of_a_text_are_of_it(lines: list[str]) -> None:
    posts = _broken("{name}", "{day} March 2024", "{text}").replace(TEXTS_OF_BROKEN[0], "<br>".join(lines))
    found = extract("forumThread", f"<h1>Lamps</h1><div>{posts}</div>", "https://forum.example.com/t/12")["posts"]
    assert [post["text"] for post in found] == ["\n".join(lines), *TEXTS_OF_BROKEN[1:]]
    assert [post["datePublished"][:10] for post in found] == ["2024-03-02", "2024-03-03", "2024-03-04"]


def test_a_number_with_its_word_behind_a_text_is_of_it() -> None:
    posts = _broken("{name}", "Posts: 1{day}", "{day} March 2024", "{text}", "Score: {day}")
    found = extract("forumThread", f"<h1>Lamps</h1><div>{posts}</div>", "https://forum.example.com/t/12")["posts"]
    assert [post["text"] for post in found] == [f"{text}\nScore: {n}" for n, text in enumerate(TEXTS_OF_BROKEN, 2)]
