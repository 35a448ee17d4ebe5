"""Text of extracted articles: parts that belong to it, and parts that do not."""

from __future__ import annotations

import re
from typing import Any

import html_text
import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://news.example.com/2024/05/ferry"
PARAGRAPHS = [
    "The new ferry crossed the strait on Monday for the first time, an hour late and to the applause of the harbour.",
    "It takes forty cars and runs on batteries that are charged while the passengers get off, said the captain.",
    "The old boat, which has served the island since 1971, will be sold. Nobody has made an offer for it yet.",
    "For the islanders the crossing becomes shorter by ten minutes, and the last boat leaves at eleven in the evening.",
]
FIRST, SECOND, THIRD, LAST = (f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
TEXT = "\n\n".join(PARAGRAPHS)
HEADLINE = "<h1>New ferry makes its first crossing</h1>"


def article(body: str, head: str = "", url: str = URL) -> dict[str, Any]:
    page = f"<html><head><title>New ferry makes its first crossing</title>{head}</head><body>{body}</body></html>"
    return extract("article", page, url)


def text_with(part: str) -> str:
    """The text of an article with something in the middle of it."""
    return str(article(f"<div><article>{HEADLINE}{FIRST}{SECOND}{part}{THIRD}{LAST}</article></div>")["articleBody"])


def text_above(part: str) -> str:
    """The text of an article with something below it."""
    html = f"<div><div class='x1'>{HEADLINE}{FIRST}{SECOND}{THIRD}{LAST}{part}</div></div>"
    return str(article(html)["articleBody"])


@pytest.mark.parametrize(
    "part",
    [
        "<div class='ad-slot'>Buy an engine now, before the summer is over and all of them are gone.</div>",
        "<p>Advertisement</p>",
        "<p class='wp-caption-text'>The ferry on its way across the strait, seen from the harbour.</p>",
        "<figure><img src='/a.jpg'><figcaption>The ferry in the harbour of the island</figcaption></figure>",
        "<aside>A ferry carries people and cars across water, and is older than most bridges are.</aside>",
        "<p><a href='/old-boat'>The old boat: fifty years on the strait, and a captain who knows them all</a></p>",
        "<p>Read more: <a href='/old-boat'>Fifty years on the strait</a></p>",
        "<p>Lire aussi : <a href='/old-boat'>Cinquante ans sur le détroit</a></p>",
        "<ul><li><a href='/a'>Harbour to be rebuilt</a></li><li><a href='/b'>Captain of the year</a></li></ul>",
        "<h4>More:</h4><ul><li><a href='/a'>Harbour to be rebuilt</a></li><li><a href='/b'>Captain</a></li></ul>",
        "<div style='display: none'><p>This notice is for those whose browser does not know how to hide it.</p></div>",
        "<div class='newsletter-signup'><p>All that happens at sea, in your inbox every morning at seven.</p></div>",
        "<p>Sign up for our newsletter and never miss a boat again.</p>",
        "<p>Photo: Ada Berg</p>",
        "<p>Foto: Ada Berg</p>",
        "<form><p>Write what you think of the ferry, and we may print it on Sunday.</p><input name=a></form>",
        f"<blockquote class='x'>{PARAGRAPHS[0][:60]}</blockquote>",
        "<p>* * *</p>",
    ],
)
def test_what_is_set_into_the_text_is_not_of_it(part: str) -> None:
    assert text_with(part) == TEXT


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("<h2>What comes next</h2>", "What comes next"),
        ("<p>___</p>", "___"),
        ("<h2 id='social-shopping'>What social shopping is</h2>", "What social shopping is"),
        ("<ul><li>One oar</li><li>Two <a href='/a'>anchors</a> of iron</li></ul>", "One oar\nTwo anchors of iron"),
        ("<h3><button>Is it fast?</button></h3><div>It is new, too.</div>", "Is it fast?\n\nIt is new, too."),
        ("<blockquote><p>It is quieter than I am.</p></blockquote>", "It is quieter than I am."),
        ("<div>It has three decks, and wind on all of them.</div>", "It has three decks, and wind on all of them."),
        ("<table><tr><td>Length</td><td>40 m</td></tr></table>", "Length 40 m"),
        ("<p>It is fast.<br>It is new.</p>", "It is fast.\nIt is new."),
        ("<p>She said <em>un</em>believable things.</p>", "She said unbelievable things."),
        (
            "<p>It took <a href='https://yard.example.org/x'>five years</a> to build.</p>",
            "It took five years to build.",
        ),
        ("<ul><li><a href='https://yard.example.org/x'>The yard of it</a></li></ul>", "The yard of it"),
        ("<pre>speed = 12\nferry.start(speed)</pre>", "speed = 12\nferry.start(speed)"),
    ],
)
def test_what_stands_in_the_text_is_of_it(part: str, text: str) -> None:
    assert text_with(part) == "\n\n".join([*PARAGRAPHS[:2], text, *PARAGRAPHS[2:]])


