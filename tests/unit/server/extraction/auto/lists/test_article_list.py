"""Lists of articles and navigation among them and among jobs, on pages without structured data."""

from __future__ import annotations

import json

import pytest

from scrapy_ext.server.extraction.auto import extract

URL = "https://paper.example/science"
HEADLINES = [
    "A comet that nobody expected passes the earth",
    "Why the bees of the north came back this spring",
    "What the oldest tree of the valley remembers",
    "A telescope made of ice finds its first light",
]
SUMMARY = "It was seen by a school class on a Tuesday night, with a telescope that they had made themselves."
FRAME = """<html lang=en><title>Science | Paper</title><header><nav><a href=/>Home</a><a href=/sport>Sport</a></nav>
</header><main><h1>Science</h1>{}</main><aside><h2>Most read</h2><ul>
<li><a href=/2024/05/other-1>A story that many people read in these days</a></li>
<li><a href=/2024/05/other-2>A story that more people read in other days</a></li></ul></aside>
<footer><a href=/imprint>Imprint</a><a href=/privacy>Privacy</a></footer>"""


def entries(pattern: str) -> str:
    return "".join(
        pattern.format(n=n, title=title, day=n + 1, summary=SUMMARY) for n, title in enumerate(HEADLINES, start=1)
    )


SHAPES = {
    "teasers": entries(
        "<article><a href=/2024/05/s-{n}><img src=/{n}.jpg></a><h2><a href=/2024/05/s-{n}>{title}</a></h2>"
        "<time datetime=2024-05-0{day}>yesterday</time> <span class=author>By Ada Berg</span><p>{summary}</p></article>"
    ),
    "a link around each": entries(
        "<a class=teaser href=/2024/05/s-{n}><img src=/{n}.jpg><h3>{title}</h3><p>{summary}</p>"
        "<span class=byline>By Ada Berg, <time datetime=2024-05-0{day}>3 hours ago</time></span></a>"
    ),
    "headings and what follows": entries(
        "<h2><a href=/2024/05/s-{n}>{title}</a></h2><p class=meta>{day} May 2024</p><p class=author>Ada Berg</p>"
        "<p><img src=/{n}.jpg>{summary}</p>"
    ),
    "with links to read on": "<ul>"
    + entries(
        "<li><a href=/2024/05/s-{n}><img src=/{n}.jpg></a><h4>{title}</h4><i class=date>{day} May 2024</i>"
        "<a class=author href=/authors/ada>Ada Berg</a><p>{summary}</p><a href=/2024/05/s-{n}>Read more</a></li>"
    )
    + "</ul>",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_articles_are_found_whatever_the_shape_of_the_list(shape: str) -> None:
    articles = extract("articleList", FRAME.format(SHAPES[shape]), URL)["articles"]
    assert [article["headline"] for article in articles] == HEADLINES
    assert [article["url"] for article in articles] == [f"https://paper.example/2024/05/s-{n}" for n in range(1, 5)]
    assert [article["datePublished"] for article in articles] == [f"2024-05-0{n}T00:00:00" for n in range(2, 6)]
    assert {author["name"] for article in articles for author in article["authors"]} == {"Ada Berg"}
    assert {article["articleBody"] for article in articles} == {SUMMARY}
    assert [article["mainImage"]["url"] for article in articles] == [
        f"https://paper.example/{n}.jpg" for n in range(1, 5)
    ]
    assert {article["inLanguage"] for article in articles} == {"en"}
    # Articles have lists of four others beside them as often.
    assert all(0.02 < article["metadata"]["probability"] < 0.5 for article in articles)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_links_of_the_navigation_are_those_of_the_list(shape: str) -> None:
    pages = "<div class=pagination><b>1</b><a href='?page=2'>Older</a></div>"
    item = extract("articleNavigation", FRAME.format(SHAPES[shape] + pages), URL)
    assert [link["name"] for link in item["items"]] == HEADLINES
    assert item["categoryName"] == "Science"
    assert (item["nextPage"]["url"], item["pageNumber"]) == (f"{URL}?page=2", 1)


def test_what_the_markup_says_of_an_article_is_added_to_its_entry() -> None:
    things = [
        {"@type": "NewsArticle", "url": f"/s-{n}", "datePublished": "2024-05-03", "author": {"name": "Ada Berg"}}
        for n in range(1, 5)
    ]
    script = f'<script type="application/ld+json">{json.dumps(things)}</script>'
    html = script + entries("<div><a href=/s-{n}>{title}</a></div>")
    articles = extract("articleList", FRAME.format(html), URL)["articles"]
    assert [article["headline"] for article in articles] == HEADLINES
    assert {article["datePublished"] for article in articles} == {"2024-05-03T00:00:00"}
    assert {author["name"] for article in articles for author in article["authors"]} == {"Ada Berg"}


def test_a_date_without_a_day_is_left_out() -> None:
    html = entries("<article><h2><a href=/2024/05/s-{n}>{title}</a></h2><time>3 hours ago</time></article>")
    articles = extract("articleList", FRAME.format(html), URL)["articles"]
    assert len(articles) == 4
    assert not any("datePublished" in article for article in articles)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<ul><li><a href=/a>About us</a></li><li><a href=/b>Contact</a></li><li><a href=/c>Jobs</a></li></ul>",
        "<p>One story of <a href=/x>many places</a> and of <a href=/y>many people</a>.</p>",
        "".join(
            f"<li><h3><a href=/p/{n}>A lamp for a desk that is large</a></h3><b>${n}.00</b></li>" for n in range(9)
        ),
    ],
)
def test_what_is_no_list_of_articles_is_left_out(html: str) -> None:
    assert "articles" not in extract("articleList", FRAME.format(html), URL)
    assert "items" not in extract("articleNavigation", FRAME.format(html), URL)


