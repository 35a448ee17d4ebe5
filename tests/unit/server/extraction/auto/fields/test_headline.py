"""The headline of a page: its visible heading, without labels and the name of the site."""

from __future__ import annotations

import re

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.fields.headline import headline_of
from scrapy_ext.server.extraction.auto.page import Focus, Page

SITE = '<meta property="og:site_name" content="Harbour Docs">'


def headline(head: str, body: str, url: str = "https://harbour.example/docs/wall") -> str | None:
    page = Page(f"<html><head>{head}</head><body>{body}</body></html>", url)
    return headline_of(page, None, Focus(page, page.meta("og:title", "twitter:title"), page.title))


@pytest.mark.parametrize(
    "heading",
    [
        '<h1><span class="label label--green">News</span>&nbsp;The wall of 1890</h1>',
        '<h1><span class="visually-hidden">Topic: </span>The wall of 1890</h1>',
        '<h1>The wall of 1890<a class="headerlink" href="#wall">¶</a></h1>',
    ],
)
def test_labels_and_links_in_a_heading_are_not_part_of_it(heading: str) -> None:
    assert headline("<title>The wall of 1890 | Harbour</title>", heading) == "The wall of 1890"


@pytest.mark.parametrize(
    "heading",
    [
        "<h1>The wall of 1890<span>A story in stones</span></h1>",
        "<h1><a href='#wall'>The wall of 1890</a> <a href='https://news.example'>(news.example)</a> <b>139</b></h1>",
        "<h1><span>Details about </span>The wall of 1890<span> - <a href='#'>show the original title</a></span></h1>",
        "<h1><div>Harbour</div><div>The <em>wall</em> of 1890</div></h1>",
    ],
)
def test_what_stands_beside_the_title_in_elements_of_a_heading_is_not_part_of_it(heading: str) -> None:
    assert headline("<title>The wall of 1890 | Harbour</title>", heading) == "The wall of 1890"


@pytest.mark.parametrize(
    ("head", "heading", "expected"),
    [
        ("<title>The wall | Harbour</title>", "<h1>Welcome to <em>the wall</em></h1>", "Welcome to the wall"),
        ("<title>Wall | Harbour</title>", "<h1>Wall <span>of 1890</span></h1>", "Wall of 1890"),
        (
            '<title>The wall | Harbour</title><meta property="og:title" content="The wall of 1890">',
            "<h1>The wall <span>of 1890</span></h1>",
            "The wall of 1890",
        ),
    ],
)
def test_a_heading_stays_where_its_own_text_or_another_title_has_more(head: str, heading: str, expected: str) -> None:
    assert headline(head, heading) == expected


def test_the_name_of_a_product_is_not_joined_to_the_line_below_it() -> None:
    page = "<title>Sea rope | Shop</title><h1>Sea rope<span class=tagline>For strong winds</span></h1><p>9.99 €</p>"
    assert extract("product", page, "https://shop.example/rope")["name"] == "Sea rope"


def test_a_button_in_a_heading_is_not_part_of_it() -> None:
    heading = '<h1>Wall of <span>stones</span>&nbsp;<button title="Copy the path">Copy item path</button></h1>'
    assert headline("<title>Wall in harbour::stones</title>", heading) == "Wall of stones"
    assert headline("<title>The wall of 1890</title>", "<h1><button>The wall</button></h1>") == "The wall"


@pytest.mark.parametrize(
    "linked",
    ['<h2><a href="index.html">In harbour::stones</a></h2>', '<a href="/stones"><h2>In harbour::stones</h2></a>'],
)
def test_a_heading_that_links_to_another_page_is_not_that_of_the_page(linked: str) -> None:
    body = f"<nav>{linked}</nav><h1>Wall of stones</h1><p>Text"
    assert headline("<title>Wall in harbour::stones | Harbour</title>", body) == "Wall of stones"


def test_a_heading_that_links_to_its_own_page_is_that_of_the_page() -> None:
    body = '<h2><a href="/docs/wall#top">The wall of 1890</a></h2><p>Text'
    assert headline("<title>Wall of 1890, the</title>", body) == "The wall of 1890"


def test_a_label_that_is_the_whole_heading_stays() -> None:
    assert headline("<title>News</title>", '<h1><span class="label">News</span></h1>') == "News"


@pytest.mark.parametrize(
    "title", ["Auth | Harbour Docs", "Auth | Guides | Harbour Docs", "Auth - Harbour", "Auth – harbour.example"]
)
def test_a_title_loses_the_site_and_its_sections(title: str) -> None:
    assert headline(f"<title>{title}</title>{SITE}", "<p>Text") == "Auth"


def test_the_name_of_the_site_as_the_only_heading_gives_way_to_the_title() -> None:
    title = '<meta property="og:title" content="Mechanical keyboard with 80 keys">'
    site = '<meta property="og:site_name" content="harbour.">'
    assert headline(title + site, "<h1>Harbour</h1>") == "Mechanical keyboard with 80 keys"