@pytest.mark.parametrize(
    "part",
    [
        "<h3>Related articles</h3><p>Harbour to be rebuilt by next year</p><p>Captain of the year is chosen</p>",
        "<h3>Das könnte Sie auch interessieren</h3><p>Der Hafen wird umgebaut</p>",
        "<h3>Te puede interesar</h3><p>El puerto será reconstruido</p>",
        "<h3>Читайте также</h3><p>Порт перестроят</p>",
        "<p>関連記事</p><p>港は来年までに再建される</p>",
        "<h3>3 comments</h3><p>I have been on it yesterday, and it was as loud as the old one, if you ask me.</p>",
        "<h2>Отзывы</h2><p>Я плавал на нём вчера, и он такой же шумный, как и старый, если вы спросите меня.</p>",
        "<div id='comments'><p>I have been on it yesterday, and it was as loud as the old one, I think.</p></div>",
        "<div class='author-bio'><p>Ada Berg writes about boats, and has done so for twenty years.</p></div>",
        "<h3>About the author</h3><p>Ada Berg writes about boats.</p>",
        "<p>© 2024 Example News</p>",
        "<p>Tags: <a href='/t/a'>ferry</a>, <a href='/t/b'>island</a></p>",
        "<div class='share-buttons'>Share it with your friends, they will be glad to hear from you.</div>",
        "<p><a href='/next'>Next: the harbour</a></p>",
        "<p>May 13, 2024</p>",
        "<h2>What comes next</h2>",
    ],
)
def test_the_text_ends_where_the_page_turns_to_other_things(part: str) -> None:
    assert text_above(part) == TEXT


@pytest.mark.parametrize(
    "part",
    [
        "<p>By Ada Berg</p>",
        "<p>Published on May 13, 2024</p>",
        "<div>Travel</div>",
        "<div>5 min read</div>",
        "<p class='standfirst'>Islanders had to wait for it for five years, and then for another hour.</p>",
        "<div class='breadcrumbs'><a href='/'>Home</a> Travel by sea and all that comes with it</div>",
    ],
)
def test_the_text_begins_below_byline_and_date(part: str) -> None:
    assert article(f"<article>{HEADLINE}{part}{FIRST}{SECOND}{THIRD}{LAST}</article>")["articleBody"] == TEXT


def test_what_stands_above_the_headline_is_not_of_the_text() -> None:
    news = (
        "<div>Breaking: the bridge to the mainland is closed, as lorries cannot pass each other on it any more.</div>"
    )
    assert article(f"{news}{HEADLINE}{FIRST}{SECOND}{THIRD}{LAST}")["articleBody"] == TEXT


def test_a_text_in_several_boxes_is_found_whole() -> None:
    html = f"<div class='chunks'>{HEADLINE}<div>{FIRST}{SECOND}</div><hr><div>{THIRD}{LAST}</div></div>"
    assert article(html)["articleBody"] == TEXT


def test_a_long_introduction_outside_of_the_box_is_found() -> None:
    introduction = f"<div class='x1'>{FIRST}{SECOND}</div>"
    html = f"<main>{HEADLINE}{introduction}<div class='x2'>{THIRD * 3}{LAST * 6}</div></main>"
    assert article(html)["articleBody"].startswith("\n\n".join(PARAGRAPHS[:2]))