JOBS = "https://work.example/jobs"
TITLES = ["Software Engineer", "Nurse", "Head of Sales", "Gardener"]
JOB_SHAPES = {
    "a list": "<li><a href=/jobs/{n}-x>{title}</a> <span>Oslo</span> <span>Full-time</span></li>",
    "rows": "<tr><td><a href=/careers/{n}>{title}</a></td><td>Berlin</td><td>Teilzeit</td></tr>",
    "cards": "<div class=job-card><h3>{title}</h3><p>Remote</p><a href=/position/{n}>Apply now</a></div>",
}


@pytest.mark.parametrize("shape", JOB_SHAPES)
def test_jobs_are_found_whatever_the_shape_of_the_list(shape: str) -> None:
    rows = "".join(JOB_SHAPES[shape].format(n=n, title=title) for n, title in enumerate(TITLES))
    rows = f"<table>{rows}</table>" if shape == "rows" else f"<ul>{rows}</ul>"
    html = f"<title>Open positions</title><nav><a href=/>Home</a><a href=/about>About</a></nav><main>{rows}</main>"
    html += "<ul class=pager><li><a href='?page=2'>Weiter</a></li></ul>"
    item = extract("jobPostingNavigation", html, JOBS)
    assert [link["name"] for link in item["items"]] == TITLES
    assert item["nextPage"]["url"] == f"{JOBS}?page=2"


@pytest.mark.parametrize("shape", SHAPES)
def test_articles_are_no_jobs(shape: str) -> None:
    assert "items" not in extract("jobPostingNavigation", FRAME.format(SHAPES[shape]), URL)


def headlines(html: str) -> list[str]:
    articles = extract("articleList", FRAME.format(html), URL).get("articles", [])
    return [article["headline"] for article in articles]


PLAIN = entries("<article><h2><a href=/a-{n}>{title}</a></h2><time>2024-05-0{day}</time></article>")


def test_entries_with_classes_of_their_own_are_one_list() -> None:
    html = entries(
        "<li class=x{n}><div class=y{n}><a class=z{n} href=/2024/05/s-{n}>{title}</a>"
        "<time>2024-05-0{day}</time></div></li>"
    )
    assert headlines(f"<div class=left><ul>{html}</ul></div>") == HEADLINES


