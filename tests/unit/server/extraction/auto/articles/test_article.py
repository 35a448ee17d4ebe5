"""Fields of extracted articles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://news.example.com/2024/05/ferry"
PARAGRAPHS = [
    "The new ferry crossed the strait on Monday for the first time, an hour late and to the applause of the harbour.",
    "It takes forty cars and runs on batteries that are charged while the passengers get off, said the captain.",
    "The old boat, which has served the island since 1971, will be sold. Nobody has made an offer for it yet.",
    "For the islanders the crossing becomes shorter by ten minutes, and the last boat leaves at eleven in the evening.",
]
BODY = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
PAGE = f"""
<header><nav><a href="/">Home</a><a href="/sport">Sport</a></nav></header>
<main><article>
  <h1>New ferry makes its first crossing</h1>
  <p class="byline">By <a rel="author" href="/people/ada-berg">Ada Berg</a></p>
  <time class="published" datetime="2024-05-13T18:30:00+02:00">13 May 2024</time>
  <figure><img src="/img/ferry.jpg" width="800"><figcaption>The ferry in the harbour</figcaption></figure>
  {BODY}
  <h2>What comes next</h2><p>A second boat follows in autumn, if the shipyard keeps its word this time around.</p>
</article></main>
<aside class="related"><p>Read more: ten tips for the holidays that you should not miss by the sea</p></aside>
<footer><p>Copyright 2024 Example News. All rights reserved, terms and conditions apply to our services.</p></footer>
"""


def article(body: str = PAGE, head: str = "", lang: str = "en", url: str = URL) -> dict[str, Any]:
    return extract("article", f'<html lang="{lang}"><head>{head}</head><body>{body}</body></html>', url)


def json_ld(thing: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(thing)}</script>'


def test_the_body_has_the_prose_and_not_the_menus() -> None:
    body = article()["articleBody"]
    for paragraph in PARAGRAPHS:
        assert paragraph in body
    for stranger in ("Sport", "Read more", "Copyright"):
        assert stranger not in body


def test_the_body_has_paragraphs_and_sub_headings_apart_and_not_the_headline() -> None:
    body = article()["articleBody"]
    assert f"{PARAGRAPHS[0]}\n\n{PARAGRAPHS[1]}" in body
    assert "\n\nWhat comes next\n\n" in body
    assert "New ferry makes its first crossing" not in body


def test_the_body_begins_with_the_text_and_not_with_byline_and_date() -> None:
    html = f"""<article><h1>A headline of some length</h1><p><span class="author">By Ada Berg</span> ·
    <time class="published" datetime="2024-05-13">May 13, 2024</time></p>{BODY}</article>"""
    assert article(html)["articleBody"].startswith(PARAGRAPHS[0])


def test_a_first_sentence_that_names_the_author_stays() -> None:
    html = f'<article><h1>A headline</h1><p class="byline">By Ada Berg</p><p>Ada Berg likes boats.</p>{BODY}</article>'
    assert article(html)["articleBody"].startswith("Ada Berg likes boats.")


def test_the_html_of_the_body_keeps_structure_and_pictures_without_attributes_of_style() -> None:
    html = article()["articleBodyHtml"]
    assert html.startswith("<article>")
    assert "<h2>What comes next</h2>" in html
    assert 'src="https://news.example.com/img/ferry.jpg"' in html
    assert "class=" not in html
    assert "Read more" not in html


def test_the_html_of_the_body_has_nothing_that_runs() -> None:
    html = f"""<article><h1>A headline</h1>{BODY}
    <p onclick="bad()">The <a href="javascript:bad()">harbour</a> was full of people until late in the evening.</p>
    <img src="/a.jpg" onerror="bad()"><img src="data:image/svg+xml,bad"><iframe src="javascript:bad()"></iframe>
    <svg onload="bad()"></svg><script>bad()</script><object data="bad"></object><p>{PARAGRAPHS[0]}</p></article>"""
    body = article(html)["articleBodyHtml"]
    assert "harbour" in body
    assert '<img src="https://news.example.com/a.jpg">' in body
    assert "bad" not in body


def test_headline_author_date_and_language_are_read_from_the_page_itself() -> None:
    item = article()
    assert item["headline"] == "New ferry makes its first crossing"
    assert item["authors"] == [
        {"name": "Ada Berg", "nameRaw": "Ada Berg", "url": "https://news.example.com/people/ada-berg"}
    ]
    assert item["datePublished"] == "2024-05-13T18:30:00+02:00"
    assert item["inLanguage"] == "en"
    assert item["mainImage"] == {"url": "https://news.example.com/img/ferry.jpg"}
    # Of pages without markup of an article, some with an author and a date are of another kind.
    assert 0.7 < item["metadata"]["probability"] < 0.9


def test_markup_gives_several_authors_and_both_dates() -> None:
    thing = {
        "@type": ["NewsArticle"],
        "headline": "New ferry makes its first crossing",
        "author": [
            {"@type": "Person", "name": "Ada Berg", "url": "/people/ada-berg"},
            {"@type": "Person", "name": "Bo Lind"},
        ],
        "datePublished": "2024-05-13T18:30:00Z",
        "dateModified": "2024-05-14T07:00:00.123+02:00",
        "image": {"@type": "ImageObject", "url": "/img/large.jpg"},
    }
    item = article(head=json_ld({"@graph": [thing]}))
    assert [author["name"] for author in item["authors"]] == ["Ada Berg", "Bo Lind"]
    assert item["authors"][0]["url"] == "https://news.example.com/people/ada-berg"
    assert (item["datePublished"], item["datePublishedRaw"]) == ("2024-05-13T18:30:00Z", "2024-05-13T18:30:00Z")
    assert item["dateModified"] == "2024-05-14T07:00:00+02:00"
    assert item["images"][0] == {"url": "https://news.example.com/img/large.jpg"}


def test_references_inside_of_a_graph_are_followed() -> None:
    graph = [
        {"@type": "Article", "headline": "x", "author": {"@id": "#ada"}, "datePublished": "2024-05-13"},
        {"@type": "Person", "@id": "#ada", "name": "Ada Berg"},
    ]
    assert article(head=json_ld({"@graph": graph}))["authors"][0]["name"] == "Ada Berg"


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("By Ada Berg and Bo Lind", ["Ada Berg", "Bo Lind"]),
        ("By Ada Berg, Bo Lind & Cy Moe", ["Ada Berg", "Bo Lind", "Cy Moe"]),
        ("Written by: Ada Berg, PhD | 13 May 2024", ["Ada Berg, PhD"]),
        ("Von Ada Berg", ["Ada Berg"]),
        ("By Ada Berg, Senior Editor", ["Ada Berg"]),
        ("By Ada Berg, Bo Lind, Staff Writers", ["Ada Berg", "Bo Lind"]),
        ("By Ada Berg, <time>3 hours ago</time>", ["Ada Berg"]),
        ("By Ada Berg 3 hours ago", ["Ada Berg"]),
        ("Ada Berg, 3 May", ["Ada Berg"]),
        ("By Ada Berg and 2 others", ["Ada Berg"]),
    ],
)
def test_a_byline_is_taken_apart_into_names(written: str, names: list[str]) -> None:
    html = f'<article><h1>A headline of some length</h1><p class="byline">{written}</p>{BODY}</article>'
    assert [author["name"] for author in article(html)["authors"]] == names


@pytest.mark.parametrize(
    "name", ["admin", "Site Admin", "https://a.example.com/ada", "Share", "20 Nov 2019", "Monday 08:00 GMT"]
)
def test_what_is_no_name_is_no_author(name: str) -> None:
    assert "authors" not in article(f"<h1>A headline</h1>{BODY}", f'<meta name="author" content="{name}">')


@pytest.mark.parametrize(
    ("lang", "written", "iso"),
    [
        ("en", "March 3, 2024", "2024-03-03T00:00:00"),
        ("en", "3rd of March 2024", "2024-03-03T00:00:00"),
        ("de", "3. März 2024", "2024-03-03T00:00:00"),
        ("fr", "3 août 2024", "2024-08-03T00:00:00"),
        ("es", "3 de marzo de 2024", "2024-03-03T00:00:00"),
        ("ru", "3 марта 2024", "2024-03-03T00:00:00"),
        ("ja", "2024年3月3日", "2024-03-03T00:00:00"),
        ("de", "03.04.2024", "2024-04-03T00:00:00"),
        ("en-GB", "03/04/2024", "2024-04-03T00:00:00"),
        ("en-US", "03/04/2024", "2024-03-04T00:00:00"),
        ("en", "03/24/2024", "2024-03-24T00:00:00"),
    ],
)
def test_dates_are_read_in_the_language_of_the_page(lang: str, written: str, iso: str) -> None:
    item = article(f'<h1>A headline</h1><p class="published">{written}</p>{BODY}', lang=lang)
    assert item["datePublished"] == iso
    assert item["datePublishedRaw"] == written


def test_a_date_that_could_be_two_days_is_left_out() -> None:
    assert "datePublished" not in article(f'<h1>A headline</h1><p class="published">03/04/2024</p>{BODY}', lang="en")


@pytest.mark.parametrize(
    "date", ["1970-01-01", "0001-01-01T00:00:00Z", "2024-13-45", "yesterday", "2924-01-01", "99999999"]
)
def test_a_date_that_is_none_is_left_out(date: str) -> None:
    assert "datePublished" not in article(f"<h1>x</h1>{BODY}", f'<meta name="date" content="{date}">')


def test_a_date_in_the_prose_is_not_taken_for_the_date_of_publication() -> None:
    html = f"<h1>A headline</h1>{BODY}<p>On March 3, 2020 the council had decided to buy the boat after all.</p>"
    assert "datePublished" not in article(html)


def test_a_date_of_change_is_not_taken_for_the_date_of_publication() -> None:
    item = article(f'<h1>A headline</h1><p class="date">Updated March 3, 2024</p>{BODY}')
    assert item["dateModified"] == "2024-03-03T00:00:00"
    assert "datePublished" not in item


def test_a_list_of_other_articles_in_the_markup_does_not_date_this_one() -> None:
    others = [
        {"@type": "BlogPosting", "headline": f"Other story number {n}", "datePublished": "2020-01-01"} for n in range(5)
    ]
    assert "datePublished" not in article(f"<h1>A headline</h1>{BODY}", json_ld(others))


def test_the_name_of_the_site_is_taken_off_a_title() -> None:
    head = """<title>How to mend a net in an evening - Example News</title>
    <meta property="og:site_name" content="Example News">"""
    assert article(BODY, head)["headline"] == "How to mend a net in an evening"


def test_videos_and_audios_in_the_text_are_listed() -> None:
    media = """<video src="/v.mp4"></video><audio><source src="/a.mp3"></audio>
    <iframe src="https://www.youtube.com/embed/x1"></iframe>"""
    item = article(f"<article><h1>A headline</h1>{BODY}{media}<p>{PARAGRAPHS[0]} Again.</p></article>")
    assert [video["url"] for video in item["videos"]] == [
        "https://news.example.com/v.mp4",
        "https://www.youtube.com/embed/x1",
    ]
    assert item["audios"] == [{"url": "https://news.example.com/a.mp3"}]


def test_a_page_without_prose_is_hardly_an_article() -> None:
    assert article("<h1>Contact</h1><p>Call us.</p>")["metadata"]["probability"] < 0.2


def test_a_list_and_a_table_in_the_text_come_line_by_line() -> None:
    extra = "<ul><li>One oar</li><li>Two anchors</li></ul><table><tr><td>Length</td><td>40 m</td></tr></table>"
    body = article(f"<article><h1>A headline</h1>{BODY}{extra}<p>{PARAGRAPHS[0]}</p></article>")["articleBody"]
    assert "One oar\nTwo anchors" in body
    assert "Length 40 m" in body


def test_the_headline_is_the_heading_below_that_of_the_book() -> None:
    title = "<title>Defining Shared Behaviour - The Ferry Book</title>"
    page = f"<h1>The Ferry Book</h1><main><h2>Defining Shared Behaviour</h2>{BODY}</main>"
    assert article(page, title)["headline"] == "Defining Shared Behaviour"
    # A logo above the headline is no heading of the content.
    logo = f"<h2>The Ferry Book</h2><h1>Defining Shared Behaviour</h1>{BODY}"
    assert article(logo, "<title>The Ferry Book - Defining Shared Behaviour</title>")["headline"] == (
        "Defining Shared Behaviour"
    )


def test_the_headline_has_no_name_of_the_site_at_its_end() -> None:
    head = '<title>Ferries of the year – Boats</title><meta property="og:site_name" content="Boats">'
    assert article(f"<h1>Ferries of the year – Boats</h1>{BODY}", head)["headline"] == "Ferries of the year"
    assert (
        article(f"<h1>Ferries of the year – Part two</h1>{BODY}", head)["headline"] == "Ferries of the year – Part two"
    )


def test_a_heading_that_shares_but_the_name_of_the_site_with_the_title_is_no_headline() -> None:
    head = """<title>Ferries of the year - Boats</title><meta property="og:title" content="Ferries of the year - Boats">
    <meta property="og:site_name" content="Boats">"""
    assert article(f"<h1>A message from John, founder at Boats</h1>{BODY}", head)["headline"] == "Ferries of the year"


def test_authors_who_sign_below_the_text_are_found() -> None:
    end = "<p>Written by Moses Kim and Kate Ash</p>"
    page = f"<h1>New ferry makes its first crossing</h1>{'<p><i>a</i><b>b</b></p>' * 40}{BODY}{end}"
    assert [author["name"] for author in article(page)["authors"]] == ["Moses Kim", "Kate Ash"]
    # Two signatures are those of other texts.
    assert "authors" not in article(f"{page}<p>Written by Ada Berg</p>")


def test_a_date_far_from_the_heading_counts_where_the_text_before_it_says_published() -> None:
    far = "<p><i>a</i><b>b</b></p>" * 40
    dates = "<div><h4>Published</h4><time>15 November 2018</time></div>"
    page = f"<h1>New ferry makes its first crossing</h1>{far}{{}}{BODY}"
    assert article(page.format(dates))["datePublished"] == "2018-11-15T00:00:00"
    assert "datePublished" not in article(page.format(dates.replace("Published", "Next crossing")))


def test_a_list_beside_the_article_dates_it_unless_it_links_to_others() -> None:
    beside = "<h1>New ferry</h1>" + BODY + "<aside><ul><li>{}</li><li>Updated 14 May 2024</li></ul></aside>"
    for line in ("Published 13 May 2024", '<time datetime="2024-05-13">13 May</time>'):
        found = article(beside.format(line))
        assert (found["datePublished"][:10], found["dateModified"][:10]) == ("2024-05-13", "2024-05-14")
    assert "datePublished" not in article(beside.format('<a href="/eel">The eel ladder</a> 13 May 2024'))