def test_comments_that_are_longer_than_the_article_are_not_taken_for_it() -> None:
    comment = "<p>I have been on it yesterday, and it was as loud as the old one, if you ask anybody who was there.</p>"
    html = f"<article>{HEADLINE}{FIRST}{SECOND}{THIRD}{LAST}</article><div class='comments'>{comment * 30}</div>"
    assert article(html)["articleBody"] == TEXT


def test_the_box_that_the_page_calls_its_text_is_taken_rather_than_longer_ones() -> None:
    other = (
        "<div class='rail-2'><p>The harbour will be rebuilt by next year, as the council decided on Friday.</p></div>"
    )
    html = f"{HEADLINE}<div itemprop='articleBody'>{FIRST}{SECOND}{THIRD}{LAST}</div><div>{other * 6}</div>"
    assert article(html)["articleBody"] == TEXT


def test_names_that_mean_something_else_on_a_page_do_not_lose_its_text() -> None:
    paragraphs = "".join(f"<div class='teaser'>{part}</div>" for part in (FIRST, SECOND, THIRD, LAST))
    assert article(f"<div>{HEADLINE}{paragraphs}</div>")["articleBody"] == TEXT


def test_a_form_around_the_whole_page_does_not_lose_its_text() -> None:
    assert article(f"<form>{HEADLINE}{FIRST}{SECOND}{THIRD}{LAST}</form>")["articleBody"] == TEXT


def test_paragraphs_that_only_breaks_set_apart_are_paragraphs() -> None:
    html = f"<td><h1>New ferry makes its first crossing</h1>{'<br><br>'.join(PARAGRAPHS)}<br><br>Advertisement</td>"
    assert article(f"<table><tr>{html}</tr></table>")["articleBody"] == TEXT


def test_a_text_without_spaces_between_words_is_found() -> None:
    text = "新しいフェリーが月曜日に初めて海峡を渡り、一時間遅れで港の拍手に迎えられたと船長は語った。"
    html = f"<div><h1>新しいフェリー</h1><div>{''.join(f'<p>{text}{n}</p>' for n in range(5))}</div></div>"
    body = extract("article", f"<html lang=ja><title>新しいフェリー</title><body>{html}</body></html>", URL)[
        "articleBody"
    ]
    assert body == "\n\n".join(f"{text}{n}" for n in range(5))


def test_a_text_that_only_the_markup_has_is_taken_from_there() -> None:
    text = " ".join(PARAGRAPHS * 2)
    markup = f'<script type="application/ld+json">{{"@type": "NewsArticle", "articleBody": "{text}"}}</script>'
    item = article(f"{HEADLINE}<div id='app'>Loading the article, please wait for a moment</div>", markup)
    assert item["articleBody"] == text
    assert PARAGRAPHS[0] in item["articleBodyHtml"]


def test_the_html_has_the_text_and_the_pictures_with_their_captions() -> None:
    picture = "<figure><img src='/a.jpg'><figcaption>The ferry in the harbour</figcaption></figure>"
    share = "<div class='share-buttons'><a href='/s'>Share with friends</a></div>"
    below = "<h3>Related articles</h3><p>Harbour to be rebuilt</p>"
    item = article(
        f"<div class='x1'>{HEADLINE}<p>By Ada Berg</p>{FIRST}{share}{picture}{SECOND}<h2>What comes next</h2>{THIRD}"
        f"{LAST}{below}</div>"
    )
    html = item["articleBodyHtml"]
    assert "The ferry in the harbour" in html
    assert 'src="https://news.example.com/a.jpg"' in html
    assert "<h2>What comes next</h2>" in html
    without_captions = re.sub("<figcaption>.*?</figcaption>", "", html, flags=re.DOTALL)
    assert html_text.extract_text(without_captions).split() == item["articleBody"].split()


def test_a_heading_that_has_nothing_of_the_title_is_not_the_headline() -> None:
    html = f"<div><h2>By the sea</h2>{FIRST}{SECOND}{THIRD}{LAST}</div><h1>A message from our founder</h1>"
    assert article(html)["headline"] == "New ferry makes its first crossing"