@pytest.mark.parametrize(
    "name", ["content-sidebar-wrap", "has-sidebar", "l-layout page-with-sidebar", "entry category-popular tag-menu"]
)
def test_a_part_that_is_named_after_the_layout_belongs_to_the_content(name: str) -> None:
    filler = "<p>Some words.</p>" * 80
    assert headlines(f"<div class='{name}'>{PLAIN}</div>{filler}") == HEADLINES


def test_what_holds_the_main_part_is_no_side_bar_whatever_its_name() -> None:
    filler = "<p>Some words.</p>" * 80
    html = f"<title>Science</title><div class=sidebar><main><h1>Science</h1>{PLAIN}</main></div>{filler}"
    assert len(extract("articleList", html, URL)["articles"]) == len(HEADLINES)


def test_many_long_headlines_with_pictures_are_articles_without_days() -> None:
    entry = "<a class=card href=/{n}{m}><img src=/{n}{m}.jpg><span>{title} {m}</span></a>"
    html = "".join(
        entry.format(n=n, m=m, title=title) for n, title in enumerate(HEADLINES) for m in ("again", "at last")
    )
    assert len(headlines(f"<div>{html}</div>")) == 8


def test_a_label_stands_for_a_link_without_words_when_the_heading_has_more() -> None:
    html = entries(
        "<li><a aria-label='{title}' href=/2024/05/s-{n}></a><img src=/{n}.jpg><h3><i>Space</i> {title}</h3>"
        "<time>2024-05-0{day}</time></li>"
    )
    assert headlines(f"<ul>{html}</ul>") == HEADLINES


def test_the_day_of_a_row_may_stand_in_the_next_one() -> None:
    html = entries(
        "<tr><td>{n}.</td><td><a href=https://else.example/{n}>{title}</a></td></tr>"
        "<tr><td></td><td><span class=age title='2024-05-0{day}T10:00:00 1714557600'>3 days ago</span></td></tr>"
    )
    articles = extract("articleList", FRAME.format(f"<table>{html}</table>"), URL)["articles"]
    assert [article["headline"] for article in articles] == HEADLINES
    assert articles[0]["datePublished"].startswith("2024-05-02")


@pytest.mark.parametrize(
    "html",
    [
        entries("<p>This is what was said of <a href=/2024/05/s-{n}>{title}</a> by those who saw it.</p>") * 2,
        entries("<li><a href=/jobs/s-{n}>{title}</a><time>2024-05-0{day}</time></li>"),
        entries("<li><a href=/events/s-{n}><img src=/{n}.jpg>{title}</a><time>2024-05-0{day}</time></li>"),
        entries("<div><a class=author href=/2024/s-{n}>Ada Berg</a><time>2024-05-0{day}</time><p>{summary}</p></div>"),
        entries("<li><a href=/members/{n}>Person {n}</a><time>2024-05-0{day}</time><p>{summary}</p></li>"),
        f"<div class=references><ol>{PLAIN}</ol></div>",
    ],
)
def test_what_is_dated_or_long_and_no_article_is_left_out(html: str) -> None:
    assert headlines(f"<div>{html}</div>") == []


def test_posts_in_full_are_a_list_however_many_links_their_texts_have() -> None:
    links = " ".join(f"<a href=/source/{n}>source {n}</a>" for n in range(20))
    posts = entries(
        "<div class='post-{n} hentry'><h2 class=entry-title><a href=/2024/05/s-{n}>{title}</a></h2>"
        "<time datetime=2024-05-0{day}>then</time><p>{summary} " + links + "</p></div>"
    )
    articles = extract("articleList", FRAME.format(posts), URL)["articles"]
    assert [article["headline"] for article in articles] == HEADLINES


