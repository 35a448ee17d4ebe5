"""Blocks of text of pages, and the choice of those that are the content."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.auto import extract
from scrapy_ext.server.extraction.auto.content.blocks import ArticleMarks, Blocks
from scrapy_ext.server.extraction.auto.content.choice import block_model, kind_model
from scrapy_ext.server.extraction.auto.content.features import BLOCK_NAMES, Features, heading_bits, name_bits
from scrapy_ext.server.extraction.auto.content.page_content import MAX_BLOCKS, main_content, text_of
from scrapy_ext.server.extraction.auto.page.page import Page

URL = "https://www.example.org/shop/rope"
HEAD = """<header class="site-header"><nav class="main-nav"><ul>
<li><a href="/a">Sails</a></li><li><a href="/b">Anchors</a></li>
<li><a href="/c">Ropes</a></li><li><a href="/d">Log in</a></li></ul></nav></header>"""
FOOT = """<footer class="site-footer"><ul>
<li><a href="/imprint">Imprint</a></li><li><a href="/privacy">Privacy policy</a></li>
<li><a href="/terms">Terms of sale</a></li></ul><p>Copyright 2024 Chandlery Ltd</p></footer>"""
PROSE = "The rope is laid from three strands of polyester, does not float, and keeps its strength when it is wet."


def page(body: str) -> Page:
    return Page(f"<html><head><title>Rope | Chandlery</title></head><body>{body}</body></html>", URL)


def texts(body: str) -> list[str]:
    return [block.text for block in Blocks(page(body))]


def item_main(body: str) -> str:
    item: dict[str, Any] = extract("pageContent", f"<html><body>{HEAD}{body}{FOOT}</body></html>", URL)
    return str(item["itemMain"])


def test_a_block_ends_where_a_block_level_element_begins() -> None:
    assert texts("<div>before<p>a <b>bold</b> word</p>after</div>") == ["before", "a bold word", "after"]


def test_words_in_elements_side_by_side_stay_apart_and_parts_of_words_together() -> None:
    assert texts("<p><span>Price</span><span>12</span> <b>R</b>ope</p>") == ["Price 12 Rope"]
    assert texts("<p><span>Wa</span><span>ter</span> <span>5</span><span>.</span><span>50</span></p>") == ["Water 5.50"]
    assert texts("<p>bus<a href=x>es</a>, <a href=x>red</a><a href=y>blue</a></p>") == ["buses, red blue"]


def test_a_block_knows_where_in_the_page_its_text_stands() -> None:
    source = page("<p>one <a href=x>two</a> three</p><p>four</p>")
    outline = source.outline
    found = [[(outline.texts, outline.tails)[at % 2][at // 2] for at in block.pieces] for block in Blocks(source)]
    assert found == [["one ", "two", " three"], ["four"]]


def test_breaks_and_the_lines_of_code_stay_lines() -> None:
    assert texts("<p>one<br>two</p><pre>a = 1\nb = 2</pre>") == ["one\ntwo", "a = 1\nb = 2"]


def test_what_has_no_word_is_no_block() -> None:
    assert texts("<p>•</p><p> </p><p>word</p><script>x</script>") == ["word"]


def test_boxes_count_what_is_in_them() -> None:
    blocks = Blocks(page("<ul><li><a href=x>one two</a> three</li><li>four</li></ul>"))
    (items,) = {block.box.parent for block in blocks}
    assert items is not None
    assert (items.words, items.link_words, items.blocks, blocks[0].box.twins) == (4, 2, 2, 2)


def test_the_text_has_paragraphs_lines_and_rows() -> None:
    table = "<table><tr><td>c</td><td>d</td></tr><tr><td>e</td></tr></table>"
    body = f"<p>One</p><p>Two</p><ul><li>a</li><li>b</li></ul>{table}"
    assert text_of(Blocks(page(body))) == "One\n\nTwo\n\na\nb\n\nc d\ne"


def test_the_models_know_the_numbers_that_are_counted() -> None:
    source = page(f"<h1>Rope</h1><p>{PROSE}</p>")
    blocks = Blocks(source)
    features = Features(source, blocks, ArticleMarks(source, blocks))
    assert block_model().features == features.names
    assert kind_model().features == features.names_of_page
    assert {len(row) + len(features.of_page) for row in features.rows} == {len(features.names)}


@pytest.mark.parametrize("text", ["AB 12 cdef", "\u00c4B 12 cdef", "AB 1\u0663 cd\u00e9f"])
def test_letters_digits_and_capitals_are_counted_in_any_script(text: str) -> None:
    source = page(f"<p>{text}</p>")
    blocks = Blocks(source)
    row = Features(source, blocks, ArticleMarks(source, blocks)).rows[0]
    assert row[BLOCK_NAMES.index("digits")] == pytest.approx(2 / len(text))
    assert row[BLOCK_NAMES.index("upper")] == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("names", "alike"), [("site-footer", "footer"), ("cookie-banner js-x", "cookiebanner"), ("main-nav", "navbar")]
)
def test_parts_are_known_by_the_beginnings_of_their_names(names: str, alike: str) -> None:
    assert name_bits(alike)
    assert name_bits(names) & name_bits(alike)
    assert not name_bits("x canvas")


def test_headings_are_read_in_several_languages() -> None:
    assert (
        heading_bits("You may also like") == heading_bits("Das könnte Ihnen gefallen") == heading_bits("À lire aussi")
    )
    assert not heading_bits("How a rope is laid")


def test_of_a_product_page_the_description_is_content_and_the_shop_around_it_is_not() -> None:
    text = item_main(
        f"""<main><div class="product"><h1>Mooring rope 14 mm</h1><div class="price">$ 49.00</div>
        <div class="product-description"><h2>Description</h2><p>{PROSE}</p><p>{PROSE.replace("rope", "line")}</p></div>
        <div class="specs"><h2>Specifications</h2><table><tr><th>Diameter</th><td>14 mm</td></tr>
        <tr><th>Length</th><td>10 m, with a spliced eye of 30 cm</td></tr><tr><th>Weight</th><td>1.4 kg</td></tr>
        <tr><th>Breaking load</th><td>4,200 daN</td></tr><tr><th>Material</th><td>Polyester, three strands</td></tr>
        <tr><th>Colour</th><td>White with a blue tracer thread</td></tr></table></div></div></main>
        <div class="newsletter-popup"><p>Subscribe to our newsletter and get ten per cent off</p></div>"""
    )
    assert "three strands" in text
    assert "Breaking load" in text
    assert "Anchors" not in text
    assert "Privacy policy" not in text


def test_of_an_article_the_content_is_what_the_rules_for_articles_take() -> None:
    prose = "".join(f"<p>Step {number}. {PROSE} {PROSE}</p>" for number in range(10))
    body = f"""<article><h1>How a rope is laid</h1><p class="byline">By <a href="/u/1">A. Sailor</a>, 4 May 2024</p>
    {prose}<div class="related-posts"><h3>Related</h3><p>{PROSE.replace("rope", "chain")}</p></div></article>"""
    head = '<title>How a rope is laid</title><meta property="og:type" content="article">'
    html = f"<html><head>{head}</head><body>{HEAD}{body}{FOOT}</body></html>"
    item: dict[str, Any] = extract("pageContent", html, "https://www.example.org/blog/how-a-rope-is-laid")
    text = str(item["itemMain"])
    assert [f"Step {number}." in text for number in range(10)] == [True] * 10
    assert "The chain" not in text


def _folded(head: str, below: str) -> str:
    return "".join(
        f'<div class="accordion-item">{head.format(number)}<div class="collapse">{below.format(number)}</div></div>'
        for number in range(1, 5)
    )


@pytest.mark.parametrize(
    "head",
    [
        "<h3><button aria-expanded='false'>How strong is rope {}?</button></h3>",
        "<h2 class='accordion-header'><span><button type='button'><b>How strong</b> is rope {}?</button></span></h2>",
        "<dl><dt><button><span>How strong is rope {}?</span><svg></svg></button></dt></dl>",
        "<button class='accordion'>How strong is rope {}?</button>",
        "<div role='button' aria-expanded='false'><a class='title' tabindex='0'>How strong is rope {}?</a></div>",
        "<h3 role='button'><a href=''>How strong is rope {}?</a></h3>",
        "<div role='button' tabindex='0'><div><p>How strong is rope {}?</p></div></div>",
        "<input type='checkbox' id='q{0}'><label for='q{0}'>How strong is rope {0}?</label>",
    ],
)
def test_a_question_that_folds_its_answer_is_content(head: str) -> None:
    answers = _folded(head, f"<p>Of rope {{}} it can be said: {PROSE}</p>")
    bodies = (f"<main><h1>Questions</h1>{answers}</main>", f"<main><h1>Ropes</h1><p>{PROSE}</p>{answers}</main>")
    texts = [item_main(body) for body in bodies]
    texts += [extract("article", f"<html><body>{body}</body></html>", URL)["articleBody"] for body in bodies]
    for text in texts:
        found = [at for number in range(1, 5) for at in (f"is rope {number}?", f"Of rope {number} it")]
        assert sorted(text.index(each) for each in found) == [text.index(each) for each in found]


def test_a_heading_that_folds_a_menu_is_no_content() -> None:
    menus = _folded(
        "<h5><button>Range {}</button></h5>", "<ul><li><a href='/{0}'>Ropes of range number {0}</a></li></ul>"
    )
    text = item_main(
        f"<div class='menu'>{menus}</div><main><h1>How to lay a rope</h1><p>{PROSE}</p><p>{PROSE}</p></main>"
    )
    assert "Range" not in text


def test_of_a_forum_a_post_that_others_quote_is_content_once() -> None:
    quote = f"<blockquote><p>Answer 1: {PROSE}</p></blockquote>"
    posts = "".join(
        f"""<div class="post" id="p{number}"><div class="post-author"><a href="/u/{number}">sailor{number}</a></div>
        <div class="post-body">{quote if number > 1 else ""}<p>Answer {number}: {PROSE}</p></div></div>"""
        for number in range(1, 7)
    )
    text = item_main(f'<main class="thread"><h1>Which rope for mooring?</h1>{posts}</main>')
    assert [text.count(f"Answer {number}:") for number in range(1, 7)] == [1] * 6


def test_of_a_forum_all_posts_are_content() -> None:
    posts = "".join(
        f"""<div class="post" id="p{number}"><div class="post-author"><a href="/u/{number}">sailor{number}</a></div>
        <div class="post-body"><p>Answer {number}: {PROSE}</p></div><div class="post-actions"><a href="#">Reply</a>
        <a href="#">Report</a></div></div>"""
        for number in range(1, 7)
    )
    text = item_main(f'<main class="thread"><h1>Which rope for mooring?</h1>{posts}</main>')
    assert [f"Answer {number}:" in text for number in range(1, 7)] == [True] * 6
    assert "Imprint" not in text


def test_a_cookie_notice_is_not_content() -> None:
    notice = """<div id="cookie-consent" role="dialog"><h2>We value your privacy</h2><p>We and our partners
    store cookies on your device to show advertisements and to count visits to our pages. You may refuse.</p>
    <button>Accept</button></div>"""
    prose = "".join(f"<p>Step {number}. {PROSE}</p>" for number in range(6))
    text = item_main(f"<main><article><h1>How a rope is laid</h1>{prose}</article></main>{notice}")
    assert "Step 5" in text
    assert "show advertisements" not in text


def test_no_more_blocks_are_judged_than_the_bound() -> None:
    body = "".join(f"<p>Line {number}</p>" for number in range(MAX_BLOCKS + 50))
    assert len(Blocks(page(body), MAX_BLOCKS)) == MAX_BLOCKS


@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 240 + "deep" + "</div>" * 240,
        "<p class='" + "nav " * 5000 + "'>named</p>",
        "<p>" + "a" * 100_000 + "</p>",
        "<table><tr>" + "<td>x" * 3000 + "</table>",
        "<p aria-hidden=true style='display:none'>hidden</p>",
        "<h1></h1><h1>\ufdd0\ufdd0</h1>text",
    ],
)
def test_odd_pages_have_whatever_content_they_have(body: str) -> None:
    content = main_content(page(body))
    assert isinstance(content.text, str)
    assert (content.node is None) == (not content.text)


@pytest.mark.parametrize(
    ("part", "question"),
    [
        ("<div><button>What are you looking for?</button><div>{}</div></div>", "What are you looking"),
        ("<div><button>Should ropes be free?</button><p>4312 readers have voted so far, and it is open.</p></div>",
         "Should ropes"),
        ("<div><button>Forgot your password?</button><p>Enter your mail address, and we send you a new one.</p></div>",
         "Forgot"),
        ("<div><button aria-expanded=false>Forgot your password?</button><form><p>Enter your mail address, please.</p>"
         "<input></form></div>", "Forgot"),
        ("<div><button>¿Aún no eres socio?</button><p>Hazte socio y lee todos los textos sin límite.</p></div>",
         "socio?"),
        ("<div><label>Welches Seil trägt mehr?</label><ul><li>Hanf oder Stahl<li>Kork oder Bast</ul></div>",
         "Welches Seil"),
        ("<form><label for=n>What is your name?</label><div>As it is written in your passport, please.</div>"
         "<input id=n></form>", "What is your name"),
        ("<form>" + 2 * "<div><button>Where do you live?</button><p>Name the village or town.</p></div>" + "</form>",
         "Where do you live"),
        (2 * "<div><label>Dove abita di solito?</label><p>Scriva il paese o la città.</p><textarea></textarea></div>",
         "Dove abita"),
        ("<h2>The harbour <button>Copy link</button></h2><p>{}</p>", "Copy link"),
    ],
)  # fmt: skip
def test_a_question_or_label_that_folds_nothing_is_no_content(part: str, question: str) -> None:
    body = f"<main><h1>Ropes</h1><p>{PROSE}</p><p>{PROSE}</p>{part.format(PROSE)}<p>{PROSE}</p></main>"
    assert question not in item_main(body)
    assert question not in extract("article", f"<html><body>{body}</body></html>", URL)["articleBody"]


@pytest.mark.parametrize(
    "part",
    [
        "<div><button aria-expanded=false aria-controls=a>How strong is it?</button><div id=a>{}</div></div>",
        "<form>" + 70 * "<p>A line of the page.</p>" + 2 * "<div><button>How strong is it?</button><p>{0}</p></div>"
        "</form>",
        "<h3><span>1.</span> <button>How strong is it?</button></h3><p>{}</p>",
    ],
)
def test_a_question_alone_or_in_the_form_of_a_whole_page_is_content(part: str) -> None:
    assert "How strong is it?" in item_main(f"<main><h1>Ropes</h1><p>{PROSE}</p>{part.format(PROSE)}</main>")