def test_a_slogan_gives_way_to_the_title() -> None:
    head = "<title>Email marketing tools | Harbour</title>"
    assert headline(head, "<h1>Reach thousands of customers through marketing</h1>") == "Email marketing tools"


def test_the_heading_of_an_article_stays_where_its_title_differs() -> None:
    head = '<title>Harbour wall costs rise</title><meta property="og:type" content="article">'
    heading = "Council counts millions for stones of the harbour"
    assert headline(head, f"<h1>{heading}</h1>") == heading


def test_a_long_heading_that_is_the_title_stays_above_other_headings() -> None:
    title = "Council counts its millions for the harbour wall"
    body = f"<h1>{title}</h1><p>Similar news is below.</p><h1>Similar news</h1>"
    assert headline(f"<title>{title}</title>", body) == title


@pytest.mark.parametrize(
    ("heading", "title", "found"),
    [
        ('<span class="record label">Motown</span> turns sixty', "Motown turns sixty", None),
        ('<span class="tag label">Motown</span> turns sixty', "Motown turns sixty this year | Harbour", None),
        ('<span class="prefix">The</span> wall of 1890', "The wall of 1890", None),
        ('Learn C<span class="badge">++</span>', "Learn C++", None),
        ('<a class="anchor-link" href="#w">The wall</a> of 1890', "The wall of 1890", None),
        ('<span class="label">News</span> The wall of 1890', "The wall of 1890: all the news", "The wall of 1890"),
    ],
)
def test_a_mark_that_the_title_has_in_its_place_stays(heading: str, title: str, found: str | None) -> None:
    whole = re.sub("<[^>]*>", "", heading)
    assert headline(f"<title>{title}</title>", f"<h1>{heading}</h1>") == (found or whole)


@pytest.mark.parametrize(
    ("title", "url", "found"),
    [
        ("Climate - Time to act", "https://time.com/a", "Climate - Time to act"),
        ("A fool - A pineapple story", "https://apple.com/a", "A fool - A pineapple story"),
        ("Climate - Harbour Post", "https://harbour.example/a", "Climate"),
        ("Climate | Harbour of the children", "https://harbour.example/a", "Climate"),
        ("Climate - Post", "https://harbourpost.example/a", "Climate"),
    ],
)
def test_the_name_of_the_site_is_half_of_the_part_that_is_cut(title: str, url: str, found: str) -> None:
    assert headline(f"<title>{title}</title>", f"<h1>{title}</h1>", url) == found


SLOGAN = "Parliament approves controversial pension overhaul despite protests"


@pytest.mark.parametrize(
    "body",
    [
        "<time datetime=2024-05-05>May 5</time>", "<p class=byline>By Ida Holm</p>",
        '<script type="application/ld+json">{"@type": "NewsArticle", "name": "Vote"}</script>',
    ],
)  # fmt: skip
def test_a_heading_with_a_date_or_byline_is_no_slogan(body: str) -> None:
    assert headline("<title>Pension reform passes | News</title>", f"<h1>{SLOGAN}</h1>{body}") == SLOGAN


def test_the_heading_of_an_article_is_no_slogan() -> None:
    html = f"<title>Pension reform passes | News</title><h1>{SLOGAN}</h1><p>Text"
    assert extract("article", html, "https://harbour.example/a")["headline"] == SLOGAN
    assert headline("<title>Pension reform passes | News</title>", f"<h1>{SLOGAN}</h1><p>Text") != SLOGAN


@pytest.mark.parametrize(
    "heading",
    [
        "<span class=kicker>Harbour tales, part 3</span> The wall of 1890",
        "<span class=series>Harbour tales</span>The wall of 1890",
        "<div class=eyebrow>Harbour tales</div><div>The wall of 1890</div>",
        "<span class=dachzeile>Serie Hafen</span><span>: </span>The wall of 1890",
        # Not named, and not in the title.
        "<small>Harbour tales</small><br>The wall of 1890",
        "<a href=/series/harbour>Harbour tales</a>: The wall of 1890",
    ],
)
@pytest.mark.parametrize("title", ["The wall of 1890", "The wall of 1890 | Harbour"])
def test_the_series_above_a_headline_is_not_part_of_it(heading: str, title: str) -> None:
    assert headline(f"<title>{title}</title>", f"<h1>{heading}</h1>") == "The wall of 1890"


def test_the_first_words_of_a_headline_stay_where_the_title_has_them() -> None:
    assert headline("<title>The wall of 1890</title>", "<h1><em>The wall</em> of 1890</h1>") == "The wall of 1890"
    assert headline("<title>Of 1890</title>", "<h1><em>The wall</em> of 1890</h1>") == "The wall of 1890"