@pytest.mark.parametrize("tag", ["div", "article"])
def test_sections_with_a_heading_and_many_links_are_not_articles(tag: str) -> None:
    links = " ".join(f"<a href=/source/{n}>source {n}</a>" for n in range(20))
    sections = entries(
        f"<{tag} class=box><h2><a href=/sections/s-{{n}}>{{title}}</a></h2>"
        f"<time datetime=2024-05-0{{day}}>then</time><p>{{summary}} {links}</p></{tag}>"
    )
    assert "articles" not in extract("articleList", FRAME.format(sections), URL)


def test_the_words_before_the_name_of_an_author_are_not_the_author() -> None:
    posts = entries(
        "<article><h2><a href=/2024/05/s-{n}>{title}</a></h2>"
        "<span class='meta-prep meta-prep-author'>Publiziert am</span> "
        "<time datetime=2024-05-0{day}>then</time> <span class='meta-sep'>von</span> "
        "<span class='author vcard'><a href=/author/ada>Ada Berg</a></span><p>{summary}</p></article>"
    )
    articles = extract("articleList", FRAME.format(posts), URL)["articles"]
    assert [author["name"] for article in articles for author in article["authors"]] == ["Ada Berg"] * 4


def test_a_headline_may_have_an_amount_of_money_in_it() -> None:
    posts = entries("<article><h2><a href=/2024/05/s-{n}>{title} for $110 million</a></h2><p>{summary}</p></article>")
    articles = extract("articleList", FRAME.format(posts), URL)["articles"]
    assert [article["headline"] for article in articles] == [f"{title} for $110 million" for title in HEADLINES]


def test_coupons_are_no_articles() -> None:
    coupons = entries(
        "<article><h2><a href=/2024/05/s-{n}>$25.00 off the installation of one lamp or more, number {n}</a></h2>"
        "<p>{summary}</p></article>"
    )
    assert "articles" not in extract("articleList", FRAME.format(coupons), URL)


def test_the_link_to_an_image_is_not_that_to_the_article() -> None:
    posts = entries(
        "<article class=hentry><a href=/uploads/s-{n}.jpg><img src=/{n}.jpg></a>"
        "<h2><a href=/2024/05/s-{n}>{title}</a></h2><time datetime=2024-05-0{day}>then</time>"
        "<p>{summary} <a href=/uploads/s-{n}.jpg>The picture in full</a></p></article>"
    )
    assert [article["url"] for article in extract("articleList", FRAME.format(posts), URL)["articles"]] == [
        f"https://paper.example/2024/05/s-{n}" for n in range(1, 5)
    ]


@pytest.mark.parametrize("title", [" title=2024-05-0{day}T19:52:00+04:00", ""])
def test_a_time_of_day_after_day_and_month_is_no_year(title: str) -> None:
    posts = entries(
        "<article class=hentry><div class=entry-meta><abbr"
        + title
        + ">0{day}.05/19:52</abbr><a href=/tags/x>Sky</a></div>"
        "<h2><a href=/2024/05/s-{n}>{title}</a></h2><p>{summary}</p></article>"
    )
    dates = [article.get("datePublished") for article in extract("articleList", FRAME.format(posts), URL)["articles"]]
    assert [date and date[:16] for date in dates] == (
        [f"2024-05-0{n}T19:52" for n in range(2, 6)] if title else [None] * 4
    )


def tex(formula: str) -> str:
    return (
        f'<math><semantics><mi>x</mi><annotation encoding="application/x-tex">{formula}</annotation></semantics></math>'
    )


@pytest.mark.parametrize("formula", ["n^2", "2", "100"])
def test_a_formula_in_a_name_is_no_amount(formula: str) -> None:
    posts = entries(
        "<li class=post><a class=title href=/2024/05/s-{n}>{title}</a><time datetime=2024-05-0{day}>then</time>"
        "<p>{summary}</p></li>"
    ).replace("nobody", tex(formula))
    listed = extract("articleList", FRAME.format(f"<ul>{posts}</ul>"), URL)["articles"]
    assert [article["headline"] for article in listed] == [
        title.replace("nobody", f"${formula}$") for title in HEADLINES
    ]