def test_a_site_is_the_author_of_its_pages_only_where_nobody_else_is_named() -> None:
    head = '<meta property="og:site_name" content="Example News"><meta name="author" content="Example News">'
    html = f"<article>{HEADLINE}{FIRST}{SECOND}{THIRD}{LAST}</article>"
    assert [author["name"] for author in article(html, head)["authors"]] == ["Example News"]
    shown = f"<article>{HEADLINE}<p class='byline'>By Ada Berg</p>{FIRST}{SECOND}{THIRD}{LAST}</article>"
    assert [author["name"] for author in article(shown, head)["authors"]] == ["Ada Berg"]


def test_an_office_right_behind_a_name_is_not_of_the_name() -> None:
    byline = "<p class='byline'>By <span>Ada Berg</span> <span>Senior Reporter</span></p>"
    item = article(f"<article>{HEADLINE}{byline}{FIRST}{SECOND}{THIRD}{LAST}</article>")
    assert [author["name"] for author in item["authors"]] == ["Ada Berg"]


@pytest.mark.parametrize(
    "line",
    [
        "Already a member of the union, the captain had a vote.",
        "Already registered as a museum, the old boat needs a mooring.",
        "Sign in to continue, said the screen, and the pump stood still.",
        "Weiterlesen mit Genuss war der Wahlspruch des Vereins.",
        "Jetzt können Fahrgäste die Räder kostenlos testen.",
    ],
)
def test_sentences_that_begin_as_an_offer_to_subscribe_are_of_the_text(line: str) -> None:
    assert line in text_with(f"<p>{line}</p>")


@pytest.mark.parametrize(
    "line",
    [
        "Already a subscriber? Log in",
        "Already a member",
        "Sign in to continue reading",
        "Jetzt einen Monat kostenlos testen und alle Artikel lesen.",
        "Weiterlesen mit dem Abo von Example News",
    ],
)
def test_offers_to_subscribe_are_not_of_the_text(line: str) -> None:
    assert text_with(f"<p>{line}</p>") == TEXT


@pytest.mark.parametrize(
    "sentence",
    [
        "You may also be interested in these stories from our archive:",
        "Lesen Sie hier mehr zum Thema Fähren im Norden:",
    ],
)
def test_a_list_of_other_articles_is_not_of_the_text_whatever_announces_it(sentence: str) -> None:
    links = "<ul><li><a href=/a>The eel ladder is opened</a></li><li><a href=/b>A slip for boats</a></li></ul>"
    assert "eel ladder" not in text_with(f"<p>{sentence}</p>{links}")
    assert "eel ladder" in text_with(f"<p>The council has written two papers about the harbour:</p>{links}")


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("es", '<p>Por <a href="/autor/ana">Ana Ruiz</a> | 3 de mayo de 2024 | 1.234 lecturas</p>'),
        ("es", "<p>Redacción | 03/05/2024 10:20 | Visto 345 veces</p>"),
        ("es", "<p>Publicado el 3 de mayo de 2024 por Ana de la Cruz · 5 comentarios</p>"),
        ("es", "<div><span>Ana Ruiz</span> <span>3 de mayo de 2024</span> <span>1.234 lecturas</span></div>"),
        ("ru", "<p>3 мая 2024, 10:15 | Иван Петров | 1234 просмотра</p>"),
        ("ru", "<div>3 мая 2024 | Автор: Иван Петров | Просмотров: 1234</div>"),
        ("tr", "<p>03.05.2024 - 10:15 | Okunma: 345</p>"),
        ("zh", "<p>2024-05-03 10:15 来源：新华网 阅读：1234次</p>"),
    ],
)
def test_a_line_of_facts_is_before_the_text(lang: str, line: str) -> None:
    text = "The council closes the old bridge for three months, and people cross by the wooden one."
    html = f"<h1>Old bridge closes</h1><div class=post>{line}<p>{text}</p><p>Work ends in August, it said.</p></div>"
    page = f"<html lang={lang}><title>Old bridge closes</title><body>{html}</body></html>"

    assert extract("article", page, "https://www.example.com/1")["articleBody"].startswith(text)


