"""Pages are read as a browser reads them, whatever their HTML is like."""

import re

import pytest
from lxml import etree

from scrapy_ext.server.extraction.auto.page import Focus
from scrapy_ext.server.extraction.auto.page.labelled import Labels, LabelWords
from scrapy_ext.server.extraction.auto.page.page import Page
from scrapy_ext.server.extraction.auto.page.parsing import MAX_DEPTH
from scrapy_ext.server.extraction.auto.page.text import word_count
from scrapy_ext.server.extraction.vocabulary import Vocabulary

URL = "https://example.com/a"
START = "<html><head><title>t</title></head><body><p>a</p>"


@pytest.mark.parametrize(
    ("html", "body"),
    [
        (f"{START}</body></html><p>b</p>c", "<p>a</p><p>b</p>c"),
        (f"{START}</body>b<p>c</p></html>d<p>e</p>", "<p>a</p>b<p>c</p>d<p>e</p>"),
        (f"{START}</body></html><!-- --><html><body class=x>b<p>c</p></body></html>d", "<p>a</p>b<p>c</p>d"),
        (f"{START}</html><p>b</p></html><p>c</p></html>", "<p>a</p><p>b</p><p>c</p>"),
        ("<html></html><p>a</p>", "<p>a</p>"),
    ],
)
def test_what_follows_the_end_of_a_page_is_of_its_body(html: str, body: str) -> None:
    page = Page(html, URL)
    shown = page.tree.find("body")
    assert etree.tostring(shown).decode().strip() == f"<body>{body}</body>"
    assert page.tree.getroottree().getpath(shown) == "/html/body"
    assert set(shown.iter()) < set(page.elements)


@pytest.mark.parametrize("levels", [MAX_DEPTH - 10, 600, 2_000])
def test_elements_that_are_nested_deeply_keep_their_order_and_texts(levels: int) -> None:
    begins = "".join(f"<div id=d{level}>a{level} <b>b{level}</b> " for level in range(levels))
    ends = "".join(f"</div>c{level} " for level in reversed(range(levels)))
    page = Page(f"<body>{begins}{ends}<p>last</p></body>", URL)
    assert "".join(page.tree.itertext()).split() == [
        *(f"{sign}{level}" for level in range(levels) for sign in "ab"),
        *(f"c{level}" for level in reversed(range(levels))),
        "last",
    ]
    assert [node.get("id") for node in page.tree.iter("div")] == [f"d{level}" for level in range(levels)]
    assert max(sum(1 for _ in page.outline.around(position)) for position in range(len(page.elements))) <= MAX_DEPTH


def test_tags_that_nothing_closes_lose_no_text() -> None:
    lines = "".join(f"<font color=red><b>{number}<div>" for number in range(600))
    assert "".join(Page(f"<body>{lines}</body>", URL).tree.itertext()) == "".join(map(str, range(600)))


def test_the_texts_of_an_element_come_in_their_order_from_the_outline() -> None:
    page = Page("<p>a<b>b<i>c</i>d<u><s>e</s></u>f</b>g<br>h</p>i", URL)
    paragraph = page.tree.find(".//p")
    assert list(page.outline.texts_in(page.order[paragraph])) == list("abcdefgh") == list(paragraph.itertext())


@pytest.mark.parametrize(
    ("html", "most", "texts"),
    [("<p> a </p>", 2, ["a"]), ("<p> </p>", 2, []), ("<p> <b>a</b> b <i>c</i></p>", 2, ["a", "b"])],
)
def test_the_first_texts_of_an_element_are_those_with_signs(html: str, most: int, texts: list[str]) -> None:
    page = Page(html, URL)
    assert page.outline.first_texts(page.order[page.tree.find(".//p")], most) == texts


def test_elements_and_lines_with_digits_are_known() -> None:
    page = Page(f"<p>a 1</p><p>b</p><div><i>c</i> ٣</div><p>d 4{' long' * 100}</p>", URL)
    tags = [page.outline.tags[position] for position in sorted(page.numbered)]
    assert tags == ["p", "div"]
    assert [text for _, text in page.numbered_lines] == ["a 1", "c ٣"]


def test_the_lines_by_the_heading_are_those_from_so_many_elements_before_it_to_so_many_after_it() -> None:
    page = Page(f"<title>Lamp</title>{'<p>x</p>' * 5}<h1>Lamp</h1>{'<p>y</p>' * 5}", URL)
    focus = Focus(page, page.title)
    assert [text for _, text in focus.lines(2, 3)] == ["x", "x", "Lamp", "y", "y", "y"]
    assert all(-2 <= focus.distance(node) <= 3 for node, _ in focus.lines(2, 3))
    without = Page("<p>a</p><p>b</p>", URL)
    assert [text for _, text in Focus(without).lines(0, 0)] == ["a", "b"]


def test_elements_are_found_by_their_roles() -> None:
    page = Page("<div role=banner>a</div><p role=note>b</p><div role=banner>c</div>", URL)
    assert [node.text for node in page.by_role["banner"]] == ["a", "c"]
    assert "main" not in page.by_role


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), ("It's 2_a, well-made.", 5), ("Größe: 12 cm", 3), ("日本 語", 2), ("--", 0)]
)
def test_words_are_counted_in_any_script(text: str, words: int) -> None:
    assert word_count(text) == words == len(re.findall(r"\w+", text))


def test_labels_have_the_values_of_their_names() -> None:
    words = LabelWords(Vocabulary("jobs.toml", "pay = ['salary|pay']\ntown = ['city']"), "pay", "town")
    page = Page("<h1>Cook</h1><p>Pay</p><p>20 $</p><p>City</p><p>Leeds</p><p>Hours</p><p>40</p>", URL)
    labels = Labels(page, Focus(page, "Cook"), words)
    assert (labels.value("pay"), labels.value("town")) == ("20 $", "Leeds")
    assert labels.value("town", str.isdigit) is None
    with pytest.raises(KeyError):
        labels.value("hours")
    assert ("Hours", "40") in {(pair.label, pair.value) for pair in Labels(page, Focus(page, "Cook")).pairs()}


def test_markup_and_metadata_after_the_end_of_a_page_count() -> None:
    page = Page(
        f"""{START}</body></html><meta name="author" content="Ann"><link rel="canonical" href="/b">
        <script type="application/ld+json">{{"@type": "Product", "name": "Lamp"}}</script>""",
        URL,
    )
    assert page.meta("author") == "Ann"
    assert page.canonical_url == "https://example.com/b"
    assert [thing.text("name") for thing in page.markup.things("Product")] == ["Lamp"]


def test_a_page_of_frames_has_no_body() -> None:
    assert Page("<frameset><frame src=x></frameset>", URL).tree.find("body") is None


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Welder <button>Save job</button>", "Welder"),
        ("Shelf <span>for books, white, <button>77x147 cm</button></span>", "Shelf for books, white, 77x147 cm"),
        ("<button>Is it fast?</button>", "Is it fast?"),
    ],
)
def test_a_heading_has_the_buttons_that_are_a_part_of_its_name(heading: str, text: str) -> None:
    assert Focus(Page(f"<body><h1>{heading}</h1><p>x</p></body>", URL)).heading_text == text