@pytest.mark.parametrize("button", ["Read more", "Tovább az oldalra"])
@pytest.mark.parametrize(
    "card",
    [
        "<article><h2>{title}</h2><time datetime=2024-05-0{day}>yesterday</time><p>{summary}</p>@</article>",
        "<div class=item><strong>{title}</strong><span>{day} May 2024</span><p>{summary}</p>@</div>",
        "<div class=item><div>{title}</div><div>{day} May 2024</div><p>{summary}</p><p>@</p></div>",
    ],
)
def test_entries_whose_links_share_one_text_are_named_by_their_other_texts(card: str, button: str) -> None:
    cards = entries(card.replace("@", f"<a href=/2024/05/s-{{n}}>{button}</a>"))
    items = extract("articleNavigation", FRAME.format(cards), URL)["items"]
    assert [item["name"] for item in items] == HEADLINES


@pytest.mark.parametrize(
    ("line", "author"),
    [
        ("<p>By <a href=/people/ada-berg>Ada Berg</a></p>", "Ada Berg"),
        ("<p>By <a href=/people/ada-berg>Ada Berg</a>, 3 May 2024</p>", "Ada Berg"),
        ("<p>More on <a href=/people/jo-rusk>Jo Rusk</a> and her comet.</p><i class=author>Ada Berg</i>", "Ada Berg"),
        ("<p><a href=/people/jo-rusk>Jo Rusk</a> <a href=/tags/comets>Comets</a></p>", None),
        ("<a href=/people/jo-rusk>Jo Rusk</a>", None),
    ],
)
def test_links_to_persons_are_authors_behind_by_alone(line: str, author: str | None) -> None:
    body = entries(f"<article><h2><a href=/2024/05/s-{{n}}>{{title}}</a></h2><p>{{summary}}</p>{line}</article>")
    articles = extract("articleList", FRAME.format(body), URL)["articles"]
    assert [[each["name"] for each in article.get("authors", ())] for article in articles] == [
        [author] * bool(author)
    ] * 4


def test_a_lead_of_another_form_or_without_a_date_is_no_entry() -> None:
    river = entries(
        "<article><h3><a href=/2024/05/s-{n}>{title}</a></h3><time datetime=2024-05-0{day}>x</time></article>"
    )
    leads = (
        "<section><h2><a href=/2024/05/lead>The lead story of the day with a date</a></h2>"
        "<time datetime=2024-05-09>x</time></section>"
        "<div class=u><h2><a href=/2024/05/undated>A story of the same form without a date</a></h2></div>"
        "<div class=o><h3><a href=/shop/offer>An offer in the shop with a date</a></h3>"
        "<time datetime=2024-05-09>x</time></div>"
    )
    found = extract("articleList", FRAME.format(f"{leads}<div>{river}</div>"), URL)["articles"]
    assert [article["headline"] for article in found] == ["The lead story of the day with a date", *HEADLINES]


def test_an_image_of_several_entries_is_an_icon() -> None:
    body = entries(
        "<article><img src=/like.png><h3><a href=/2024/05/s-{n}>{title}</a></h3>"
        "<time datetime=2024-05-0{day}>x</time>{{}}</article>"
    )
    for own, images in (("<img src=/{n}.jpg>", [f"https://paper.example/{n}.jpg" for n in range(1, 5)]), ("", [])):
        pictures = (own.format(n=n) for n in range(1, 5))
        articles = extract("articleList", FRAME.format(body.format(*pictures)), URL)["articles"]
        assert [article["mainImage"]["url"] for article in articles if "mainImage" in article] == images
        assert [image["url"] for article in articles for image in article.get("images", ())] == images


def test_the_heading_of_an_article_that_links_to_itself_is_no_lead_of_the_list_below_it() -> None:
    river = entries(
        "<article><h3><a href=/2024/05/s-{n}>{title}</a></h3><time datetime=2024-05-0{day}>x</time></article>"
    )
    own = "<div><h2><a href=/2024/05/s-9>The story of this page with a date</a></h2><time datetime=2024-05-09>x</time>"
    page = FRAME.format(f"{own}</div><div>{river}</div>")
    found = extract("articleList", page, "https://paper.example/2024/05/s-9")["articles"]
    assert [article["headline"] for article in found] == HEADLINES