@pytest.mark.parametrize(
    "line",
    [
        "On May 3, 2024 the mayor | a man of 54 | resigned from office",
        "May 3, 2024 – The Council said no to it",
        "Version 2.1 | Linux",
        "First prize: Ann Roe / 300 euro",
    ],
)
def test_a_first_line_that_is_no_line_of_facts_is_of_the_text(line: str) -> None:
    text = "The council closes the old bridge for three months, and people cross by the wooden one."
    html = f"<h1>Old bridge closes</h1><div class=post><p>{line}</p><p>{text}</p><p>Work ends in August.</p></div>"
    page = f"<html lang=en><title>Old bridge closes</title><body>{html}</body></html>"

    assert extract("article", page, "https://www.example.com/1")["articleBody"].startswith(line)


def test_a_page_may_name_its_text_a_comment() -> None:
    text = "I moved to the village because the city was too loud, and I have not been sorry for a day since then."
    html = f"<div class=comment><p class=author>Ann Roe</p><p class=date>May 3, 2024</p><p>{text}</p></div>"
    page = f"<html lang=en><title>Why I moved</title><body><header>Letters</header>{html}</body></html>"
    found = extract("article", page, "https://www.example.com/1")

    assert found["articleBody"] == text
    assert [author["name"] for author in found["authors"]] == ["Ann Roe"]


LONG = "The council closes the old bridge for three months, and people cross by the wooden one."


def body_of(inner: str, name: str = "article-body") -> str:
    html = f"<h1>Old bridge closes</h1><div class={name}>{inner}</div>"
    page = f"<html lang=en><title>Old bridge closes</title><body>{html}<footer>About us</footer></body></html>"
    text: str = extract("article", page, "https://www.example.com/1")["articleBody"]
    return text


@pytest.mark.parametrize(
    "box",
    [
        "<div class=embed><p>Recommended content</p><button>Load content</button></div>",
        "<div class=x><span>Map of the river</span> <button>Open</button> <button>Enlarge</button></div>",
        "<section><p>Hear this article</p><div><button>Play</button></div></section>",
    ],
)
def test_a_box_with_a_button_and_words_on_it_is_no_text(box: str) -> None:
    assert (
        body_of(f"<p>{LONG}</p>{box}<p>Work ends in August, it said.</p>") == f"{LONG}\n\nWork ends in August, it said."
    )


@pytest.mark.parametrize(
    "box",
    [
        "<div><p>He said no.</p><button>Share</button></div>",
        "<div><pre>make test</pre><button>Copy</button></div>",
        "<div><h2>What comes next</h2><button>Copy link</button></div><p>Nothing.</p>",
    ],
)
def test_a_sentence_code_or_a_heading_beside_a_button_is_text(box: str) -> None:
    text = body_of(f"<p>{LONG}</p>{box}<p>Work ends in August, it said.</p>")

    assert any(part in text for part in ("He said no.", "make test", "What comes next"))


@pytest.mark.parametrize("name", ["caption", "img-caption", "wp-caption-text"])
def test_a_caption_is_no_text_in_whatever_element(name: str) -> None:
    picture = f'<div><img src="/1.jpg"><span class="{name}">The mayor at the bridge (Photo: Leo Sosa)</span></div>'

    assert body_of(f"{picture}<p>{LONG}</p><p>Work ends.</p>") == f"{LONG}\n\nWork ends."


def test_a_part_named_teaser_is_text_where_it_leads_to_no_other_page() -> None:
    rest = "<p>The reason is the flood of the spring, which damaged two of the piers below the water.</p>"
    link = "<div class=teaser><a href=/2>Ferry</a><p>The ferry stops for the winter, as it does in each year.</p></div>"

    assert body_of(f"<div class=teaser-content><p>{LONG}</p></div><div class=rest>{rest * 2}</div>").startswith(LONG)
    assert body_of(f"<section class=teaser><p>{LONG}</p></section>{rest}").startswith(LONG)
    assert "winter" not in body_of(f"<p>{LONG}</p>{link}{rest}")


@pytest.mark.parametrize("short", ["You can cross now.", "“It is open!”", "Nobody came?"])
def test_a_short_paragraph_before_the_box_of_the_others_is_text(short: str) -> None:
    others = f"<div class=row><div><p>{LONG}</p><p>{LONG[4:]}</p></div></div>"

    assert body_of(f"<div class=row><div><p>{short}</p></div></div>{others}").startswith(short)
    assert body_of(f"{others}<div class=row><p>{short}</p></div>").endswith(short)


@pytest.mark.parametrize("sign", ["jbe/dpa", "dpa/AFP", "(AP)", "mka, Reuters"])
def test_the_sign_of_an_agency_is_no_text(sign: str) -> None:
    assert body_of(f"<p>{LONG}</p><p>Work ends in August.</p><p>{sign}</p>").endswith("August.")
    assert body_of(f"<p>{LONG}</p><p>Work ends in August, so dpa.</p>").endswith("so dpa.")


@pytest.mark.parametrize(
    "line",
    [
        "Seit 3. Mai 2024 in Berlin", "Since May 3, 2024 in Berlin", "Depuis le 3 mai 2024 à Paris",
        "Opening May 3, 2024 at Tate Modern", "С 3 мая 2024 в Москве", "Born May 3, 1984 in Oslo",
    ],
)  # fmt: skip
def test_a_phrase_around_a_date_at_the_head_is_of_the_text(line: str) -> None:
    assert article(f"<article>{HEADLINE}<p>{line}</p>{FIRST}{SECOND}{THIRD}</article>")["articleBody"].startswith(line)


@pytest.mark.parametrize(
    "line",
    [
        "Posted on May 3, 2024 in News", "Veröffentlicht am 3. Mai 2024 in Politik",
        "Publié le 3 mai 2024 dans Politique",
        "Ada Berg, May 3, 2024 in Politics", "Opdateret 3. maj 2024 kl. 10.30 i Sport", "Blog 3 May 2024 no comments",
        "Fri May 3 10:15:00 UTC 2024", "Sydney 3 May 2024 10:30am",
    ],
)  # fmt: skip
def test_a_line_with_the_day_of_the_text_at_the_head_is_not(line: str) -> None:
    assert line not in article(f"<article>{HEADLINE}<p>{line}</p>{FIRST}{SECOND}{THIRD}</article>")["articleBody"]


def test_a_newsletter_ends_above_the_reason_why_it_was_sent() -> None:
    footer = (
        "<p>You receive this email because you signed up. <a href=/u>Unsubscribe</a></p><p>Letter, 4 Quay Street</p>"
    )
    assert text_above(footer) == TEXT
    # In the text, it is a sentence.
    assert "Unsubscribe rates fell" in text_with("<p>Unsubscribe rates fell in May, says the harbour office.</p>")


def test_links_to_edit_a_section_are_not_of_the_text() -> None:
    link = '<span class="mw-editsection">[<a href="/edit">edit</a>]</span>'
    text = text_with(f"<h2><span>History</span>{link}</h2><p>The first plans date from 1854.</p>")
    assert "\n\nHistory\n\n" in text


def test_headings_that_are_sentences_are_the_text_of_a_list_of_pictures() -> None:
    captions = [f"{n}. This lamp has been a chair of gulls for {n} summers." for n in range(1, 6)]
    html = "".join(f"<h2>{caption}</h2><figure><img src=/{n}.jpg></figure>" for n, caption in enumerate(captions))
    assert article(f"<article>{HEADLINE}{html}</article>")["articleBody"] == "\n\n".join(captions)


def test_the_number_of_a_release_with_its_day_is_of_the_text() -> None:
    first = "<h2>2.1.0 (2024-05-03)</h2><ul><li>Lamps are trimmed by themselves.</li></ul>"
    rest = "<h2>2.0.0 (2023-11-20)</h2><ul><li>Removed the old burner.</li></ul>"
    html = f"<html><title>Changelog</title><main><h1>Changelog</h1>{first}{rest}</main></html>"
    assert extract("article", html, URL)["articleBody"].startswith("2.1.0 (2024-05-03)")


ANSWERS = [
    ("When does the first ferry leave?", "The first ferry leaves at six in the morning, every day of the year."),
    ("How many cars fit on it?", "Forty cars fit on it, or thirty cars and two buses that come an hour before."),
]
HEADED = "<h3><button aria-expanded=false aria-controls={id}>{question}</button></h3>"