def test_headlines_that_begin_as_a_byline_name_no_authors() -> None:
    body = entries(
        "<article><h3><a href=/2024/05/s-{n}>{title}</a></h3><div>Text Message Scam</div>"
        "<time datetime=2024-05-0{day}>x</time><p>{summary}</p></article>"
    )
    assert not any("authors" in each for each in extract("articleList", FRAME.format(body), URL)["articles"])


@pytest.mark.parametrize(
    ("line", "author"),
    [
        ("{day} May 2024 | <a href=/people/jane-doe-{n}>Jane Doe</a>", True),
        ("<a href=/people/jane-doe-{n}>Jane Doe</a>, {day} May 2024", True),
        ("{day} May 2024 – Interview with <a href=/people/jane-doe-{n}>Jane Doe</a>", False),
        ("{day} May 2024: Meet <a href=/people/jane-doe-{n}>Jane Doe</a>", False),
        ("Photo: <a href=/people/jane-doe-{n}>Jane Doe</a>, {day} May 2024", False),
    ],
)
def test_a_person_beside_a_date_with_other_words_before_is_no_author(line: str, author: bool) -> None:
    pattern = "<article><h3><a href=/news/{n}>{title}</a></h3><p>" + line + "</p></article>"
    found = extract("articleList", FRAME.format(entries(pattern)), URL)["articles"]
    assert len(found) == len(HEADLINES)
    assert all(bool(each.get("authors")) is author for each in found)


def test_a_date_in_the_middle_of_a_line_of_text_is_no_day_of_publication() -> None:
    pattern = "<article><h3><a href=/news/{n}>{title}</a></h3><p>Opening, {day} May 2027, in the hall</p></article>"
    found = extract("articleList", FRAME.format(entries(pattern)), URL)["articles"]
    assert not any("datePublished" in each for each in found)


def test_the_language_of_an_entry_is_that_of_the_parts_around_its_link() -> None:
    pattern = (
        "<article{lang}><h2><a href=/2024/05/s-{n}>{title}</a></h2><time datetime=2024-05-0{n}>x</time>{more}</article>"
    )
    languages = (" lang=de", " lang=fr-CA", "", " lang='?'")
    html = "".join(
        pattern.format(lang=lang, n=n, title=HEADLINES[n - 1], more=f"<p lang=es>{SUMMARY}</p>")
        for n, lang in enumerate(languages, 1)
    )
    articles = extract("articleList", FRAME.format(html), URL)["articles"]
    assert [article["inLanguage"] for article in articles] == ["de", "fr", "en", "en"]


@pytest.mark.parametrize(
    ("line", "name", "raw"),
    [
        ("<p>By Staff reporter</p>", "Staff reporter", "By Staff reporter"),
        ("<p>By weather desk</p>", "weather desk", "By weather desk"),
        ("<p class=byline>Weather desk | {day} May 2024</p>", "Weather desk", "Weather desk"),
        ("<p class=byline>By Ida Holm, {day} May 2024</p>", "Ida Holm", "By Ida Holm"),
        ("<p>By Ida Holm | {day} May 2024</p>", "Ida Holm", "By Ida Holm"),
    ],
)
def test_the_author_of_an_entry_is_as_on_the_page_of_the_article(line: str, name: str, raw: str) -> None:
    pattern = "<article><h2><a href=/2024/05/s-{n}>{title}</a></h2>" + line + "<p class=summary>{summary}</p></article>"
    articles = extract("articleList", FRAME.format(entries(pattern)), URL)["articles"]
    assert [article["authors"] for article in articles] == [[{"name": name, "nameRaw": raw}]] * len(HEADLINES)