@pytest.mark.parametrize(
    "part",
    [
        HEADED + "<div id={id} hidden><p>{answer}</p></div>",
        HEADED + "<div id={id} hidden=until-found><p>{answer}</p></div>",
        HEADED + "<div id={id} aria-hidden=true><p>{answer}</p></div>",
        HEADED + "<div id={id} style='display:none'><p>{answer}</p></div>",
        "<h3 aria-controls={id}>{question}</h3><div id={id} style='display:none'><p>{answer}</p></div>",
        "<h3><a href='#{id}' data-toggle=collapse>{question}</a></h3><div id={id} aria-hidden=true>{answer}</div>",
        "<button aria-controls={id}>{question}</button><div id={id} hidden><p>{answer}</p></div>",
        "<div><div role=button aria-controls={id}>{question}</div><div id={id} hidden><p>{answer}</p></div></div>",
        "<h3 id=h{id}>{question}</h3><div role=region aria-labelledby=h{id} hidden><p>{answer}</p></div>",
        "<div><div><h3>{question}</h3><i class=icon></i></div><div style='display: none;'><p>{answer}</p></div></div>",
        "<details><summary>{question}</summary><p>{answer}</p></details>",
        "<div class=faq-item><p>{question}</p><div hidden><p>{answer}</p></div></div>",
    ],
)
def test_a_hidden_text_that_its_question_opens_comes_with_it(part: str) -> None:
    parts = (part.format(id=f"a{at}", question=q, answer=a) for at, (q, a) in enumerate(ANSWERS))
    assert text_with("".join(parts)).split("\n\n")[2:-2] == [text for pair in ANSWERS for text in pair]


@pytest.mark.parametrize(
    "part",
    [
        "<div hidden><p>This notice is for those who have no script, and says that they need one.</p></div>",
        "<h3>Another ferry</h3><div hidden><p>This part is a draft that the editors have not yet released.</p></div>",
        "<h3><button aria-controls=m>More</button></h3><ul id=m hidden><li><a href=/a>A page about boats</a></ul>",
        "<h3><button aria-controls=f>Write to us</button></h3><div id=f hidden><p>We answer each of your letters."
        "</p><input name=a></div>",
        "<div role=dialog><h3><button aria-controls=d>Cookies</button></h3><div id=d hidden>We use them to count the "
        "visits of this page, and for nothing else.</div></div>",
        "<h3>Price <a href='#m'>details</a></h3><div id=m class=modal hidden>This notice is a box over the page.</div>",
        "<h3><button aria-controls=s>Share</button></h3><div id=s hidden>This notice is on how to share it.</div>",
        "<h3><a href='#l'>Log in</a></h3><div id=l hidden>This notice is for the members, who can read it all.</div>",
        "".join(
            f"<p>{question}</p><div hidden>This notice is an advertisement for lamps.</div><p>It was {answer}.</p>"
            for question, answer in (("How did it begin?", "a dare"), ("And what is it now?", "always work"))
        ),
    ],
)
def test_other_hidden_parts_stay_out(part: str) -> None:
    found = text_with(part)
    assert found.startswith("\n\n".join(PARAGRAPHS[:2]))
    assert not re.search("notice|draft|boats|letters|visits", found)


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("The old boat <span role=button>Share</span>", "The old boat"),
        ("<span role=button tabindex=0>Save</span> The old boat", "The old boat"),
        ("The old boat <a role=button href='#b'>Copy link</a>", "The old boat"),
        ("<span>The old boat</span><span role=button aria-label=Copy>#</span>", "The old boat"),
        ("The old boat, <span role=button>white</span>", "The old boat, white"),
        ("What is <span role=button>tonnage</span>?", "What is tonnage?"),
        ("A guide to <span role=button>tonnage</span>", "A guide to tonnage"),
        ("<span role=button>The old boat</span>", "The old boat"),
        ("All about <span role=button>tonnage</span>", "All about tonnage"),
        ("Advice for <span role=button>sailors</span>", "Advice for sailors"),
        ("Der Preis der <span role=button>Tonnage</span>", "Der Preis der Tonnage"),
        ("<span role=button>Tonnage</span> of old boats", "Tonnage of old boats"),
        ("<span role=button>1854</span>: the first boat", "1854: the first boat"),
    ],
)
def test_an_element_with_the_role_of_a_button_beside_a_heading_is_not_of_it(heading: str, text: str) -> None:
    assert text_with(f"<h2>{heading}</h2>").split("\n\n")[2] == text