@pytest.mark.parametrize("line", ["<p class=byline>Published {day} May 2024</p>", "<p class=author>{day} May 2024</p>"])
def test_a_day_in_the_place_of_the_author_is_none(line: str) -> None:
    pattern = "<article><h2><a href=/2024/05/s-{n}>{title}</a></h2>" + line + "<p class=summary>{summary}</p></article>"
    articles = extract("articleList", FRAME.format(entries(pattern)), URL)["articles"]
    assert all(article.get("authors") is None for article in articles)


@pytest.mark.parametrize("label", ["Paid content", "Sponsored", "Anzeige", "Partner content", "Contenu sponsorisé"])
def test_an_entry_that_is_labelled_as_paid_for_is_none(label: str) -> None:
    paid = f"<article><i>{label}</i><h2><a href=/a-9>How a bank helps you</a></h2><time>2024-05-09</time></article>"
    assert headlines(paid + PLAIN) == HEADLINES


@pytest.mark.parametrize("label", ["<i>Advertising</i>", "<a href=/topics/ads>Ads</a>"])
def test_the_name_of_a_section_is_no_label_of_an_advertisement(label: str) -> None:
    story = f"<article>{label}<h2><a href=/a-9>How the river rose again</a></h2><time>2024-05-09</time></article>"
    assert headlines(story + PLAIN) == ["How the river rose again", *HEADLINES]


def test_a_label_that_most_entries_have_is_no_sign_of_an_advertisement() -> None:
    assert headlines(PLAIN.replace("<time>", "<i>Sponsored</i><time>")) == HEADLINES


def test_the_kicker_in_a_heading_is_no_part_of_the_headline() -> None:
    html = entries(
        "<article><h3><a href=/a-{n}><span class=teaser__kicker>Parliament</span> <span class=teaser__headline>{title}"
        "</span></a></h3><time>2024-05-0{day}</time></article>"
    )
    assert headlines(html) == HEADLINES


def test_a_longer_heading_of_a_lower_level_below_the_headline_is_a_summary() -> None:
    html = entries(
        "<article><a href=/a-{n}><h2>{title}</h2><h3>{summary}</h3></a><time>2024-05-0{day}</time></article>"
    )
    assert headlines(html) == HEADLINES


def test_the_name_of_a_section_above_the_headline_is_none_whatever_its_level() -> None:
    html = entries("<article><a href=/a-{n}><h2>Nature</h2><h3>{title}</h3></a><time>2024-05-0{day}</time></article>")
    assert headlines(html) == HEADLINES


def test_last_replies_of_a_forum_are_no_articles() -> None:
    html = entries(
        "<li class=row><a href=/f?t={n} class=lastsubject>Re: {title}</a> <time datetime=2024-05-0{day}></time></li>"
    )
    assert headlines(f"<ul>{html}</ul>") == []


@pytest.mark.parametrize(
    "lines",
    [
        "<p>{title}</p><p>{place}</p>",
        "<div class=body>{title}</div><div class='body meta'>{place}</div>",
        "<span class=job-title>{title}</span> <span>{place}</span>",
    ],
)
def test_the_place_in_the_link_of_a_job_is_no_part_of_its_name(lines: str) -> None:
    places = ("Berlin", "Berlin", "Oslo", "Remote")
    rows = "".join(
        f"<tr><td><a href=/jobs/{n}>{lines.format(title=title, place=place)}</a></td></tr>"
        for n, (title, place) in enumerate(zip(TITLES, places, strict=True))
    )
    html = f"<title>Open positions</title><main><table>{rows}</table></main>"
    assert [link["name"] for link in extract("jobPostingNavigation", html, JOBS)["items"]] == TITLES


def test_pages_about_an_employer_are_no_jobs() -> None:
    names = ("Life at Acme", "Benefits", "Students", "Our values")
    links = "".join(f"<li><a href=/careers/{n}>{name}</a></li>" for n, name in enumerate(names))
    html = f"<title>Careers</title><main><h1>Careers</h1><p>There are no open positions.</p><ul>{links}</ul></main>"
    assert "items" not in extract("jobPostingNavigation", html, "https://acme.example/careers")
